"""Installation: makes `.venv` or brings it up to date with pyproject.toml, visibly.

Standard library only: nothing else exists yet. A note per dependency group inside `.venv` says
what it was installed from; it is written last, so an interrupted installation is never taken for
a whole one.
"""

import fcntl
import importlib.util
import os
import re
import select
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, Any

from assistant import bootstrap
from assistant.errors import SetupError

VENV = Path(bootstrap.VENV)
PYTHON = Path(bootstrap.PYTHON)
NOTES = Path(bootstrap.ROOT) / ".docent"
LOG = NOTES / "install.log"
# In a new environment until it is whole; one that still has it is rubbish of a killed start.
UNFINISHED = VENV / "docent-unfinished"
BASE_PYTHON = getattr(sys, "_base_executable", None) or sys.executable
BAR_WIDTH = 24
QUIET_SECONDS = 0.2
# What pip prints.
PIP_PACKAGE = re.compile(
    r"(?:Downloading|Using cached|Processing) (?:\S*/)?([^/\s]+)-(\d[^-\s]*)"
    r"(?:-\S*\.whl|\.tar\.gz|\.zip)(?: \(([^)]+)\))?$"
)
PIP_INSTALLING = re.compile(r"Installing collected packages: (.+)")
NETWORK_TROUBLE = re.compile(
    r"NewConnectionError|NameResolutionError|Failed to establish|timed out|ProxyError"
    r"|Max retries exceeded|Connection (?:refused|reset)|SSLError",
    re.IGNORECASE,
)


def install(groups: list[str]) -> None:
    """Make the environment hold these dependency groups as pyproject.toml lists them.

    Raises SetupError, saying what to do, if that is not possible; an environment that was new is
    then gone again, one that existed stays and is completed by the next start.
    """
    text = Path(bootstrap.PYPROJECT).read_text(encoding="utf-8")
    project = tomllib.loads(text)
    try:
        with _install_lock():
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
        return [*_of_group(project["dependency-groups"], group)], []
    return project["project"]["dependencies"], project["tool"]["docent"]["without-dependencies"]


def _of_group(groups: dict[str, Any], name: str) -> Iterator[str]:
    """The packages of a group, and of those it includes, as PEP 735 has it."""
    for each in groups[name]:
        if isinstance(each, dict):
            yield from _of_group(groups, each["include-group"])
        else:
            yield each


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
    script = "import sys; print('python%d.%d' % sys.version_info[:2], sys.version_info >= (3, 11))"
    answer = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, check=False)
    folder, _, recent = answer.stdout.strip().partition(" ")
    return recent == "True" and (VENV / "lib" / folder).is_dir()


def _install(project: dict[str, Any], groups: list[str]) -> None:
    begin = time.monotonic()
    fresh = not _is_usable()
    _announce(project, fresh=fresh)
    LOG.unlink(missing_ok=True)
    with ExitStack() as undo:
        if fresh:
            undo.callback(shutil.rmtree, VENV, ignore_errors=True)
            _make_environment()
        for group in groups:
            Path(bootstrap.stamp(group)).unlink(missing_ok=True)
        _run_pip(project, groups)
        undo.pop_all()
    UNFINISHED.unlink(missing_ok=True)
    sys.stderr.write(f"The environment is ready, after {time.monotonic() - begin:.0f} s.\n")


def _announce(project: dict[str, Any], *, fresh: bool) -> None:
    expected = project["tool"]["docent"]
    size = expected["expected-megabytes"]
    if not fresh:
        sys.stderr.write(f"What Docent needs has changed: bringing {VENV} up to date.\n")
        return
    sys.stderr.write(
        f"Docent needs an environment of its own. About {expected['expected-packages']} packages, "
        f"{size} MB, go to {VENV}\nThis happens once and takes half a minute to five minutes.\n"
    )
    free = shutil.disk_usage(bootstrap.ROOT).free // 1024**2
    if free < size:
        raise SetupError(
            f"There is room for {free} MB only on the disk of {bootstrap.ROOT}. Free some, or put "
            "the checkout on another disk, and run the same command again."
        )


def _make_environment() -> None:
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
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    output = process.stdout + process.stderr
    LOG.write_text(output)
    if process.returncode:
        reason = output.strip().splitlines()[-1:]
        raise SetupError(f"{' '.join(command)} failed: {' '.join(reason)}\nMore in {LOG}")


def _run_pip(project: dict[str, Any], groups: list[str]) -> None:
    folder = next((VENV / "lib").glob("python*")) / "site-packages"
    expected = project["tool"]["docent"]["expected-packages"]
    present = sum(1 for _ in folder.glob("*.dist-info"))
    progress = Progress(max(expected - present, 1), folder)
    packages: list[str] = []
    without_dependencies: list[str] = []
    for group in groups:
        usual, alone = requirements(project, group)
        packages += usual
        without_dependencies += alone
    # --no-compile: Python compiles what it imports anyway; compiling all takes long and doubles
    # the size.
    options = ["install", "--no-compile", "--no-input", "--disable-pip-version-check"]
    steps = [packages, ["--no-deps", *without_dependencies] if without_dependencies else []]
    for arguments in steps:
        if arguments:
            _run([*_pip(folder), *options, *arguments], LOG, progress)


