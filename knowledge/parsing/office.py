"""Office: what Word and PowerPoint share: parts unpacked within limits, charts, equations."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from io import BytesIO
from itertools import zip_longest
from posixpath import join, normpath, split
from xml.etree.ElementTree import Element, ParseError
from xml.parsers.expat import ExpatError
from zipfile import BadZipFile, ZipFile

from defusedxml.ElementTree import fromstring

from knowledge.errors import Unreadable
from knowledge.parsing.parsed_page import Limits, as_date, as_text
from knowledge.parsing.tables import from_texts, sentences

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


XML = (".xml", ".rels")


def unpack(
    body: bytes,
    limits: Limits,
    *,
    kept: tuple[str, ...] = XML,
    declared_nothing: tuple[str, ...] = XML,
) -> Parts:
    """Return the parts of an Office file or a book whose names end so. Raises Unreadable.

    Everything in the archive is unpacked and counted, pictures too, whatever size it claims. Those
    that end as `declared_nothing` says may declare nothing.
    """
    if not body.strip():
        raise Unreadable("it is empty")
    if body.startswith(OLD):
        raise Unreadable(
            "it is protected by a password, or in the format of Office before 2007: save it "
            "without a password and in the present format"
        )
    parts: Parts = {}
    room = limits.max_expanded_bytes
    with damage_as_unreadable(), ZipFile(BytesIO(body)) as archive:
        for name in archive.namelist():
            content, size = member(archive, name, room, is_kept=name.endswith(kept))
            room -= size
            if room < 0:
                raise Unreadable(
                    f"unpacked it is larger than {limits.max_expanded_bytes:,} bytes "
                    "(PARSE_MAX_EXPANDED_BYTES)"
                )
            if content:
                parts[name] = (
                    without_declarations(content) if name.endswith(declared_nothing) else content
                )
    return parts


def member(archive: ZipFile, name: str, room: int, *, is_kept: bool) -> tuple[bytes, int]:
    """Return a part, empty unless it is kept, and its size; that is beyond `room` at once."""
    content, size = bytearray(), 0
    with archive.open(name) as file:
        while size <= room and (block := file.read(BLOCK)):
            size += len(block)
            if is_kept:
                content += block
    return bytes(content), size


def without_declarations(xml: bytes) -> bytes:
    """Return the XML; raise Unreadable when it declares anything, such as entities.

    No Office program does. Null bytes are those of UTF-16.
    """
    text = xml.replace(b"\0", b"")
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise Unreadable("it declares XML entities, which no such file needs: it may be hostile")
    return xml


@contextmanager
def damage_as_unreadable() -> Iterator[None]:
    """Raise Unreadable for whatever a broken file makes a parser stumble over."""
    try:
        yield
    except RecursionError:
        raise
    except BROKEN as error:
        raise Unreadable("it is damaged: parts of it are missing or cannot be read") from error


def parse_part(parts: Parts, name: str) -> Element:
    """Return a part as elements. Raises KeyError when there is none, ParseError when broken."""
    root: Element = fromstring(parts[name], forbid_dtd=True)
    return root


def relationships(parts: Parts, name: str) -> dict[str, str]:
    """Return the parts that one refers to, by the ids it does it with. Raises ParseError."""
    folder, file = split(name)
    relations = f"{folder}/_rels/{file}.rels"
    if relations not in parts:
        return {}
    return {
        relation.get("Id", ""): normpath(join("/", folder, relation.get("Target", ""))).lstrip("/")
        for relation in parse_part(parts, relations)
        if relation.get("TargetMode") != "External"
    }


def relationship_id(element: Element, name: str = "id") -> str:
    """Return the id by which an element refers to another part; nothing when it does not."""
    return next((value for key, value in element.items() if key.endswith(f"}}{name}")), "")


def properties(parts: Parts) -> tuple[str, date | None]:
    """Return the title and the last change that the file's properties name, where they do."""
    if "docProps/core.xml" not in parts:
        return "", None
    with damage_as_unreadable():
        core = parse_part(parts, "docProps/core.xml")
    title = as_text(core.findtext(f"{DUBLIN}title"))
    if title.lower().startswith(NAMELESS):
        title = ""
    return title, as_date(core.findtext(f"{TERMS}modified"))


def chart(root: Element) -> list[str]:
    """Return a chart as its title and a list with the values of each category."""
    series = [(series_values(line, "tx"), line) for line in root.iterfind(".//{*}ser")]
    columns = [[" ".join(name), *series_values(line, "val", "yVal")] for name, line in series]
    categories = next(
        (values for _, line in series if (values := series_values(line, "cat", "xVal"))), []
    )
    rows = zip_longest(["", *categories], *columns, fillvalue="")
    title = root.find("{*}chart/{*}title")
    heading = "".join(line.text or "" for line in title.iterfind(".//{*}t")) if title else ""
    return [heading, as_list_items(sentences(from_texts(list(rows))))]


