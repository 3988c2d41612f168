"""Inline: links, images, tags and entities within a line, reduced to their words."""

import html
import re

ABSOLUTE = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)

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


def reduced(text: str, *, mdx: bool) -> str:
    """Return text outside code blocks without its inline markup; with `mdx`, components go too."""
    kept: list[str] = []
    done = place = 0
    while sign := SIGN.search(text, place):
        place = sign.end()
        if found := INLINE.match(text, sign.start()):
            kept += [text[done : found.start()], words(found, mdx=mdx)]
            done = place = found.end()
    return "".join([*kept, text[done:]])


def words(found: re.Match[str], *, mdx: bool) -> str:
    """Return what remains of inline markup: code, absolute links and words stay."""
    if found["code"]:
        return found[0]
    if found["alt"] is not None:
        return found["alt"]
    if found["entity"]:
        return html.unescape(found["entity"])
    if found["link"]:
        label = reduced(found["label"], mdx=mdx)
        target = found["target"][1:-1].strip().split(" ")[0].strip("<>")
        return f"[{label}]({target})" if ABSOLUTE.match(target) and label != target else label
    if found["address"]:
        return found["address"].removeprefix("mailto:")
    return tag(found, mdx=mdx)


def tag(found: re.Match[str], *, mdx: bool) -> str:
    """Return what remains of a tag: a line break, a mark, a badge or nothing."""
    name = found["name"]
    if name[0].isupper():
        if not mdx:
            return found[0]
        return f"({name.lower()})" if is_badge(found) else ""
    if name == "code":
        return "`"
    if name == "li" and not found["closing"]:
        return "\n- "
    if re.fullmatch("h[1-6]", name):
        return "\n\n" if found["closing"] else f"\n\n{'#' * int(name[1])} "
    return "\n" if name in LINES else ""


def is_badge(found: re.Match[str]) -> bool:
    """Tell whether a component is a word of its line: <Required /> beside a field's name."""
    before = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
    bare = found["empty"] and not found["attributes"] and before.strip()
    return bool(bare and re.fullmatch(r"[A-Z][a-z]+", found["name"]))
