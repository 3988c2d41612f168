"""Packages: runs pip and condenses what it says to one line, or one live bar, per package."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO

from assistant.errors import SetupError

BAR_WIDTH = 24
QUIET_SECONDS = 0.2

_PACKAGE = re.compile(
    r"(?:Downloading|Using cached|Processing) (?:\S*/)?([^/\s]+)-(\d[^-\s]*)"
    r"(?:-\S*\.whl|\.tar\.gz|\.zip)(?: \(([^)]+)\))?$"
)
_INSTALLING = re.compile(r"Installing collected packages: (.+)")
_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|Failed to establish|timed out|ProxyError"
    r"|Max retries exceeded|Connection (?:refused|reset)|SSLError",
    re.IGNORECASE,
)


class Progress:
    """What one installation has shown so far."""

    def __init__(self, expected: int, folder: Path) -> None:
        self.expected = expected
        self.folder = folder
        self.fetched = 0
        self.installed = 0
        self.installing: set[str] = set()
        self.live = sys.stderr.isatty()

    def hear(self, line: str) -> None:
        """Take one line of pip's output."""
        if package := _PACKAGE.search(line):
            self.fetched += 1
            name, version, size = package.groups()
            self._show(self.fetched, f"{name} {version}" + (f"  {size}" if size else ""))
        elif found := _INSTALLING.search(line):
            self.installing = {_normal(name) for name in found[1].split(",")}
            self._say(f"Putting {len(self.installing)} packages in place …")

    def look(self) -> None:
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


def run(command: Sequence[str], log: Path, progress: Progress) -> None:
    """Run one pip command; everything it says goes to the end of `log`.

    Raises SetupError with the cause and the path of the log if it fails.
    """
    with log.open("ab") as record, _started(command) as process:
        stdout = process.stdout
        with closing(progress), ExitStack() as undo:
            undo.callback(process.terminate)
            for line in _lines(stdout) if stdout else ():
                if line is None:
                    progress.look()
                    continue
                record.write(line + b"\n")
                progress.hear(line.decode(errors="replace").rstrip())
            undo.pop_all()
    if process.returncode:
        raise SetupError(f"{_cause(log)}\nEverything pip said is in {log}")


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
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
        return "The packages could not be installed: the disk is full."
    if _NETWORK.search(text):
        return "The packages could not be downloaded: the package index cannot be reached."
    errors = [line.strip() for line in text.splitlines() if line.lstrip().startswith("ERROR:")]
    last = errors[-1].removeprefix("ERROR:").strip() if errors else "pip failed without a reason."
    return f"The packages could not be installed: {last}"


def _bar(done: int, total: int) -> str:
    filled = BAR_WIDTH * done // total
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}]"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).strip().lower()