def series_values(series: Element, *names: str) -> list[str]:
    """Return the values kept with the first part of a series that has one of these names."""
    for name in names:
        values = series.find(f"{{*}}{name}")
        if values is not None:
            return [each.text or "" for each in values.iterfind(".//{*}v")]
    return []


def diagram(root: Element) -> list[str]:
    """Return the texts of a diagram's nodes as a list."""
    nodes = ("".join(each.itertext()).strip() for each in root.iterfind(".//{*}pt/{*}t"))
    return [as_list_items([" ".join(text.split()) for text in nodes if text])]


def as_list_items(lines: list[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"- {line}" for line in lines)


M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
FUNCTIONS = frozenset(
    ["sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "log", "ln", "exp", "lim"]
)
OPERATORS = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "\u22c3": r"\bigcup", "\u22c2": r"\bigcap"}
ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "bar", "\u20d7": "vec"}


def latex(element: Element) -> str:
    """Return an equation, or a part of one."""
    name = element.tag.removeprefix(M)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    return WRITERS.get(name, content_of)(element)


def content_of(element: Element | None) -> str:
    """Return what stands inside an element, in order."""
    return "".join(map(latex, element)) if element is not None else ""


def argument(element: Element, name: str) -> str:
    """Return one part of an element: its numerator, its base."""
    return content_of(element.find(M + name)).strip()


def property_sign(element: Element, name: str, default: str) -> str:
    """Return a sign that the element's properties choose."""
    element_property = element.find(f"*/{M}{name}")
    return element_property.get(f"{M}val", "") if element_property is not None else default


def arguments(element: Element, name: str = "e") -> Iterator[str]:
    """Yield all parts of that name."""
    return (content_of(each).strip() for each in element.findall(M + name))


def scripts(element: Element) -> str:
    """Return what stands below and above."""
    low, high = argument(element, "sub"), argument(element, "sup")
    return (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")


def fraction(element: Element) -> str:
    """Return a fraction; one without a bar is a binomial."""
    command = r"\binom" if property_sign(element, "type", "bar") == "noBar" else r"\frac"
    return f"{command}{{{argument(element, 'num')}}}{{{argument(element, 'den')}}}"


def radical(element: Element) -> str:
    """Return a root."""
    degree = argument(element, "deg")
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{argument(element, 'e')}}}"


def operator(element: Element) -> str:
    """Return a sum, a product or an integral."""
    mark = property_sign(element, "chr", "∫")
    return f"{OPERATORS.get(mark, mark)}{scripts(element)} {argument(element, 'e')}"


def delimiters(element: Element) -> str:
    """Return what stands in brackets."""
    begin, end = property_sign(element, "begChr", "("), property_sign(element, "endChr", ")")
    between = property_sign(element, "sepChr", "|")
    return rf"\left{begin or '.'}{between.join(arguments(element))}\right{end or '.'}"


def function(element: Element) -> str:
    """Return a function and what it is of."""
    name = argument(element, "fName")
    word = name.split("_")[0].split("^")[0]
    command = "\\" + name if word in FUNCTIONS else name
    return f"{command} {argument(element, 'e')}"


def accent(element: Element) -> str:
    """Return what stands under an accent."""
    command = ACCENTS.get(property_sign(element, "chr", "\u0302"), "hat")
    return f"\\{command}{{{argument(element, 'e')}}}"


def matrix(element: Element) -> str:
    """Return a matrix."""
    rows = r" \\ ".join(" & ".join(arguments(row)) for row in element.findall(f"{M}mr"))
    return rf"\begin{{matrix}}{rows}\end{{matrix}}"


WRITERS: dict[str, Callable[[Element], str]] = {
    "f": fraction,
    "sSup": lambda each: argument(each, "e") + scripts(each),
    "sSub": lambda each: argument(each, "e") + scripts(each),
    "sSubSup": lambda each: argument(each, "e") + scripts(each),
    "sPre": lambda each: "{}" + scripts(each) + argument(each, "e"),
    "limLow": lambda each: f"{argument(each, 'e')}_{{{argument(each, 'lim')}}}",
    "limUpp": lambda each: f"{argument(each, 'e')}^{{{argument(each, 'lim')}}}",
    "rad": radical,
    "nary": operator,
    "d": delimiters,
    "func": function,
    "acc": accent,
    "bar": lambda each: rf"\overline{{{argument(each, 'e')}}}",
    "m": matrix,
    "eqArr": lambda each: r" \\ ".join(arguments(each)),
}