def _pip(folder: Path) -> list[str]:
    if (folder / "pip").is_dir():
        return [str(PYTHON), "-m", "pip"]
    return [BASE_PYTHON, "-m", "pip", "--python", str(PYTHON)]


@contextmanager
def _install_lock() -> Iterator[None]:
    """Hold the lock that lets one process at a time change the environment."""
    NOTES.mkdir(mode=0o700, exist_ok=True)
    with (NOTES / "install.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write("Another command is installing what Docent needs; waiting for it.\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Progress:
    """What one installation has shown so far."""

    def __init__(self, expected: int, folder: Path) -> None:
        self.expected = expected
        self.folder = folder
        self.fetched = 0
        self.installed = 0
        self.installing: set[str] = set()
        self.live = sys.stderr.isatty()

    def read(self, line: str) -> None:
        """Take one line of pip's output."""
        if package := PIP_PACKAGE.search(line):
            self.fetched += 1
            name, version, size = package.groups()
            self._show(self.fetched, f"{name} {version}" + (f"  {size}" if size else ""))
        elif names := PIP_INSTALLING.search(line):
            self.installing = {_normal(name) for name in names[1].split(",")}
            self._say(f"Putting {len(self.installing)} packages in place …")

    def count_installed(self) -> None:
        """Count what pip has put in place meanwhile: it installs without a word."""
        if not (self.live and self.installing):
            return
        present = {_normal(path.name.split("-")[0]) for path in self.folder.glob("*.dist-info")}
        done = len(self.installing & present)
        bar = _bar(done, len(self.installing))
        self._overwrite(f"{bar} {done}/{len(self.installing)} in place")

    def close(self) -> None:
        """Leave the terminal's live line."""
        if self.live:
            self._overwrite("")

    def _show(self, number: int, text: str) -> None:
        total = max(self.expected, number)
        if self.live:
            self._overwrite(f"{_bar(number, total)} {number}/{total} {text}")
        else:
            sys.stderr.write(f"[{number:3}/{total}] {text}\n")

    def _say(self, text: str) -> None:
        if self.live:
            self._overwrite(text)
        else:
            sys.stderr.write(f"{text}\n")

    def _overwrite(self, text: str) -> None:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        sys.stderr.write(f"\r\x1b[K{text[: width - 1]}")
        sys.stderr.flush()


def _run(command: Sequence[str], log: Path, progress: Progress) -> None:
    """Run one pip command; everything it says goes to the end of `log`.

    Raises SetupError with the cause and the path of the log if it fails.
    """
    with log.open("ab") as record, _start(command) as process:
        stdout = process.stdout
        with closing(progress), ExitStack() as undo:
            undo.callback(process.terminate)
            for line in _lines(stdout) if stdout else ():
                if line is None:
                    progress.count_installed()
                    continue
                record.write(line + b"\n")
                progress.read(line.decode(errors="replace").rstrip())
            undo.pop_all()
    if process.returncode:
        raise SetupError(f"{_cause(log)}\nEverything pip said is in {log}")


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines as they come; None whenever a moment passed without one."""
    descriptor = stream.fileno()
    rest = b""
    while True:
        if not select.select([descriptor], [], [], QUIET_SECONDS)[0]:
            yield None
            continue
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        *complete, rest = (rest + chunk).split(b"\n")
        yield from complete
    if rest:
        yield rest


def _cause(log: Path) -> str:
    """The reason in one sentence, from what pip wrote down."""
    text = log.read_text(errors="replace")
    if "No space left on device" in text:
        return "The packages could not be installed: the disk is full. Free some of it."
    if NETWORK_TROUBLE.search(text):
        return (
            "The packages could not be downloaded: the package index cannot be reached. See "
            "whether this machine is online; HTTPS_PROXY names a proxy, PIP_INDEX_URL another "
            "index. Then run the same command again."
        )
    errors = [line.strip() for line in text.splitlines() if line.lstrip().startswith("ERROR:")]
    last = errors[-1].removeprefix("ERROR:").strip() if errors else "pip failed without a reason."
    return f"The packages could not be installed: {last}"


def _bar(done: int, total: int) -> str:
    filled = BAR_WIDTH * done // total
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}]"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).strip().lower()


if __name__ == "__main__":
    # For scripts: python3 -m assistant.installation test lint
    try:
        install([bootstrap.BASE, *sys.argv[1:]])
    except SetupError as failure:
        sys.exit(str(failure))
