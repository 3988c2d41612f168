"""Parsing quality: how near what is read from files comes to what was expected of them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table

from assistant.lab.measures import digits
from knowledge.enrichment import headings
from knowledge.errors import Unreadable
from knowledge.parsing import FORMATS, is_readable, suffix
from knowledge.parsing.normalization import normalise
from knowledge.sandbox.reader import Reader

WORD = re.compile(r"\w+")
NOTHING = "-"


@dataclass(frozen=True)
class Row:
    """One file: what was read of it beside what was expected, both normalised.

    The figures are None where nothing was expected or nothing was read.
    """

    format: str
    name: str
    refused: str = ""  # the reason
    f1: float | None = None  # of the words, in whatever order: 0 to 1
    ratio: float | None = None  # of the words in their order: 0 to 1
    headings: int | None = None  # expected
    headings_found: int | None = None  # of those
    headings_more: int | None = None  # that nobody expected


def compare(folder: Path) -> list[Row]:
    """Return a row for each file `<format>/sources/<name>` under the folder.

    Expected is `<format>/groundtruth/<name>.md`, with or without the source's own suffix. One
    document in several formats, files of one name in the folder or in the folders directly in it,
    has a row for each but its Markdown, which is what is expected of the others.
    """
    sources = sorted(path for path in folder.glob("*/sources/*") if path.is_file())
    with Reader() as reader:
        rows = [row(reader, path) for path in sources]
        return [*rows, *chain.from_iterable(alike(reader, paths) for paths in groups(folder))]


def row(reader: Reader, path: Path) -> Row:
    """Return how well one file is read."""
    form = path.parent.parent.name
    try:
        text = content(reader, path)
    except Unreadable as error:
        return Row(form, path.name, refused=str(error))
    folder = path.parent.parent / "groundtruth"
    names = (f"{path.name}.md", f"{path.stem}.md")
    expected = next((folder / name for name in names if (folder / name).is_file()), None)
    if expected is None:
        return Row(form, path.name)
    # Both are normalised: a table that became a list is no difference.
    return compared(form, path.name, text, normalise(expected.read_text(encoding="utf-8")))


def groups(folder: Path) -> list[list[Path]]:
    """Return the files of each document that is there in several formats, Markdown first.

    Files of one name and one format, such as an index in every folder, are no such document.
    """
    by_name: dict[str, list[Path]] = {}
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        if path.is_file() and is_readable(path.name):
            by_name.setdefault(path.stem, []).append(path)
    return [
        sorted(paths, key=lambda path: FORMATS[suffix(path.name)] != FORMATS[".md"])
        for paths in by_name.values()
        if len({suffix(path.name) for path in paths}) == len(paths) > 1
    ]


def alike(reader: Reader, paths: Sequence[Path]) -> Iterator[Row]:
    """Yield how near the formats of a document come to the first of them that can be read."""
    expected: str | None = None
    for path in paths:
        form = suffix(path.name).removeprefix(".")
        try:
            text = content(reader, path)
        except Unreadable as error:
            yield Row(form, path.name, refused=str(error))
            continue
        if expected is None:
            expected = text
        else:
            yield compared(form, path.name, text, expected)


def content(reader: Reader, path: Path) -> str:
    """Return the text of a file. Raises Unreadable."""
    pages, _ = reader.read(path.name, path.read_bytes())
    return "\n\n".join(page.content for page in pages)


def compared(form: str, name: str, text: str, expected: str) -> Row:
    """Return the figures of two Markdown texts."""
    expected_headings, text_headings = counted_headings(expected), counted_headings(text)
    return Row(
        form,
        name,
        f1=f1(words(text), words(expected)),
        ratio=SequenceMatcher(None, words(text), words(expected), autojunk=False).ratio(),
        headings=expected_headings.total(),
        headings_found=(expected_headings & text_headings).total(),
        headings_more=(text_headings - expected_headings).total(),
    )


def counted_headings(text: str) -> Counter[str]:
    """Return the headings of a Markdown text as words, and how often each stands there."""
    return Counter(" ".join(words(heading)) for heading in headings(text))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return WORD.findall(text.lower())


def f1(text: Sequence[str], expected: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall over the words with their counts."""
    common = (Counter(text) & Counter(expected)).total()
    return 2 * common / (len(text) + len(expected)) if text or expected else 1.0


def means(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield one row per format: the means of those that have figures, the sums of headings."""
    for form in sorted({row.format for row in rows}):
        files = [row for row in rows if row.format == form and row.f1 is not None]
        if files:
            yield Row(
                form,
                f"{len(files)} files",
                f1=sum(row.f1 or 0 for row in files) / len(files),
                ratio=sum(row.ratio or 0 for row in files) / len(files),
                headings=sum(row.headings or 0 for row in files),
                headings_found=sum(row.headings_found or 0 for row in files),
                headings_more=sum(row.headings_more or 0 for row in files),
            )


def table(rows: Sequence[Row]) -> RenderableType:
    """Return the means per format, then every file, then what was refused and why."""
    lines = Table(
        "format", "file", "words", "in order", "headings", "more", title_justify="left",
        title="Similarity to what was expected, 0 to 1",
    )  # fmt: skip
    for row in means(rows):
        lines.add_row(*cells(row), style="bold")
    lines.add_section()
    refused = []
    for row in rows:
        if row.refused:
            refused.append(f"Refused, {row.format}/{row.name}: {row.refused}")
        else:
            lines.add_row(*cells(row))
    return Group(lines, *refused)


def cells(row: Row) -> list[str]:
    """Return one line of the table of files."""
    counts = NOTHING if row.headings is None else f"{row.headings_found} of {row.headings}"
    more = NOTHING if row.headings_more is None else str(row.headings_more)
    return [row.format, row.name, digits(row.f1), digits(row.ratio), counts, more]
