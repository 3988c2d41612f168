"""Mail: messages without what they quote, and what is attached to them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage, Message, MIMEPart
from email.policy import default
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath

from selectolax.lexbor import LexborHTMLParser

from knowledge.errors import Unreadable
from knowledge.parsing import is_readable
from knowledge.parsing.dispatch import parse as parse_file
from knowledge.parsing.encoding import decode
from knowledge.parsing.markup import markdown
from knowledge.parsing.normalization import clean_characters, collapse_blank_lines
from knowledge.parsing.parsed_page import Limits, Page, as_text

HEADERS = ("From", "To", "Cc", "Date")
MESSAGE = re.compile(rb"^From [^\n]*\n(?=[\w-]+:)", re.MULTILINE)
# What programs put around the message that is answered.
QUOTED = (
    "blockquote[type=cite], .gmail_quote, .gmail_attr, .moz-cite-prefix, .yahoo_quoted, "
    ".protonmail_quote, #appendonsend, #divRplyFwdMsg, style, script"
)
SIGNATURE = "-- "
# Three headers below each other begin a message that is answered or forwarded, in any language.
HEADER_LINE = re.compile(r"\*?[^\W\d_][\w .-]{0,20}:\*? \S")
BLOCK = 3
MOST_ATTACHED = 100


def parse(body: bytes, limits: Limits) -> list[Page]:
    """Return the message of a file, and the files attached to it in formats known here."""
    if not body.strip():
        raise Unreadable("it is empty")
    return list(pages(body, limits))


def parse_mbox(body: bytes, limits: Limits) -> list[Page]:
    """Return the messages of a mailbox. Raises Unreadable."""
    matches = list(MESSAGE.finditer(body))
    if not matches:
        raise Unreadable("it is no mailbox: no line begins with 'From ' as one does")
    if len(matches) > limits.max_pages:
        raise Unreadable(f"it holds more than {limits.max_pages:,} messages (PARSE_MAX_PAGES)")
    ends = [*(match.start() for match in matches[1:]), len(body)]
    return [
        page
        for match, end in zip(matches, ends, strict=True)
        for page in pages(body[match.end() : end], limits)
    ]


def pages(body: bytes, limits: Limits) -> Iterator[Page]:
    """Yield a message, and what is attached to it. Raises Unreadable."""
    try:
        message = message_from_bytes(body, policy=default)
        subject = as_text(str(message["Subject"] or ""))
        page, attached = message_page(message, subject)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable("it is damaged: it cannot be read as a message") from error
    others: list[Page] = []
    left: list[str] = []
    for name, content in attached:
        if not is_readable(name):
            continue  # the message names it
        try:
            others += [about(each, name, subject) for each in parse_file(name, content, limits)]
        except Unreadable as error:
            left.append(f"the attachment {name} was left out: {error}")
    yield replace(page, warnings=[*page.warnings, *left])
    yield from others


def about(page: Page, name: str, subject: str) -> Page:
    """Return a page of an attachment, named by its file and below its message."""
    crumbs = page.crumbs or ([subject] if subject else [])
    return replace(page, title=page.title or PurePosixPath(name).stem, crumbs=crumbs)


def message_page(message: EmailMessage, subject: str) -> tuple[Page, list[tuple[str, bytes]]]:
    """Return a message as a page, and its attachments by name."""
    part = message.get_body(("plain", "html"))
    text = body_text(part) if part is not None else ""
    attached = list(attachments(message))
    headers = [f"- {name}: {as_text(str(message[name]))}" for name in HEADERS if message[name]]
    names = ", ".join(name for name, _ in attached)
    headers += [f"- Attached: {names}"] if names else []
    content = collapse_blank_lines("\n".join(headers) + "\n\n" + text)
    date = message["Date"]
    sent = parsedate_to_datetime(str(date)).date() if date else None
    return Page(content, title=subject, last_updated=sent), attached


def attachments(message: EmailMessage) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of what is attached; of pictures within the text nothing."""
    for number, part in enumerate(message.iter_attachments()):
        if number >= MOST_ATTACHED:
            return
        if part.get_content_type() == "message/rfc822":
            payload = part.get_payload()
            inner = payload[0] if isinstance(payload, list) and payload else None
            if isinstance(inner, Message):
                yield f"{as_text(str(inner['Subject'] or '')) or 'message'}.eml", bytes(inner)
        elif name := as_text(part.get_filename() or ""):
            content = part.get_payload(decode=True)
            yield PurePosixPath(name).name, content if isinstance(content, bytes) else b""


def body_text(part: MIMEPart) -> str:
    """Return what a message says itself; all of it where it says nothing else."""
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes) or not raw.strip():
        return ""
    text, _ = decode(raw, part.get_content_charset() or "")
    if part.get_content_type() == "text/html":
        tree = LexborHTMLParser(text)
        for node in tree.css(QUOTED):
            node.decompose()
        own = markdown(tree.body.html or "") if tree.body is not None else ""
        return own or markdown(text)
    text = clean_characters(text)
    return own_lines(text) or text


def own_lines(text: str) -> str:
    """Return a message without quotations, what announces them, and the signature."""
    kept: list[str] = []
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if line == SIGNATURE or begins_another(lines, place):
            break
        if line.lstrip().startswith(">"):
            drop_announcement(kept)
            continue
        kept.append(line)
    while kept and is_rule(kept[-1]):
        kept.pop()
    return "\n".join(kept).strip()


def begins_another(lines: list[str], place: int) -> bool:
    """Tell whether the headers of another message begin in a line, after an empty one or a rule."""
    block = lines[place : place + BLOCK]
    is_apart = place > 0 and (not lines[place - 1].strip() or is_rule(lines[place - 1]))
    return is_apart and len(block) == BLOCK and all(map(HEADER_LINE.match, block))


def is_rule(line: str) -> bool:
    """Tell whether a line is empty, or one of dashes around a few words at most."""
    return not line.strip() or bool(re.fullmatch(r"[-_]{3,}.{0,40}?[-_]*\s*", line))


def drop_announcement(kept: list[str]) -> None:
    """Take away "On Monday, Ann wrote:", which may be two lines, from the end."""
    while kept and not kept[-1].strip():
        kept.pop()
    if kept and kept[-1].rstrip().endswith((":", "\uff1a")):
        kept.pop()
        if kept and kept[-1].strip() and len(kept) > 1 and not kept[-2].strip():
            kept.pop()
