"""Office: the parts of a Word or PowerPoint file, unpacked within limits."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from io import BytesIO
from posixpath import join, normpath, split
from xml.etree.ElementTree import Element, ParseError
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

from defusedxml.ElementTree import fromstring

from knowledge.errors import Unreadable
from knowledge.parsing.limits import Limits
from knowledge.parsing.page import as_date, as_text

OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # a compound file: Office before 2007, and encrypted
BLOCK = 1 << 16
# What reading an archive and a tree of elements raises when they are not what they should be.
BROKEN = (
    BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, ParseError,
    ExpatError, LookupError, AttributeError, ValueError, TypeError, ArithmeticError,
)  # fmt: skip
DUBLIN = "{http://purl.org/dc/elements/1.1/}"
TERMS = "{http://purl.org/dc/terms/}"
# What programs call a file that nobody has named.
NAMELESS = ("microsoft word", "powerpoint presentation", "presentation", "document", "untitled")

Parts = dict[str, bytes]  # name within the archive → XML


def unpacked(body: bytes, limits: Limits) -> Parts:
    """Return the XML parts of an Office file. Raises Unreadable.

    Everything in the archive is unpacked and counted, pictures too, whatever size it claims.
    """
    if not body.strip():
        raise Unreadable("it is empty")
    if body.startswith(OLD):
        raise Unreadable(
            "it is protected by a password, or in the format of Office before 2007: save it "
            "without a password and in the present format"
        )
    parts: Parts = {}
    total = 0
    with damage_told(), ZipFile(BytesIO(body)) as archive:
        for name in archive.namelist():
            content = bytearray()
            with archive.open(name) as member:
                while block := member.read(BLOCK):
                    total += len(block)
                    if total > limits.max_expanded_bytes:
                        raise Unreadable(
                            f"unpacked it is larger than {limits.max_expanded_bytes:,} bytes "
                            "(PARSE_MAX_EXPANDED_BYTES)"
                        )
                    if name.endswith((".xml", ".rels")):
                        content += block
            if content:
                parts[name] = plain(bytes(content))
    return parts


def plain(xml: bytes) -> bytes:
    """Return the XML; raise Unreadable when it declares anything, such as entities.

    No Office program does. Null bytes are those of UTF-16.
    """
    start = xml.replace(b"\0", b"")
    if b"<!DOCTYPE" in start or b"<!ENTITY" in start:
        raise Unreadable("it declares XML entities, which no Office file needs: it may be hostile")
    return xml


@contextmanager
def damage_told() -> Iterator[None]:
    """Raise Unreadable for whatever a broken file makes a parser stumble over."""
    try:
        yield
    except RecursionError:
        raise
    except BROKEN as error:
        raise Unreadable("it is damaged: parts of it are missing or cannot be read") from error


def tree(parts: Parts, name: str) -> Element:
    """Return a part as elements. Raises KeyError when there is none, ParseError when broken."""
    root: Element = fromstring(parts[name], forbid_dtd=True)
    return root


def related(parts: Parts, name: str) -> dict[str, str]:
    """Return the parts that one refers to, by the ids it does it with. Raises ParseError."""
    folder, file = split(name)
    relations = f"{folder}/_rels/{file}.rels"
    if relations not in parts:
        return {}
    return {
        each.get("Id", ""): normpath(join("/", folder, each.get("Target", ""))).lstrip("/")
        for each in tree(parts, relations)
        if each.get("TargetMode") != "External"
    }


def reference(element: Element, name: str = "id") -> str:
    """Return the id by which an element refers to another part; nothing when it does not."""
    return next((value for key, value in element.items() if key.endswith(f"}}{name}")), "")


def said_of_itself(parts: Parts) -> tuple[str, date | None]:
    """Return the title and the last change that the file's properties name, where they do."""
    if "docProps/core.xml" not in parts:
        return "", None
    with damage_told():
        core = tree(parts, "docProps/core.xml")
    title = as_text(core.findtext(f"{DUBLIN}title"))
    if title.lower().startswith(NAMELESS):
        title = ""
    return title, as_date(core.findtext(f"{TERMS}modified"))
