"""Normalization: Markdown as people write it into Markdown that reads as text."""

import html
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowledge.parsing.tables import from_texts, sentences

ABSOLUTE = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)

IMPORTS = re.compile(r"^(?:import\s.+?\sfrom\s+['\"]|import\s+['\"]|export\s+(?:const|default)\s)")
# What stands between these is for machines, or for who edits the page.
UNREAD = (
    ("<!--", "-->"),
    ("{/*", "*/}"),
    ("{{<", ">}}"),
    ("{{%", "%}}"),
    ("<%", "%>"),
    ("<head>", "</head>"),
    ("<script", "</script>"),
    ("<style", "</style>"),
)
ADMONITION = re.compile(r"^[ \t]*:{3,}[ \t]*(\w*)(?:\[(.*?)\])?[ \t]*(.*?)[ \t]*$", re.MULTILINE)
DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]+\S+.*$\n?", re.MULTILINE)
ANCHOR = re.compile(r"^(#{1,6}[ \t].*?)[ \t]*\{#[\w-]+\}[ \t]*$", re.MULTILINE)
# All that Python takes for a line break: Markdown knows only one, and lines are counted by both.
BREAK = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
UNSEEN = re.compile("[\0\u200b\ufeff]")
# Without any of these a text holds no code and no table: parsing it for them would take nearly all
# the time that a short text takes.
MARKS = ("```", "~~~", "|", "\t", "    ")
UNDERLINE = re.compile(r"\n {0,3}(?:=+|-+)[ \t]*(?:\n|\Z)")
# What stands before the text of a line where lists and quotations hold each other, and how much of
# it may: the time it takes to cut such a text grows with the cube of the levels.
LEAD = re.compile(r"(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])))++[ \t]*")
LEAD_LENGTH = 48
# What must not be taken for words of the sentence it precedes.
SERIOUS = frozenset({"warning", "caution", "danger", "important"})


def normalise(text: str, *, mdx: bool = False) -> str:
    """Return the text with tables as lists, links and tags reduced to their words.

    Lists and code blocks stay as they are, underlined headings get a "#" in front instead. With
    `mdx`, or when a line imports a component, components count as tags and indented text is no
    code.
    """
    text = clean_characters(text)
    mdx = mdx or any(IMPORTS.match(line) for line in text.splitlines())
    text = with_atx_headings(without_unread(text, mdx=mdx), mdx=mdx)
    return collapse_blank_lines(
        "".join(
            part if kind == "code" else prose_text(part, mdx=mdx)
            for kind, part in segments(text, mdx=mdx)
        )
    )


def clean_characters(text: str) -> str:
    """Return the text with one kind of line break and without characters nobody sees."""
    return UNSEEN.sub("", BREAK.sub("\n", text))


def block_tokens(text: str, *, mdx: bool) -> list[Token]:
    """Return the block structure alone. Tags stay text: a fence inside a <div> is a fence."""
    return parser(mdx=mdx).parse(text)


