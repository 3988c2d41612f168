"""Files: finds what can be ingested under the paths somebody named."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from knowledge.errors import NothingToIngest, Unreadable
from knowledge.ingestion.report import Problem
from knowledge.parsing import FORMATS, is_readable
from knowledge.postgres_text import is_storable

# One slash: a path has lost the other.
WEB = re.compile(r"https?:/+", re.IGNORECASE)
ZIP = ".zip"


@dataclass(frozen=True)
class File:
    """A file to ingest. Its origin begins with the name of the ingested root, so that it stays
    the same wherever the root lies and from wherever the command is run."""

    path: Path
    origin: str

    @property
    def folders(self) -> list[str]:
        """The folders between the ingested root and the file."""
        return self.origin.split("/")[1:-1]

    def read(self) -> bytes:
        """Return the content. Raises Unreadable, also when it is larger than allowed."""
        limit = settings.MAX_UPLOAD_BYTES
        try:
            with self.path.open("rb") as file:
                # One byte more than allowed tells a file that is too large, whatever it claims.
                body = file.read(limit + 1)
        except OSError as error:
            raise Unreadable(f"it cannot be opened: {error.strerror}") from error
        if len(body) > limit:
            raise Unreadable(f"it is larger than {limit:,} bytes (MAX_UPLOAD_BYTES)")
        return body


@dataclass
class Findings:
    """The files found, and what was passed over."""

    files: list[File] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)  # name → where it lies
    folders: list[str] = field(default_factory=list)  # origins of the ingested folders
    unread: list[Problem] = field(default_factory=list)  # folders that could not be listed
    ignored: Counter[str] = field(default_factory=Counter)


def find(paths: Iterable[Path]) -> Findings:
    """Return the files under the paths. Raises NothingToIngest, naming the path at fault."""
    findings = Findings()
    for path in dict.fromkeys(paths):
        root = path.resolve()
        if not is_storable(str(root)):
            raise NothingToIngest(f"{str(root)!a}: its name is not UTF-8; rename it.")
        if findings.roots.setdefault(root.name, str(root)) != str(root):
            raise NothingToIngest(
                f"{findings.roots[root.name]} and {root} have the same name, by which their "
                "documents are known: rename one, or ingest it into a collection of its own."
            )
        if root.is_dir():
            find_in_folder(root, findings)
        elif root.is_file():
            findings.files.append(File(root, root.name))
        else:
            raise NothingToIngest(f"{path}: no such file or folder.")
    return findings


def find_in_folder(root: Path, findings: Findings) -> None:
    """Add the files under `root` in a steady order. Raises NothingToIngest when there are none."""
    found: list[File] = []

    def unlistable(error: OSError) -> None:
        origin = origin_of(Path(error.filename), root)
        findings.unread.append(Problem(origin, f"it cannot be listed: {error.strerror}"))

    # Linked folders are not followed: they may lead in circles or out of the root.
    for folder, subfolders, names in os.walk(root, onerror=unlistable):
        here = Path(folder)
        findings.ignored["hidden"] += sum(is_hidden(name) for name in subfolders)
        findings.ignored["linked folder"] += sum((here / name).is_symlink() for name in subfolders)
        subfolders[:] = sorted(name for name in subfolders if not is_hidden(name))
        for name in sorted(names):
            if reason := why_ignored(here / name):
                findings.ignored[reason] += 1
            else:
                found.append(File(here / name, origin_of(here / name, root)))
    if not found and not findings.unread:
        # Also a folder that is not mounted: its documents must not be taken for deleted.
        raise NothingToIngest(
            f"{root}: no file in a format known here ({', '.join([*FORMATS, ZIP])}). "
            "What was ingested from it stays; `delete` removes it."
        )
    findings.files += found
    findings.folders.append(root.name)


def origin_of(path: Path, root: Path) -> str:
    """Return the root's name and the path within it, with forward slashes."""
    return (Path(root.name) / path.relative_to(root)).as_posix()


def is_hidden(name: str) -> bool:
    """Tell whether a file or folder is one that listings leave out."""
    return name.startswith(".")


def why_ignored(path: Path) -> str:
    """Return why a file is not for ingesting; nothing when it is."""
    if is_hidden(path.name):
        return "hidden"
    if not is_storable(str(path)):
        return "name that is not UTF-8"
    if not (is_readable(path.name) or is_zip(path.name)):
        return "unknown format"
    return "" if path.is_file() else "not a file"  # a pipe, a link that leads nowhere


def is_zip(name: str) -> bool:
    """Tell whether a file is an archive of others, by its name."""
    return name.lower().endswith(ZIP)
