"""AsciiDoc: a page of it as Markdown, line by line.

The only programs that read all of the language are Asciidoctor, in Ruby, and asciidoc.py, whose
licence is the GPL. What people write documentation with is read here; what is not known stays.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from knowledge.parsing.encoding import decode
from knowledge.parsing.normalization import SERIOUS, clean_characters, normalise
from knowledge.parsing.outline import title
from knowledge.parsing.parsed_page import Limits, Page, as_date, as_language, as_list
from knowledge.parsing.tables import from_texts, sentences

ATTRIBUTE = re.compile(r":(!?[\w-]+!?):(?:[ \t]+(.*))?$")
REVISION = re.compile(r"v?(\d[\w.+-]*)(?:,[ \t]*([\d-]+).*)?$")
HEADING = re.compile(r"(={1,6})[ \t]+(\S.*)$")
VERBATIM = re.compile(r"(-{4,}|\.{4,}|/{4,}|\+{4,}|`{3,})(.*)$")
AROUND = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--)$")
TABLE = re.compile(r"[|,:!]={3,}$")
STYLE = re.compile(r"\[(.*)\]$")
ITEM = re.compile(r"[ \t]*(\*{1,5}|\.{1,5}|-)[ \t]+(\S.*)$")
CALLOUT = re.compile(r"<(\d+|\.)>[ \t]+(.*)$")
TERM = re.compile(r"(\S.*?)(?::{2,4}|;;)(?:[ \t]+(.*))?$")
REMARK = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+(.*)$")
SILENT = re.compile(r"(?://(?!/)|ifn?def::|ifeval::|endif::|toc::|\[\[[^\]]*\]\]$|'''$|<<<$)")
MACRO = re.compile(r"(include|image|video|audio)::([^\[]*)\[(.*)\]$")
CELL = re.compile(r"(?:^|(?<=\s))(?:\d*(?:\.\d+)?[+*])?[<^>.]*[adehlmsv]?\|")
INLINE = re.compile(
    r"(?P<code>`[^`\n]+`)"
    r"|(?:link:)?(?P<url>(?:https?|mailto)://?[^\s\[\]]+|mailto:[^\s\[\]]+)\[(?P<label>[^\]\n]*)\]"
    r"|<<(?P<id>[^,>\n]+)(?:,(?P<words>[^>\n]*))?>>"
    r"|(?P<macro>xref|link|kbd|btn|menu|footnote|image|pass|anchor|icon|stem):"
    r"(?P<target>[^\s\[\]]*)\[(?P<inside>[^\]\n]*)\]"
    r"|(?<![\w*])\*(?P<bold>[^\s*](?:[^*\n]*[^\s*])?)\*(?![\w*])"
    r"|\{(?P<attribute>[\w-]+)\}"
)
LONGEST_LINE = 20_000


@dataclass
class Reading:
    """What is known while a page is read."""

    attributes: dict[str, str] = field(default_factory=dict)
    style: str = ""  # what the last line in brackets says of the next block
    left_out: int = 0  # files that would be included


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of an AsciiDoc file. Raises Unreadable."""
    text, warnings = decode(body)
    reading = Reading()
    lines = [line[:LONGEST_LINE].rstrip() for line in clean_characters(text).split("\n")]
    content = normalise("\n".join(markdown(header(lines, reading), reading)))
    about = reading.attributes
    if reading.left_out:
        warnings.append(f"left out, as they are not beside it: {reading.left_out} included files")
    return [
        Page(
            content,
            title=title(content),
            description=about.get("description", ""),
            keywords=as_list(about.get("keywords")),
            language=as_language(about.get("lang")),
            edition=about.get("revnumber") or about.get("version", ""),
            last_updated=as_date(about.get("revdate")),
            warnings=warnings,
        )
    ]


def header(lines: Sequence[str], reading: Reading) -> Iterator[str]:
    """Yield the lines without author and revision, which stand right below the title."""
    is_header = False
    for line in lines:
        if line.startswith("= "):
            is_header = True
        elif is_header and not line:
            is_header = False
        elif is_header and not line.startswith((":", "//")):
            if match := REVISION.match(line):
                reading.attributes["revnumber"] = match[1]
                reading.attributes["revdate"] = match[2] or ""
            continue
        yield line


def markdown(source: Iterator[str], reading: Reading) -> Iterator[str]:
    """Yield the lines of a page as Markdown."""
    for line in source:
        if match := verbatim_mark(line):
            yield from verbatim(match[1], match[2], source, reading)
        elif TABLE.match(line):
            yield from table(line, source, reading)
        else:
            yield from prose(line, reading)


def verbatim_mark(line: str) -> re.Match[str] | None:
    """Return the mark of a block of code, and what is said behind it; None for another line."""
    match = VERBATIM.match(line)
    if match is None or (match[2] and match[1][0] != "`"):
        return None
    return match


