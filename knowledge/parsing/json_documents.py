"""JSON documents: JSON and JSONL whose objects are documents already, as in search corpora."""

import json
import re
from dataclasses import replace
from datetime import date
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from knowledge.errors import Unreadable
from knowledge.parsing.encoding import decode
from knowledge.parsing.normalization import normalise
from knowledge.parsing.parsed_page import Limits, Page, as_date, as_language, as_text


class Entry(BaseModel):
    """One document as JSON. Chunks are cut anew, so they are ignored; `version` is its own."""

    model_config = ConfigDict(extra="ignore")

    content: str = Field(min_length=1, validation_alias=AliasChoices("content", "text"))
    title: str = ""
    source: str = Field(default="", max_length=1000)
    crumbs: list[str] = []
    description: str = ""
    summary: str = ""
    keypoints: list[str] = []
    keywords: list[str] = []
    audience: str = Field(default="", max_length=100)
    language: str = ""
    version: str | int | float | None = None
    last_updated: date | str | None = None


IGNORED = frozenset({"id", "_id", "chunks"})
KNOWN = IGNORED | {"text"} | Entry.model_fields.keys()
ENTRIES = TypeAdapter(list[Entry])
LINES_NAMED = 5  # when some lines of JSONL cannot be read
TITLE = re.compile(r"\s*Title:[ \t]*(\S.*)(?:\n|\Z)")


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the pages of a JSON file: one object or a list of them. Raises Unreadable."""
    text, warnings = decode(body)
    data = load_json(text)
    documents = data if isinstance(data, list) else [data]
    try:
        entries = ENTRIES.validate_python(documents)
    except ValidationError as error:
        raise Unreadable(validation_problem(error)) from error
    return [
        page(entry, warnings + unknown_key_warnings(document))
        for entry, document in zip(entries, documents, strict=True)
    ]


def parse_lines(body: bytes, _: Limits) -> list[Page]:
    """Return the pages of a JSONL file. Raises Unreadable when no line can be read.

    A document without a source is known by its `id`. Lines that cannot be read are left out, with
    a warning on the first page.
    """
    text, warnings = decode(body)
    pages: list[Page] = []
    problems: list[str] = []
    unknown_keys: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                data = load_json(line)
                pages.append(page_of_line(data))
                unknown_keys.update(unknown_key_warnings(data))
            except Unreadable as error:
                problems.append(f"line {number:,} left out: {error}".replace(" line 1,", ""))
    if problems and not pages:
        raise Unreadable(problems[0].replace(" left out", ""))
    if pages:
        more = (
            [f"{len(problems) - LINES_NAMED:,} more lines left out"]
            if problems[LINES_NAMED:]
            else []
        )
        page_warnings = [*warnings, *sorted(unknown_keys), *problems[:LINES_NAMED], *more]
        pages[0] = replace(pages[0], warnings=page_warnings)
    return pages


def page_of_line(data: Any) -> Page:
    """Return the page of one line. Raises Unreadable."""
    try:
        (entry,) = ENTRIES.validate_python([data])
    except ValidationError as error:
        raise Unreadable(validation_problem(error).replace("document 1, ", "", 1)) from error
    source = entry.source or as_text(data.get("id", data.get("_id")))
    return replace(page(entry, []), source=source)


def load_json(text: str) -> Any:
    """Return the value of a JSON text. Raises Unreadable."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"broken JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise Unreadable("broken JSON: nested too deeply, or a number too long") from error


def page(entry: Entry, warnings: list[str]) -> Page:
    """Return the page an entry describes; "Title: X" as its first line is its title."""
    fields = entry.model_dump(exclude={"content", "title", "language", "version", "last_updated"})
    title_line = None if entry.title else TITLE.match(entry.content)
    return Page(
        content=normalise(entry.content[title_line.end() :] if title_line else entry.content),
        title=entry.title or (title_line[1].strip() if title_line else ""),
        language=as_language(entry.language),
        edition=as_text(entry.version),
        last_updated=as_date(entry.last_updated),
        warnings=warnings,
        **fields,
    )


def unknown_key_warnings(data: dict[str, Any]) -> list[str]:
    """Return a warning about keys that are no field of a document."""
    names = sorted(data.keys() - KNOWN)
    return [f"unknown keys left out: {', '.join(names)}"] if names else []


def validation_problem(error: ValidationError) -> str:
    """Return the first thing wrong with the entries, and where."""
    problem = error.errors()[0]
    number, *path = problem["loc"] or (0,)
    place = f"document {int(number) + 1}"
    if path:
        place += f", {'.'.join(map(str, path))}"
    return f"not in the document structure: {place}: {problem['msg']}"
