"""Sources: the files under the paths somebody named, and those inside zips."""

import os
import re
import stat
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from django.conf import settings

from knowledge.errors import NothingToIngest, Unreadable
from knowledge.ingestion.inclusion import LARGEST, WITH_PARTS, with_inclusions
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

    @property
    def root(self) -> Path:
        """The ingested folder; of a file that was named itself, the folder it lies in."""
        return self.path.parents[max(0, self.origin.count("/") - 1)]

    def read(self) -> bytes:
        """Return the content, what it includes of the ingested folder in place.

        Raises Unreadable, also when it is larger than allowed.
        """
        body = read_bounded(self.path)
        within = self.origin.partition("/")[2] or self.origin
        name = as_known(within)
        return with_inclusions(name, body, self.read_beside) if name.endswith(WITH_PARTS) else body

    def read_beside(self, path: str) -> bytes | None:
        """Return a file of the ingested folder; None when it cannot be read, or lies elsewhere."""
        beside = self.root / path
        try:
            is_inside = beside.resolve().is_relative_to(self.root.resolve())
            return read_bounded(beside) if is_inside and beside.is_file() else None
        except (OSError, RuntimeError, ValueError, Unreadable):
            return None


def read_bounded(path: Path) -> bytes:
    """Return a file's content. Raises Unreadable, also when it is larger than allowed."""
    limit = settings.MAX_UPLOAD_BYTES
    try:
        with path.open("rb") as file:
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
    files: list[File] = []

    def unlistable(error: OSError) -> None:
        origin = origin_of(Path(error.filename), root)
        findings.unread.append(Problem(origin, f"it cannot be listed: {error.strerror}"))

    # Linked folders are not followed: they may lead in circles or out of the root.
    for folder, subfolders, names in os.walk(root, onerror=unlistable):
        directory = Path(folder)
        findings.ignored["hidden"] += sum(is_hidden(name) for name in subfolders)
        findings.ignored["linked folder"] += sum(
            (directory / name).is_symlink() for name in subfolders
        )
        subfolders[:] = sorted(name for name in subfolders if not is_hidden(name))
        for name in sorted(names):
            if reason := why_ignored(directory / name):
                findings.ignored[reason] += 1
            else:
                files.append(File(directory / name, origin_of(directory / name, root)))
    if not files and not findings.unread:
        # Also a folder that is not mounted: its documents must not be taken for deleted.
        raise NothingToIngest(
            f"{root}: no file in a format known here ({', '.join([*FORMATS, ZIP])}). "
            "What was ingested from it stays; `delete` removes it. INGEST_AS can say as what other "
            "files are read."
        )
    findings.files += files
    findings.folders.append(root.name)


def origin_of(path: Path, root: Path) -> str:
    """Return the root's name and the path within it, with forward slashes."""
    return (Path(root.name) / path.relative_to(root)).as_posix()


def as_known(name: str) -> str:
    """Return the name that says as what a file is read: its own, or one that a rule makes of it."""
    file = name.rpartition("/")[2]
    rules = settings.INGEST_AS.items()
    return name + next((ending for pattern, ending in rules if fnmatchcase(file, pattern)), "")


def is_hidden(name: str) -> bool:
    """Tell whether a file or folder is one that listings leave out."""
    return name.startswith(".")


def why_ignored(path: Path) -> str:
    """Return why a file is not for ingesting; nothing when it is."""
    if is_hidden(path.name):
        return "hidden"
    if not is_storable(str(path)):
        return "name that is not UTF-8"
    if not (is_readable(as_known(path.name)) or is_zip(path.name)):
        return "unknown format"
    return "" if path.is_file() else "not a file"  # a pipe, a link that leads nowhere


def is_zip(name: str) -> bool:
    """Tell whether a file is an archive of others, by its name."""
    return name.lower().endswith(ZIP)


