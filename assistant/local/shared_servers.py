"""Shared servers: a PostgreSQL and a Redis of our own, for all commands that run at the same time.

A command joins before it needs them; the first one starts them, through the keeper, and when the
last one has ended, however it ended, they stop. DATABASE_URL and REDIS_URL each replace one.
Standard library only: the settings ask for the addresses before Django is there.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

from assistant.errors import SetupError
from assistant.local import paths, servers
from assistant.local.paths import state_folder
from assistant.phases import phase

CONFIGURED_BY = {servers.POSTGRES: "DATABASE_URL", servers.REDIS: "REDIS_URL"}
KEEPER = Path(__file__).with_name("keeper.py")
LONGEST_START_SECONDS = 300
# Of a first start: the servers' files, the embedding model's graphs and the documentation.
FIRST_MEGABYTES = 180
TICK_SECONDS = 0.02
SCRATCH = "scratch"

# The locks this process holds. A forked child holds them too: it uses the servers as well.
_locks: dict[str, IO[str]] = {}


class FolderGone(SetupError):
    """The state folder was removed."""


def postgres_url() -> str:
    """Address of the embedded database, whether it runs or not, as libpq takes it."""
    sockets = paths.socket_folder(state_folder())
    return f"postgresql://{servers.DATABASE}@/{servers.DATABASE}?host={quote(str(sockets), '')}"


def redis_url() -> str:
    """Address of the embedded Redis, whether it runs or not, as redis-py takes it."""
    path = paths.socket_folder(state_folder()) / servers.REDIS_SOCKET
    return f"unix://{quote(str(path))}"


def join(*, durable: bool = True) -> None:
    """Have the servers that aren't configured run until this process ends, or leaves.

    Joining again is cheap, and starts them anew should the keeper have been killed.
    Without `durable`, servers that this call starts don't wait for the disk.
    Raises SetupError if they can't run here.
    """
    names = {name for name, variable in CONFIGURED_BY.items() if not os.environ.get(variable)}
    if not names:
        return
    state = state_folder()
    before = set(_locks)
    with ExitStack() as undo:
        undo.callback(lambda: _release(set(_locks) - before))
        with _lock(state, "start.lock"):
            _join(state, names, durable=durable)
        undo.pop_all()


def leave(*, wait: bool = False) -> None:
    """Need the servers no more. With `wait`, return when they have stopped or others use them."""
    _release(set(_locks))
    state = state_folder()
    # The keeper removes a scratch folder once nobody uses it: it has stopped the servers before.
    with suppress(FolderGone):
        while wait and _keeper_lives(state) and not _are_used(state):
            time.sleep(TICK_SECONDS)


@contextmanager
def scratch(*, durable: bool = False) -> Iterator[Path]:
    """Servers and a state folder for the time of the block; nothing else is touched or kept.

    STATE_DIR, DATABASE_URL and REDIS_URL lead there, for this process and those it starts.
    """
    state = paths.scratch_folder(in_memory=not durable)
    (state / SCRATCH).touch()  # the keeper removes the folder should we be killed
    names = ("STATE_DIR", *CONFIGURED_BY.values())
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ["STATE_DIR"] = str(state)
    try:
        join(durable=durable)
        os.environ.update(DATABASE_URL=postgres_url(), REDIS_URL=redis_url())
        yield state
    finally:
        leave(wait=True)
        shutil.rmtree(state, ignore_errors=True)
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)


def is_scratch() -> bool:
    """Whether this process was started by one that runs on scratch servers, and shares them."""
    return (state_folder() / SCRATCH).exists()


def _join(state: Path, names: set[str], *, durable: bool) -> None:
    if not _keeper_lives(state):
        _forget_servers(state)  # its servers may still answer, while they end
    missing = sorted(name for name in names if not servers.is_ready(name, state))
    new = [servers.TITLES[name] for name in missing if not (state / name).exists()]
    if new:
        _refuse_full_disk(state)
    with phase(f"Starting {' and '.join(new)} in {state}") if new else nullcontext():
        for name in missing:
            servers.prepare(name, state, durable=durable)
        for name in names - _locks.keys():
            _locks[name] = _open_lock(state, f"{name}.users")
            fcntl.flock(_locks[name], fcntl.LOCK_SH)
        if not _keeper_lives(state):
            _spawn_keeper(state)
        for name in missing:
            _wait_for(name, state)


def _refuse_full_disk(state: Path) -> None:
    """Raise SetupError where there is no room for what a first start writes."""
    free = shutil.disk_usage(state).free // 1024**2
    if free < FIRST_MEGABYTES:
        raise SetupError(
            f"There is room for {free} MB only on the disk of {state}, and a first start takes "
            f"{FIRST_MEGABYTES}. Free some, or set STATE_DIR to a folder on another disk."
        )


def _release(names: set[str]) -> None:
    for name in names:
        _locks.pop(name).close()


def _wait_for(name: str, state: Path) -> None:
    """Return when the server answers. Raises SetupError when it won't."""
    deadline = time.monotonic() + LONGEST_START_SECONDS
    trouble = state / f"{name}.trouble"
    while not servers.is_ready(name, state):
        if trouble.exists() or not _keeper_lives(state) or time.monotonic() > deadline:
            raise SetupError(_failure(name, state, trouble))
        time.sleep(TICK_SECONDS)


def _failure(name: str, state: Path, trouble: Path) -> str:
    reason = trouble.read_text() if trouble.exists() else "doesn't answer"
    log = state / f"{name}.log"
    last = log.read_text(errors="replace").strip().splitlines()[-3:] if log.exists() else []
    return "\n".join([f"The embedded {name} {reason}. The end of {log}:", *last])


def _spawn_keeper(state: Path) -> None:
    """Start the keeper, in a session of its own, so that Ctrl-C here doesn't reach it."""
    with (state / "keeper.log").open("w") as log:
        sockets = paths.socket_folder(state)
        # Isolated and without site-packages: it needs a third of the memory that way.
        command = [sys.executable, "-I", "-S", str(KEEPER), str(state), str(sockets)]
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            check=False,
        )
    if process.returncode:
        raise SetupError(f"The keeper of the embedded servers failed; see {state}/keeper.log")


def _forget_servers(state: Path) -> None:
    """Take back what a keeper that was killed had been asked for."""
    for name in CONFIGURED_BY:
        for ending in ("json", "trouble"):
            (state / f"{name}.{ending}").unlink(missing_ok=True)
        if (state / f"{name}.pid").exists():
            (state / f"{name}.pid").rename(state / f"{name}.orphan")


def _keeper_lives(state: Path) -> bool:
    return not _is_free(state, "keeper.lock")


def _are_used(state: Path) -> bool:
    with _lock(state, "start.lock"):  # the keeper looks at the same locks
        return not all(_is_free(state, f"{name}.users") for name in CONFIGURED_BY)


def _is_free(state: Path, name: str) -> bool:
    with _open_lock(state, name) as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def _lock(state: Path, name: str) -> Iterator[None]:
    with _open_lock(state, name) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open_lock(state: Path, name: str) -> IO[str]:
    try:
        return os.fdopen(os.open(state / name, os.O_RDWR | os.O_CREAT, 0o600), "r+")
    except FileNotFoundError as error:
        raise FolderGone(f"{state} was removed while Docent used it.") from error
    except OSError as error:
        raise SetupError(f"{state / name} can't be opened: {error.strerror}.") from error