@cache
def parser(*, mdx: bool) -> MarkdownIt:
    """Return what finds blocks: making it takes longer than parsing a short text."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")
    markdown.disable("code" if mdx else [])
    # It puts its rules in order when first used, and of two threads the second would find none.
    markdown.parse("a")
    return markdown


def is_plain(text: str) -> bool:
    """Tell whether a text surely holds no code block and no table."""
    return not any(mark in text for mark in MARKS)


def without_unread(text: str, *, mdx: bool) -> str:
    """Return the text without comments, scripts and styles, those shown as code left alone."""
    for opening, closing in UNREAD:
        if opening in text:
            text = without_between(opening, closing, text, mdx=mdx)
    return text


def without_between(opening: str, closing: str, text: str, *, mdx: bool) -> str:
    """Return the text without what stands between the marks.

    Searched by hand: a lazy pattern takes quadratic time over marks that are never closed.
    """
    code = {line for begin, end, _ in code_and_tables(text, mdx=mdx) for line in range(begin, end)}
    parts: list[str] = []
    done = line = 0
    while (begin := text.find(opening, done)) >= 0:
        line += text.count("\n", done, begin)
        line_start = text.rfind("\n", 0, begin) + 1
        end = text.find(closing, begin)
        if end < 0:
            break
        is_code = line in code or text.count("`", line_start, begin) % 2 == 1
        end = begin + len(opening) if is_code else end + len(closing)
        parts.append(text[done:end] if is_code else text[done:begin])
        line += text.count("\n", begin, end)
        done = end
    return "".join([*parts, text[done:]])


def with_atx_headings(text: str, *, mdx: bool) -> str:
    """Return the text with "#" before its underlined headings instead of the line below."""
    if not UNDERLINE.search(text):
        return text
    lines = text.splitlines(keepends=True)
    for token, inside in pairwise(block_tokens(text, mdx=mdx)):
        if token.map and token.markup in {"=", "-"} and is_heading(token):
            lines[token.map[0]] = f"{'#' * int(token.tag[1])} {inside.content}\n"
            lines[token.map[0] + 1] = ""
    return "".join(lines)


def is_heading(token: Token) -> bool:
    """Tell whether a heading opens here that is the document's own.

    Several lines above a line of dashes are a paragraph and a rule far more often.
    """
    if token.type != "heading_open" or token.level or token.map is None:
        return False
    return token.markup[0] == "#" or token.map[1] - token.map[0] == 2


def code_and_tables(text: str, *, mdx: bool) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (first line, line after the last, rows) of code blocks (no rows) and of tables."""
    blocks = [] if is_plain(text) else block_tokens(text, mdx=mdx)
    for place, token in enumerate(blocks):
        if token.map is None:
            continue
        if token.type in {"fence", "code_block"}:
            yield token.map[0], token.map[1], []
        elif token.type == "table_open":
            yield token.map[0], token.map[1], rows(blocks[place:])


def rows(blocks: list[Token]) -> list[str]:
    """Return a table's rows as sentences."""
    lines: list[list[str]] = []
    for place, token in enumerate(blocks):
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            lines.append([])
        elif token.type in {"th_open", "td_open"}:
            lines[-1].append(blocks[place + 1].content.replace("\n", " ").strip())
    return sentences(from_texts(lines))


def segments(text: str, *, mdx: bool) -> Iterator[tuple[str, str]]:
    """Yield ("code", lines) and ("prose", lines); tables have become lists in the prose."""
    lines = text.splitlines(keepends=True)
    done = 0
    for begin, end, table in code_and_tables(text, mdx=mdx):
        yield "prose", "".join(lines[done:begin])
        if table:
            indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
            yield "prose", "".join(f"{indent}- {row}\n" for row in table if row)
        else:
            yield "code", "".join(lines[begin:end])
        done = end
    yield "prose", "".join(lines[done:])


def prose_text(text: str, *, mdx: bool) -> str:
    """Return text outside code blocks, its markup reduced to words."""
    text = "".join(line for line in text.splitlines(keepends=True) if not IMPORTS.match(line))
    text = ADMONITION.sub(admonition_title, DEFINITION.sub("", text))
    text = ANCHOR.sub(r"\1", text)
    return without_inline_markup(text, mdx=mdx)


def admonition_title(admonition: re.Match[str]) -> str:
    """Return the title of ":::tip Title" as a paragraph of its own: it may be a whole sentence."""
    kind, title = admonition[1].lower(), admonition[2] or admonition[3]
    if title:
        return f"{title}\n"
    return f"{kind.capitalize()}:" if kind in SERIOUS else ""


def shallow(text: str) -> str:
    """Return the text with quotations and lists that are nested too deeply a little less deep."""
    return "".join(map(shallow_line, text.splitlines(keepends=True)))


def shallow_line(line: str) -> str:
    """Return a line with no more marks and blanks before its text than a person would write."""
    lead = LEAD.match(line) if len(line) > LEAD_LENGTH else None
    if lead is None or lead.end() <= LEAD_LENGTH:
        return line
    return line[:LEAD_LENGTH] + line[lead.end() :]


def collapse_blank_lines(text: str) -> str:
    """Return the text without trailing blanks and with one empty line at most."""
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


