"""Paths: where Docent and its embedded servers keep their data and their sockets.

Standard library only: the settings ask before Django is there. Every folder is private to the user
who runs Docent.
"""

import hashlib
import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from assistant.errors import SetupError

CHECKOUT = Path(__file__).resolve().parents[2]
NOTES = CHECKOUT / ".docent"
ROOTS_HOME = Path("/var/lib/docent")
MEMORY = Path("/dev/shm")  # noqa: S108 - what is made in it is private
# Thrice what the tests need at most; containers often have 64 MB there.
SCRATCH_BYTES = 4 << 30
# The longest path that fits into sun_path on every Unix (104 bytes on macOS, with the zero).
LONGEST_SOCKET = 103
LONGEST_SOCKET_NAME = len("/.s.PGSQL.5432")
# As root, PostgreSQL's user has to pass; what is in it is private by itself.
FOLDER_MODE = 0o711 if os.geteuid() == 0 else 0o700


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
