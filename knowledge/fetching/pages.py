"""Pages: one document from the web, with a file name that tells its format."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

import httpx2

from knowledge.errors import Unreadable
from knowledge.fetching.addresses import Resolve, look_up
from knowledge.fetching.requesting import get
from knowledge.parsing import FORMATS, is_readable

OFFICE = "application/vnd.openxmlformats-officedocument"
EXTENSIONS = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "text/plain": ".txt",
    "application/pdf": ".pdf",
    f"{OFFICE}.wordprocessingml.document": ".docx",
    f"{OFFICE}.presentationml.presentation": ".pptx",
    "application/json": ".json",
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
}
# Servers that know no better call Markdown and JSON plain text, and everything else a stream of
# bytes: there the path's end says more.
VAGUE = {"", "text/plain", "application/octet-stream", "binary/octet-stream"}
# A page that calls itself plain text is none of these, whatever its path.
NOT_PLAIN = {".html", ".htm", ".pdf", ".docx", ".pptx"}
NAME_LENGTH = 100


@dataclass(frozen=True)
class Fetched:
    """A document as its server sent it."""

    url: str  # after all redirects
    name: str
    body: bytes
    charset: str = ""  # that its server says it is in


def fetch(url: str, *, resolve: Resolve = look_up) -> Fetched:
    """Return the document at the URL. Raises Unreadable, saying what was wrong.

    The name's extension is one that `knowledge.parsing` knows.
    """
    answer = get(url, file_name, resolve=resolve)
    return Fetched(
        url=str(answer.url),
        name=file_name(answer.kind, answer.url),
        body=answer.body,
        charset=answer.charset,
    )


def file_name(kind: str, url: httpx2.URL) -> str:
    """Return a name for a document of that content type. Raises Unreadable for other formats."""
    path = PurePosixPath(url.path)
    suffix = extension(kind, path.suffix.lower())
    if not is_readable(f"name{suffix}"):
        raise Unreadable(
            f"its content type is {kind or 'not said'}, and it can only be ingested as one of "
            f"{', '.join(FORMATS)}"
        )
    stem = re.sub(r"[^\w.-]+", "-", path.stem).strip("-.")[:NAME_LENGTH]
    return f"{stem or url.host}{suffix}"


def extension(kind: str, suffix: str) -> str:
    """Return the extension the content type calls for; the path's own where the type is vague."""
    is_plain = kind == "text/plain"
    if kind in VAGUE and is_readable(f"name{suffix}") and not (is_plain and suffix in NOT_PLAIN):
        return suffix
    return EXTENSIONS.get(kind, "")
