"""Inclusion: puts in place what a file includes of the files beside it, and never of others.

The text of an included file takes the place of the line that includes it before anything is
parsed, so that a change to it is a change of the page, and whoever parses opens no file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath

# A path within what is ingested to the file's bytes; None when there is none to be read.
Read = Callable[[str], bytes | None]

RST = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+(?P<kind>include|literalinclude)::[ \t]+(?P<path>\S.*?)[ \t]*$"
)
OPTION = re.compile(r"^[ \t]+:([\w-]+):[ \t]*(.*?)[ \t]*$")
ASCIIDOC = re.compile(r"^include::(?P<path>[^\[\n]+)\[(?P<options>[^\]\n]*)\][ \t]*$")
ATTRIBUTE = re.compile(r"([\w-]+)=(?:\"([^\"]*)\"|([^,]*))")
TAG = re.compile(r"\b(tag|end)::([\w-]+)\[\]")
# conf.py is never run: only texts that stand there as such are read.
LITERAL = re.compile(r"^(release|version)[ \t]*=[ \t]*(['\"])([^'\"\\\n]{1,100})\2", re.MULTILINE)
# How names of files end that may include others; lower case, as everybody writes them.
WITH_PARTS = (".rst", ".adoc", ".asciidoc")
DEEPEST = 8
# Bytes: of what a page includes all in all, and of a conf.py.
LARGEST, LARGEST_CONF = 1_000_000, 200_000


@dataclass
class Inclusion:
    """Reads what one page includes, within limits."""

    read: Read
    room: int = LARGEST

    def text(self, folder: str, target: str) -> tuple[str, str] | None:
        """Return the path of a file that is included, and its text; None when it may not be."""
        path = within(folder, target)
        if path is None or (body := self.read(path)) is None or len(body) > self.room:
            return None
        self.room -= len(body)
        return path, body.decode("utf-8", "surrogateescape").replace("\r\n", "\n")


def with_inclusions(path: str, body: bytes, read: Read) -> bytes:
    """Return a file with what it includes in place, and its Sphinx project's version at its end.

    `path` is where it lies within what is ingested. What may not be read stays as it is, for the
    parser to leave out.
    """
    ending = PurePosixPath(path).suffix.lower()
    if ending not in EXPAND:
        return body
    expand, sign = EXPAND[ending]
    inclusion = Inclusion(read)
    if sign in body:
        lines = body.decode("utf-8", "surrogateescape").split("\n")
        body = "\n".join(expand(lines, path, inclusion, DEEPEST)).encode("utf-8", "surrogateescape")
    return body + definitions(path, read) if ending == ".rst" else body


def within(folder: str, target: str) -> str | None:
    """Return the path a file names within what is ingested; None when it leads out of it.

    An absolute path begins where the ingested folder does. What is hidden is not for reading.
    """
    joined = target.lstrip("/") if target.startswith("/") else f"{folder}/{target}"
    path = normpath(joined.lstrip("/") or ".")
    parts = path.split("/")
    is_inside = not any(part.startswith(".") for part in parts) and "\\" not in path
    return path if is_inside else None


def rst_lines(lines: Sequence[str], path: str, inclusion: Inclusion, depth: int) -> Iterator[str]:
    """Yield the lines of a file of reStructuredText, its inclusions in place."""
    folder = str(PurePosixPath(path).parent)
    place = 0
    while place < len(lines):
        match = RST.match(lines[place])
        place += 1
        if match is None:
            yield lines[place - 1]
            continue
        begin = place - 1
        options: dict[str, str] = {}
        while place < len(lines) and (option := OPTION.match(lines[place])):
            options[option[1]] = option[2]
            place += 1
        found = inclusion.text(folder, match["path"]) if depth else None
        if found is None or "parser" in options:
            yield from lines[begin:place]
            continue
        included = selected(found[1].split("\n"), options)
        if match["kind"] == "literalinclude" or {"literal", "code"} & options.keys():
            language = options.get("language") or options.get("code") or ""
            included = ["", f".. code-block:: {language}", "", *(f"   {each}" for each in included)]
        else:
            included = list(rst_lines(included, found[0], inclusion, depth - 1))
        yield from (f"{match['indent']}{each}" if each else "" for each in [*included, ""])


def asciidoc_lines(
    lines: Sequence[str], path: str, inclusion: Inclusion, depth: int
) -> Iterator[str]:
    """Yield the lines of an AsciiDoc file, its inclusions in place."""
    folder = str(PurePosixPath(path).parent)
    for line in lines:
        match = ASCIIDOC.match(line)
        found = inclusion.text(folder, match["path"]) if match and depth else None
        if match is None or found is None:
            yield line
            continue
        options = {
            name: quoted or bare for name, quoted, bare in ATTRIBUTE.findall(match["options"])
        }
        included = tagged(found[1].split("\n"), options.get("tag") or options.get("tags") or "")
        options["lines"] = options.get("lines", "").replace("..", "-").replace(";", ",")
        yield from asciidoc_lines(selected(included, options), found[0], inclusion, depth - 1)


def tagged(lines: Sequence[str], names: str) -> list[str]:
    """Return the lines between the marks of these tags, all without any; never the marks."""
    wanted = {name for name in re.split(r"[,;]", names) if name and name not in {"*", "**"}}
    open_tags: set[str] = set()
    kept: list[str] = []
    for line in lines:
        if mark := TAG.search(line):
            (open_tags.add if mark[1] == "tag" else open_tags.discard)(mark[2])
        elif not wanted or wanted & open_tags:
            kept.append(line)
    return kept


# By the end of a file's name, and what a file without inclusions does not have in it.
EXPAND = {
    ".rst": (rst_lines, b"include::"),
    ".adoc": (asciidoc_lines, b"include::"),
    ".asciidoc": (asciidoc_lines, b"include::"),
}


def selected(lines: Sequence[str], options: dict[str, str]) -> list[str]:
    """Return the lines of an included file that the options choose; all without any."""
    chosen = list(lines)
    if name := options.get("pyobject"):
        chosen = block_of(chosen, name)
    if spans := options.get("lines"):
        numbers = set(line_numbers(spans, len(chosen)))
        chosen = [line for number, line in enumerate(chosen, start=1) if number in numbers]
    first, last = options.get("start-line", ""), options.get("end-line", "")
    if is_integer(first) or is_integer(last):
        chosen = chosen[int(first or 0) : int(last) if is_integer(last) else None]
    for option, shift in (("start-after", 1), ("start-at", 0)):
        if mark := options.get(option):
            at = line_with(mark, chosen)
            chosen = chosen[at + shift :] if at is not None else chosen
    for option, shift in (("end-before", 0), ("end-at", 1)):
        if mark := options.get(option):
            at = line_with(mark, chosen)
            chosen = chosen[: at + shift] if at is not None else chosen
    return chosen


def is_integer(text: str) -> bool:
    """Tell whether it is a short whole number."""
    return re.fullmatch(r"-?\d{1,9}", text) is not None


def line_with(mark: str, lines: Sequence[str]) -> int | None:
    """Return the place of the first line that holds the mark."""
    return next((place for place, line in enumerate(lines) if mark in line), None)


def line_numbers(spans: str, count: int) -> Iterator[int]:
    """Yield the numbers in "1-3,5,8-", up to `count`."""
    for span in spans.split(","):
        if match := re.fullmatch(r"\s*(\d{1,9})?\s*(-)?\s*(\d{1,9})?\s*", span):
            first = int(match[1] or 1)
            last = int(match[3] or count) if match[2] else first
            yield from range(first, min(last, count) + 1)


def block_of(lines: Sequence[str], name: str) -> list[str]:
    """Return the class or function of that name, such as "Queue.put", by its indentation."""
    chosen = list(lines)
    for part in name.split("."):
        opening = re.compile(rf"(\s*)(?:async\s+def|def|class)\s+{re.escape(part)}\b")
        begin = next((place for place, line in enumerate(chosen) if opening.match(line)), None)
        if begin is None:
            return chosen
        indent = len(chosen[begin]) - len(chosen[begin].lstrip())
        end = begin + 1
        while end < len(chosen) and (
            not chosen[end].strip() or len(chosen[end]) - len(chosen[end].lstrip()) > indent
        ):
            end += 1
        chosen = chosen[begin:end]
    return chosen


def definitions(path: str, read: Read) -> bytes:
    """Return what |release| and |version| stand for in the Sphinx project of a page.

    That is what the nearest conf.py above it gives as a text; nothing where it calculates it.
    """
    for folder in PurePosixPath(path).parents:
        conf = read(str(folder / "conf.py"))
        if conf is not None and len(conf) <= LARGEST_CONF:
            found = {
                name: text for name, _, text in LITERAL.findall(conf.decode("utf-8", "replace"))
            }
            lines = [f".. |{name}| replace:: {found[name]}" for name in sorted(found)]
            return "\n".join(["", "", *lines, ""]).encode() if lines else b""
    return b""