ELEMENTS = (
    "a abbr address article aside audio b blockquote br button center cite code col colgroup dd "
    "del details dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i "
    "iframe img input ins kbd label li main mark nav ol option p picture pre q s samp script "
    "section select small source span strike strong style sub summary sup svg path table tbody "
    "td tfoot th thead time tr tt u ul var video wbr"
)
# Only what HTML calls an element, and in MDX what looks like a component: <your-domain> in the
# middle of a sentence is a placeholder and must stay.
ATTRIBUTE = (
    r"""\s+(?:[\w:@.-]++(?:\s*=\s*(?:"[^"]*"|'[^']*'|\{(?:[^{}]|\{[^{}]*\})*\}|[^\s"'=<>`{}]+))?"""
    r"""|\{\.{3}[^{}]*\})"""
)
# "(address "title")", with one pair of parentheses inside the address at most.
TARGET = r"""\(\s*<?[^()\s<>]*(?:\([^()\s]*\)[^()\s]*)*>?(?:\s+["'][^"'\n]*["'])?\s*\)"""
INLINE = re.compile(
    rf"""
    (?P<code>(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`))
    | (?P<entity>&(?:\#\d{{1,7}}|\#x[0-9a-fA-F]{{1,6}}|[A-Za-z]\w{{1,30}});)
    | !\[(?P<alt>[^\]\n]{{0,500}})\](?:{TARGET}|\[[^\]\n]*\])
    | (?P<link>\[(?P<label>(?:[^\[\]]|\[[^\[\]]{{0,200}}\]){{1,500}}+)\]
        (?P<target>{TARGET}|\[[^\]\n]*\]))
    | <(?P<address>(?:https?://|mailto:)[^<>\s]+)>
    | <(?P<closing>/?)
        (?P<name>(?:{"|".join(ELEMENTS.split())})\b|(?<!\w<)[A-Z][A-Za-z0-9.]*(?![\w-]))
        (?P<attributes>(?:{ATTRIBUTE})*)\s*(?P<empty>/?)\s*>
    """,
    re.VERBOSE | re.DOTALL,
)
# What each of them begins with. Looked for first: tried at every letter, the pattern above takes
# most of the time.
SIGN = re.compile(r"[`&!\[<]")
BLOCKS = (
    "address article aside blockquote br center dd details div dl dt figcaption figure footer "
    "header hr iframe main nav ol p picture pre section summary table tbody td tfoot th thead tr "
    "ul video"
)
LINES = frozenset(BLOCKS.split())
# What editors and forges put there when nobody describes an image.
UNDESCRIBED = frozenset({"alt text", "alt", "image", "img"})


def without_inline_markup(text: str, *, mdx: bool) -> str:
    """Return text outside code blocks without its inline markup; with `mdx`, components go too."""
    parts: list[str] = []
    done = place = 0
    while sign := SIGN.search(text, place):
        place = sign.end()
        if match := INLINE.match(text, sign.start()):
            parts += [text[done : match.start()], inline_text(match, mdx=mdx)]
            done = place = match.end()
    return "".join([*parts, text[done:]])


def inline_text(match: re.Match[str], *, mdx: bool) -> str:
    """Return what remains of inline markup: code, absolute links and words stay."""
    if match["code"]:
        return match[0]
    if match["alt"] is not None:
        return "" if match["alt"].strip().casefold() in UNDESCRIBED else match["alt"]
    if match["entity"]:
        return html.unescape(match["entity"])
    if match["link"]:
        label = without_inline_markup(match["label"], mdx=mdx)
        target = match["target"][1:-1].strip().split(" ")[0].strip("<>")
        return f"[{label}]({target})" if ABSOLUTE.match(target) and label != target else label
    if match["address"]:
        return match["address"].removeprefix("mailto:")
    return tag_text(match, mdx=mdx)


def tag_text(match: re.Match[str], *, mdx: bool) -> str:
    """Return what remains of a tag: a line break, a mark, a badge or nothing."""
    name = match["name"]
    if name[0].isupper():
        if not mdx:
            return match[0]
        return f"({name.lower()})" if is_badge(match) else ""
    if name == "code":
        return "`"
    if name == "li" and not match["closing"]:
        return "\n- "
    if re.fullmatch("h[1-6]", name):
        return "\n\n" if match["closing"] else f"\n\n{'#' * int(name[1])} "
    return "\n" if name in LINES else ""


def is_badge(match: re.Match[str]) -> bool:
    """Tell whether a component is a word of its line: <Required /> beside a field's name."""
    before = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    is_bare = match["empty"] and not match["attributes"] and before.strip()
    return bool(is_bare and re.fullmatch(r"[A-Z][a-z]+", match["name"]))
