"""Installation: makes `.venv` or brings it up to date with pyproject.toml, visibly.

Standard library only: nothing else exists yet. A note per dependency group inside `.venv` says
what it was installed from; it is written last, so an interrupted installation is never taken for
a whole one.
"""

import fcntl
import importlib.util
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from assistant import bootstrap, packages
from assistant.errors import SetupError

VENV = Path(bootstrap.VENV)
PYTHON = Path(bootstrap.PYTHON)
NOTES = Path(bootstrap.ROOT) / ".docent"
LOG = NOTES / "install.log"
# In a new environment until it is whole; one that still has it is rubbish of a killed start.
UNFINISHED = VENV / "docent-unfinished"
BASE_PYTHON = getattr(sys, "_base_executable", None) or sys.executable


def install(groups: list[str]) -> None:
    """Make the environment hold these dependency groups as pyproject.toml lists them.

    Raises SetupError, saying what to do, if that is not possible; an environment that was new is
    then gone again, one that existed stays and is completed by the next start.
    """
    text = Path(bootstrap.PYPROJECT).read_text(encoding="utf-8")
    project = tomllib.loads(text)
    try:
        with _alone():
            missing = [group for group in groups if not _is_installed(project, group)]
            if missing or not _is_usable():
                _install(project, groups)
            for group in groups:
                Path(bootstrap.stamp(group)).write_text(text, encoding="utf-8")
    except KeyboardInterrupt as error:
        raise SetupError("Interrupted. The next start does it again.") from error
    except OSError as error:
        raise SetupError(f"The environment in {VENV} could not be made: {error}") from error


def requirements(project: dict[str, Any], group: str) -> tuple[list[str], list[str]]:
    """What a group installs: with what it depends on, and without."""
    if group != bootstrap.BASE:
        return project["dependency-groups"][group], []
    return project["project"]["dependencies"], project["tool"]["docent"]["without-dependencies"]


def _is_installed(project: dict[str, Any], group: str) -> bool:
    """Whether the lists are those that were installed: the rest of the file doesn't matter."""
    try:
        installed = tomllib.loads(Path(bootstrap.stamp(group)).read_text(encoding="utf-8"))
        base_is_same = requirements(installed, "base") == requirements(project, "base")
        return base_is_same and requirements(installed, group) == requirements(project, group)
    except (FileNotFoundError, KeyError, tomllib.TOMLDecodeError):
        return False


def _is_usable() -> bool:
    """Whether `.venv` is a whole environment whose Python is the one its packages are for."""
    if UNFINISHED.exists() or not PYTHON.exists():
        return False
    ask = "import sys; print('python%d.%d' % sys.version_info[:2], sys.version_info >= (3, 11))"
    answer = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True, check=False)
    folder, _, recent = answer.stdout.strip().partition(" ")
    return recent == "True" and (VENV / "lib" / folder).is_dir()


def _install(project: dict[str, Any], groups: list[str]) -> None:
    started = time.monotonic()
    fresh = not _is_usable()
    _announce(project, fresh=fresh)
    LOG.unlink(missing_ok=True)
    with ExitStack() as undo:
        if fresh:
            undo.callback(shutil.rmtree, VENV, ignore_errors=True)
            _make()
        for group in groups:
            Path(bootstrap.stamp(group)).unlink(missing_ok=True)
        _run_pip(project, groups)
        undo.pop_all()
    UNFINISHED.unlink(missing_ok=True)
    sys.stderr.write(f"The environment is ready, after {time.monotonic() - started:.0f} s.\n")


def _announce(project: dict[str, Any], *, fresh: bool) -> None:
    expected = project["tool"]["docent"]
    size = expected["expected-megabytes"]
    if not fresh:
        sys.stderr.write(f"What Docent needs has changed: bringing {VENV} up to date.\n")
        return
    sys.stderr.write(
        f"Docent needs an environment of its own. About {expected['expected-packages']} packages, "
        f"{size} MB, go to {VENV}\nThis happens once and takes a minute or two.\n"
    )
    free = shutil.disk_usage(bootstrap.ROOT).free // 1024**2
    if free < size:
        raise SetupError(f"There is room for {free} MB only on the disk of {bootstrap.ROOT}.")


def _make() -> None:
    """An empty environment with pip, marked as unfinished."""
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.mkdir()
    UNFINISHED.touch()
    has_ensurepip = importlib.util.find_spec("ensurepip") is not None
    if not has_ensurepip and importlib.util.find_spec("pip") is None:
        version = "{}.{}".format(*sys.version_info)
        raise SetupError(
            f"The Python at {BASE_PYTHON} has neither ensurepip nor pip. On Debian and Ubuntu this "
            f"gives it one: apt install python{version}-venv"
        )
    command = [BASE_PYTHON, "-m", "venv", *([] if has_ensurepip else ["--without-pip"]), str(VENV)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    LOG.write_text(made.stdout + made.stderr)
    if made.returncode:
        reason = (made.stdout + made.stderr).strip().splitlines()[-1:]
        raise SetupError(f"{' '.join(command)} failed: {' '.join(reason)}\nMore in {LOG}")


def _run_pip(project: dict[str, Any], groups: list[str]) -> None:
    folder = next((VENV / "lib").glob("python*")) / "site-packages"
    expected = project["tool"]["docent"]["expected-packages"]
    present = sum(1 for _ in folder.glob("*.dist-info"))
    progress = packages.Progress(max(expected - present, 1), folder)
    whole: list[str] = []
    files: list[str] = []
    for group in groups:
        with_dependencies, without = requirements(project, group)
        whole += with_dependencies
        files += without
    # --no-compile: Python compiles what it imports anyway; compiling all takes long and doubles
    # the size.
    options = ["install", "--no-compile", "--no-input", "--disable-pip-version-check"]
    for arguments in (whole, ["--no-deps", *files] if files else []):
        if arguments:
            packages.run([*_pip(folder), *options, *arguments], LOG, progress)


def _pip(folder: Path) -> list[str]:
    if (folder / "pip").is_dir():
        return [str(PYTHON), "-m", "pip"]
    return [BASE_PYTHON, "-m", "pip", "--python", str(PYTHON)]


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock that lets one process at a time change the environment."""
    NOTES.mkdir(mode=0o700, exist_ok=True)
    with (NOTES / "install.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write("Another command is installing what Docent needs; waiting for it.\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    # For scripts: python3 -m assistant.installation test lint
    try:
        install([bootstrap.BASE, *sys.argv[1:]])
    except SetupError as failure:
        sys.exit(str(failure))