ENCRYPTED = 0x1  # bits of a member's flags
UTF8 = 0x800
# Text packs ten to one; deflate reaches a thousand to one, on nothing but repetition.
RATIO = 200
SMALL = 1024 * 1024  # a short file may repeat itself
DRIVE = re.compile(r"[A-Za-z]:")
# What zipfile raises over damaged bytes, beside its own error.
DAMAGED = (
    BadZipFile, EOFError, NotImplementedError, OSError, OverflowError, ValueError, struct.error,
    zlib.error,
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A file inside a zip. One that may not be read says so when it is."""

    origin: str  # the zip's name, then the path
    path: str  # within the zip, with forward slashes
    archive: ZipFile
    info: ZipInfo
    refusal: str = ""
    location: str = ""  # what is known of its place: nothing

    def read(self) -> bytes:
        """Return its content. Raises Unreadable with the reason.

        More than the zip declares is never unpacked: such a file fails its checksum.
        """
        if self.refusal:
            raise Unreadable(self.refusal)
        limit = settings.MAX_UPLOAD_BYTES
        try:
            with self.archive.open(self.info) as file:
                body = file.read(limit + 1)
        except DAMAGED as error:
            raise Unreadable(f"it is damaged inside the zip: {error}") from error
        if len(body) > limit:
            raise Unreadable(f"it is larger than {limit:,} bytes (MAX_UPLOAD_BYTES)")
        if len(body) > max(SMALL, RATIO * self.info.compress_size):
            raise Unreadable(f"it unpacks to more than {RATIO} times its size, as no text does")
        return with_inclusions(as_known(self.path), body, self.read_beside)

    def read_beside(self, path: str) -> bytes | None:
        """Return another file of the zip; None when there is none, or it is too large."""
        try:
            info = self.archive.getinfo(path)
            if why_refused(path, info) or info.file_size > LARGEST:
                return None
            with self.archive.open(info) as file:
                return file.read(LARGEST)
        except (KeyError, *DAMAGED):
            return None


def members(name: str, body: bytes, ignored: Counter[str] | None = None) -> list[Member]:
    """Return the files of a zip in the formats known here, in its own order.

    A file that is refused is among them, and its `read` says why: the others are not to suffer.
    What is passed over is counted in `ignored`, by reason. Raises Unreadable about the whole zip.
    """
    try:
        archive = ZipFile(BytesIO(body))
    except DAMAGED as error:
        raise Unreadable(f"it is no zip, or a damaged one: {error}") from error
    # Not by `is_dir`, which wants a name: a damaged zip may hold an entry without one.
    infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
    if len(infos) > settings.ZIP_MAX_FILES:
        raise Unreadable(f"it holds more than {settings.ZIP_MAX_FILES:,} files (ZIP_MAX_FILES)")
    archive_members = [
        Member(f"{name}/{path}", path, archive, info, refusal)
        for path, info, refusal in candidate_entries(
            infos, Counter() if ignored is None else ignored
        )
    ]
    if not archive_members:
        raise Unreadable(
            "there is no file in a format known here in it "
            f"({', '.join(FORMATS)}); INGEST_AS can say as what others are read"
        )
    limit = settings.PARSE_MAX_EXPANDED_BYTES
    if sum(member.info.file_size for member in archive_members if not member.refusal) > limit:
        raise Unreadable(f"it unpacks to more than {limit:,} bytes (PARSE_MAX_EXPANDED_BYTES)")
    return archive_members


def candidate_entries(
    infos: Iterable[ZipInfo], ignored: Counter[str]
) -> Iterator[tuple[str, ZipInfo, str]]:
    """Yield path, entry and why it is refused, or nothing, of all that are not passed over."""
    paths = set[str]()
    for info in infos:
        path = path_of(info)
        refusal = why_refused(path, info)
        if not refusal and (reason := why_member_ignored(path)):
            ignored[reason] += 1
            continue
        if path in paths:
            refusal = "another file in the zip has the same path"
        paths.add(path)
        yield path, info, refusal


def path_of(info: ZipInfo) -> str:
    """Return the path with forward slashes.

    Without the flag for UTF-8 a name counts as code page 437, and most programs that leave the
    flag out have written UTF-8 all the same.
    """
    name = info.filename
    if not info.flag_bits & UTF8:
        try:
            name = name.encode("cp437").decode()
        except UnicodeError:
            name = info.filename
    return name.replace("\\", "/")


def why_refused(path: str, info: ZipInfo) -> str:
    """Return why a file must not be read; nothing when it may."""
    kind = stat.S_IFMT(info.external_attr >> 16)  # zero when the zip was not made on Unix
    checks = {
        "its path is absolute, and only those within the zip are read": (
            path.startswith("/") or DRIVE.match(path)
        ),
        "its path leads out of the zip with '..'": ".." in path.split("/"),
        "it is a link, a device or a pipe and no file": kind not in (0, stat.S_IFREG),
        "it is a zip inside a zip: unpack it and ingest it by itself": (
            path.lower().endswith(".zip")
        ),
        "it is encrypted: only zips without a password are read": info.flag_bits & ENCRYPTED,
        "it is packed by a method other than deflate": (
            info.compress_type not in (ZIP_STORED, ZIP_DEFLATED)
        ),
    }
    return next((reason for reason, applies in checks.items() if applies), "")


def why_member_ignored(path: str) -> str:
    """Return why a file is not for ingesting; nothing when it is."""
    # Finder adds a folder of its own to what it packs.
    if any(part.startswith(".") or part == "__MACOSX" for part in path.split("/")):
        return "hidden"
    return "" if is_readable(as_known(path)) else "unknown format"
