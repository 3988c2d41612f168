"""Keeper: a small process of its own that runs the embedded servers while a command needs them.

A file `<name>.json` in the state folder says that a server shall run, and how; the commands that
use it hold a shared lock on `<name>.users`. Locks end with the process that holds them, however it
ends, so nothing is left running and nothing has to be cleaned up. Whoever joins holds `start.lock`
meanwhile; only with that in hand the keeper looks for users, and stops what has none.

It imports nothing of Docent and no site-packages, to stay small; its arguments are the state
folder and the folder of the sockets.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

SERVERS = ("postgres", "redis")
TICK_SECONDS = 0.3
STOP_SECONDS = 30
HEALTHY_SECONDS = 10
HOPELESS_FAILURES = 3
LONGEST_PAUSE_SECONDS = 5
LARGEST_LOG_BYTES = 5_000_000
PR_SET_PDEATHSIG = 1

_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Server:
    """One server: its process and how often it failed in a row."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: subprocess.Popen[bytes] | None = None
        self.users = _open(f"{name}.users")
        self.recipe: dict[str, Any] = {}
        self.failures = 0
        self.obstructed = 0
        self.started = 0.0
        self.keeper = os.getpid()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody asked for it and it hasn't been stopped since."""
        return os.path.exists(f"{self.name}.json")

    def keep(self) -> None:
        """Start it, if it doesn't run and enough time passed since it failed."""
        if self.process is not None:
            if self.process.poll() is None:
                return
            self._note_failure(f"ended with status {self.process.returncode}")
        pause = min(self.failures * TICK_SECONDS, LONGEST_PAUSE_SECONDS)
        if time.monotonic() - self.started >= pause:
            self._start()

    def ask_to_stop(self) -> None:
        """Tell it to end, and that it isn't wanted any more."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.recipe["stop"])
        if self.is_wanted:
            os.unlink(f"{self.name}.json")

    def wait(self) -> None:
        """Return when it has ended, by force if need be."""
        if self.process is None:
            return
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.name}.pid")
        self.process = None
        self.failures = 0

    def _start(self) -> None:
        self.started = time.monotonic()
        # The server and all its children inherit this lock: as long as it is taken, one of a
        # keeper that was killed is still there, and a second on the same data would ruin it.
        running = _open(f"{self.name}.running")
        try:
            with open(f"{self.name}.json") as file:
                self.recipe = json.load(file)
            if not _is_free(running):
                self._end_orphan()
                return
            for path in self.recipe["stale"]:
                if os.path.exists(path):
                    os.unlink(path)
            self._spawn(running)
        except OSError as error:
            self._note_failure(f"couldn't be started: {error}")
        finally:
            os.close(running)

    def _spawn(self, running: int) -> None:
        uid, gid = self.recipe["user"] or (None, None)
        log = _open_log(f"{self.name}.log")
        try:
            self.process = subprocess.Popen(
                self.recipe["command"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.recipe["environment"],
                user=uid,
                group=gid,
                extra_groups=None if uid is None else [],
                pass_fds=[running],
                preexec_fn=self._die_with_keeper,
            )
        finally:
            os.close(log)
        # Whoever reads it finds one number or the other.
        with open(f"{self.name}.pid.new", "w") as file:
            file.write(str(self.process.pid))
        os.replace(f"{self.name}.pid.new", f"{self.name}.pid")

    def _die_with_keeper(self) -> None:
        """Ask the kernel to stop the server when the keeper is killed. Runs in the child."""
        if _prctl is not None:
            _prctl(PR_SET_PDEATHSIG, self.recipe["stop"])
        if os.getppid() != self.keeper:  # it died before the line above
            os._exit(1)

    def _end_orphan(self) -> None:
        """Stop what a keeper left that was killed (not every kernel takes it along by itself)."""
        self.obstructed += 1
        with open(f"{self.name}.orphan") as file:
            pid = int(file.read())
        patient = self.obstructed * TICK_SECONDS < STOP_SECONDS
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, self.recipe["stop"] if patient else signal.SIGKILL)

    def _note_failure(self, reason: str) -> None:
        if time.monotonic() - self.started > HEALTHY_SECONDS:
            self.failures = 0
        self.process = None
        self.failures += 1
        _say(f"{self.name} {reason}")
        if self.failures >= HOPELESS_FAILURES:
            with open(f"{self.name}.trouble", "w") as file:
                file.write(reason)


def keep_all(servers: list[Server]) -> None:
    """Run what is wanted, until nobody uses anything."""
    start = _open("start.lock")
    while True:
        if _is_free(start):
            unused = [server for server in servers if _is_free(server.users)]
            _stop(unused)
            for server in unused:
                fcntl.flock(server.users, fcntl.LOCK_UN)
            if len(unused) == len(servers):
                return  # with start.lock still in hand: who joins now waits for the end
            fcntl.flock(start, fcntl.LOCK_UN)
        for server in servers:
            if server.is_wanted:
                server.keep()
        time.sleep(TICK_SECONDS)


def _stop(servers: list[Server]) -> None:
    for server in servers:
        server.ask_to_stop()
    for server in servers:
        server.wait()


def _is_free(lock: int) -> bool:
    """Take the lock if nobody has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(name: str) -> int:
    return os.open(name, os.O_RDWR | os.O_CREAT, 0o600)


def _open_log(name: str) -> int:
    size = os.path.getsize(name) if os.path.exists(name) else 0
    fresh = os.O_TRUNC if size > LARGEST_LOG_BYTES else 0
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | fresh, 0o600)


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%F %T')} {text}\n")
    sys.stderr.flush()


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def main(state: str, sockets: str) -> None:
    """Keep the servers of a state folder; the caller goes on as soon as the lock is taken."""
    os.umask(0o077)
    os.chdir(state)
    fcntl.flock(_open("keeper.lock"), fcntl.LOCK_EX)
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, _terminate)
    servers = [Server(name) for name in SERVERS]
    try:
        keep_all(servers)
    finally:
        _stop(servers)
        with contextlib.suppress(OSError):
            os.rmdir(sockets)
    if os.path.exists("scratch"):
        os.execv("/bin/rm", ["rm", "-rf", "--", state])  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