def verbatim(mark: str, said: str, source: Iterator[str], reading: Reading) -> Iterator[str]:
    """Yield a block of code; of comments and of what is passed through, nothing."""
    inside = []
    for line in source:
        if line == mark:
            break
        inside.append(line)
    style, reading.style = reading.style, ""
    if mark[0] in "/+":
        return
    parts = [part.strip() for part in style.split(",")]
    language = parts[1] if parts[0].startswith("source") and len(parts) > 1 else said.strip()
    yield from ["", f"````{re.sub(r'[^a-zA-Z0-9+#-]', '', language)}", *inside, "````", ""]


def table(mark: str, source: Iterator[str], reading: Reading) -> Iterator[str]:
    """Yield a table's rows as sentences of a list."""
    style, reading.style = reading.style, ""
    cells: list[str] = []
    width = columns(style)
    has_header = "header" in style
    for number, line in enumerate(source):
        if line == mark:
            break
        before, *found = CELL.split(line)
        if cells and before.strip():
            cells[-1] = f"{cells[-1]} {before.strip()}".strip()
        cells += [cell.strip() for cell in found]
        width = width or len(found)
        has_header = has_header or (number == 1 and not line and len(cells) == width)
    width = width or 1
    rows = [
        [inline(cell, reading) for cell in cells[place : place + width]]
        for place in range(0, len(cells), width)
    ]
    grid = from_texts(rows if has_header else [[], *rows])
    yield from ["", *(f"- {row}" for row in sentences(grid if has_header else grid[1:])), ""]


def columns(style: str) -> int:
    """Return how many columns a table is said to have; 0 when it is not said."""
    match = re.search(r"cols=\"?([^\"\]]+)\"?", style)
    if match is None:
        return 0
    repeated = re.fullmatch(r"(\d{1,3})\*.*", match[1].strip())
    return int(repeated[1]) if repeated else len(match[1].split(","))


def prose(line: str, reading: Reading) -> Iterator[str]:
    """Yield a line outside of blocks."""
    if match := ATTRIBUTE.match(line):
        reading.attributes[match[1].strip("!")] = (match[2] or "").strip()
    elif SILENT.match(line) or AROUND.match(line):
        yield ""
    elif match := STYLE.match(line):
        reading.style = match[1]
        name = match[1].lower()
        yield f"{name.capitalize()}:" if name in SERIOUS else ""
    elif match := MACRO.match(line):
        reading.left_out += match[1] == "include"
        yield match[3].split(",")[0].strip('"') if match[1] == "image" else ""
    else:
        yield from text(line, reading)


def text(line: str, reading: Reading) -> Iterator[str]:
    """Yield a heading, an item of a list, a term, a remark or a line of a paragraph."""
    if match := HEADING.match(line):
        yield from ["", f"{'#' * len(match[1])} {inline(match[2], reading)}", ""]
    elif re.match(r"\.[^\s.]", line):
        yield from ["", f"**{inline(line[1:], reading)}**", ""]
    elif match := ITEM.match(line):
        mark = "1." if match[1][0] == "." else "-"
        yield f"{'   ' * (len(match[1]) - 1)}{mark} {inline(match[2], reading)}"
    elif match := CALLOUT.match(line):
        yield f"{'1' if match[1] == '.' else match[1]}. {inline(match[2], reading)}"
    elif match := REMARK.match(line):
        kind = match[1].lower()
        said = inline(match[2], reading)
        yield f"{match[1].capitalize()}: {said}" if kind in SERIOUS else said
    elif (match := TERM.match(line)) and "://" not in match[1]:
        yield f"- {inline(match[1], reading)}:"
        if match[2]:
            yield f"  {inline(match[2], reading)}"
    else:
        yield "" if line.strip() == "+" else inline(line.removesuffix(" +"), reading)


def inline(words: str, reading: Reading) -> str:
    """Return a line with its markup as Markdown, and what its attributes stand for."""
    return INLINE.sub(lambda match: inline_text(match, reading), words)


def inline_text(match: re.Match[str], reading: Reading) -> str:
    """Return what a reader sees of a macro, a reference or an attribute."""
    if match["code"]:
        return re.sub(r"^`\+|\+`$", "`", match[0])
    if match["url"]:
        label = match["label"].split(",")[0].strip('"').rstrip("^")
        return f"[{label}]({match['url']})" if label else match["url"]
    if match["id"]:
        return match["words"] or re.sub(r"[-_]+", " ", match["id"]).strip()
    if match["macro"]:
        return macro_text(match["macro"], match["target"], match["inside"])
    if match["bold"]:
        return f"**{match['bold']}**"
    return reading.attributes.get(match["attribute"], match[0])


def macro_text(name: str, target: str, inside: str) -> str:
    """Return what a reader sees of a macro."""
    if name == "footnote":
        return f" ({inside})"
    if name == "menu":
        return " > ".join(part for part in (target, inside) if part)
    if name in {"anchor", "icon"}:
        return ""
    words = inside.split(",")[0] if name in {"xref", "link", "image"} else inside
    return words.strip('"').rstrip("^") or re.sub(r"[-_]+", " ", target.rpartition("#")[2])
