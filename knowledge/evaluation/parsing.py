"""Parsing: how near what is read from files comes to the Markdown that was expected of them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from knowledge.enrichment import headings
from knowledge.errors import Unreadable
from knowledge.parsing.normalising import normalise
from knowledge.reading import Reader

WORD = re.compile(r"\w+")


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

    Expected is `<format>/groundtruth/<name>.md`, with or without the source's own suffix.
    """
    with Reader() as reader:
        return [row(reader, path) for path in sorted(folder.glob("*/sources/*")) if path.is_file()]


def row(reader: Reader, path: Path) -> Row:
    """Return how well one file is read."""
    form = path.parent.parent.name
    try:
        pages, _ = reader.read(path.name, path.read_bytes())
    except Unreadable as error:
        return Row(form, path.name, refused=str(error))
    folder = path.parent.parent / "groundtruth"
    names = (f"{path.name}.md", f"{path.stem}.md")
    expected = next((folder / name for name in names if (folder / name).is_file()), None)
    if expected is None:
        return Row(form, path.name)
    ours = "\n\n".join(page.content for page in pages)
    # Both are normalised: a table that became a list is no difference.
    return measured(form, path.name, ours, normalise(expected.read_text(encoding="utf-8")))


def measured(form: str, name: str, ours: str, expected: str) -> Row:
    """Return the figures of two Markdown texts."""
    wanted, found = headed(expected), headed(ours)
    return Row(
        form,
        name,
        f1=f1(words(ours), words(expected)),
        ratio=SequenceMatcher(None, words(ours), words(expected), autojunk=False).ratio(),
        headings=wanted.total(),
        headings_found=(wanted & found).total(),
        headings_more=(found - wanted).total(),
    )


def headed(text: str) -> Counter[str]:
    """Return the headings of a Markdown text as words, and how often each stands there."""
    return Counter(" ".join(words(heading)) for heading in headings(text))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return WORD.findall(text.lower())


def f1(ours: Sequence[str], expected: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall over the words with their counts."""
    common = (Counter(ours) & Counter(expected)).total()
    return 2 * common / (len(ours) + len(expected)) if ours or expected else 1.0


def means(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield one row per format: the means of those that have figures, the sums of headings."""
    for form in sorted({each.format for each in rows}):
        of = [each for each in rows if each.format == form and each.f1 is not None]
        if of:
            yield Row(
                form,
                f"{len(of)} files",
                f1=sum(each.f1 or 0 for each in of) / len(of),
                ratio=sum(each.ratio or 0 for each in of) / len(of),
                headings=sum(each.headings or 0 for each in of),
                headings_found=sum(each.headings_found or 0 for each in of),
                headings_more=sum(each.headings_more or 0 for each in of),
            )
