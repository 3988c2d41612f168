"""Graph rules: what a document states by its form alone, where no model reads it.

Terms that it defines, sections and laws that it refers to, and days from and until which it holds.
What else it says of things takes a model.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache

from django.utils.dates import MONTHS, MONTHS_ALT
from django.utils.translation import override

from knowledge.chunking import Part
from knowledge.graph import Graph, NamedEntity, StatedRelation, key
from knowledge.language import language
from knowledge.norms import definitions, patterns_of
from knowledge.parsing import Page

MOST = 200  # relations of one document
NEAR = 60  # characters after a wording in which a day stands
DOCUMENT, TERM, SECTION, LAW, DAY = "document", "term", "section", "law", "date"
DEFINES, REFERS, BEGINS, ENDS = "defines", "refers to", "takes effect on", "ends on"
# Laws and standards are known by number and year wherever they are written: "359/2016 Sb.",
# "(EU) 2016/679", "95/46/EC". A month and a year have fewer digits.
NUMBERED_LAW = re.compile(
    r"(?<![\w/.])(?:\d{3,4}/(?:19|20)\d{2}|(?:19|20)\d{2}/\d{2,4}|\d{2}/\d{2,3}/[A-Z]{2,4})(?![\w/])"
)
# As in "Article 4: Payment" and "4.2 Payment".
NUMBERED_HEADING = re.compile(r"^\W*(?:[^\W\d_]+\s+)?(\d{1,3}(?:\.\d{1,3})*)\b")
ISO_DAY = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
DOTTED_DAY = re.compile(r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)")
CHINESE_DAY = re.compile(r"(\d{4})\u5e74(\d{1,2})\u6708(\d{1,2})\u65e5")
# "1 March 2025", "1. M\u00e4rz 2025", "1er mars 2025", "1 de marzo de 2025", "March 1, 2025"
SPELLED_DAY = (
    r"(?<!\d)(\d{{1,2}})(?:\.|er|st|nd|rd|th|\u00ba)?\s+(?:of\s+|de\s+)?({months})"
    r"\.?,?\s+(?:de\s+)?(\d{{4}})"
)
AMERICAN_DAY = r"\b({months})\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})"
Stated = tuple[NamedEntity, StatedRelation]


def draw(page: Page, parts: Sequence[Part]) -> Graph:
    """Return what the page states by its form; a page without a title states nothing."""
    title = page.title.strip()
    if not title:
        return Graph()
    spoken = page.language or language(page.content)
    headings = _numbered_headings(parts)
    entities = {title: NamedEntity(title, DOCUMENT)}
    relations: dict[tuple[str, str, str], StatedRelation] = {}
    for place, part in enumerate(parts):
        for entity, relation in _stated(title, part, place, spoken, headings):
            once = (relation.subject, relation.predicate, relation.object)
            # A name means one thing within a document, whatever the kind.
            is_itself = key(relation.subject) == key(relation.object)
            if once not in relations and not is_itself and len(relations) < MOST:
                entities.setdefault(entity.name, entity)
                entities.setdefault(relation.subject, _section(title, relation.subject))
                relations[once] = relation
    return Graph(tuple(entities.values()), tuple(relations.values())) if relations else Graph()


def _stated(
    title: str, part: Part, place: int, spoken: str, headings: dict[str, str]
) -> Iterator[Stated]:
    """Yield what a chunk states: a thing, and its relation to the document or the section."""
    for each in definitions(part.text, spoken):
        yield NamedEntity(each.term, TERM), StatedRelation(title, DEFINES, each.term, place)
    for law in dict.fromkeys(NUMBERED_LAW.findall(part.text)):
        yield NamedEntity(law, LAW), StatedRelation(title, REFERS, law, place)
    here = _section_name(title, part.section[-1]) if part.section else title
    for number in _referred(part.text, spoken):
        if number in headings and _section_name(title, headings[number]) != here:
            other = _section_name(title, headings[number])
            yield _section(title, other), StatedRelation(here, REFERS, other, place)
    for predicate, day in _days(part.text, spoken):
        entity = NamedEntity(day.isoformat(), DAY)
        begin, end = (day, None) if predicate == BEGINS else (None, day)
        yield entity, StatedRelation(title, predicate, entity.name, place, begin, end)


def _numbered_headings(parts: Sequence[Part]) -> dict[str, str]:
    """Return the headings that begin with a number, by that."""
    found: dict[str, str] = {}
    for part in parts:
        for heading in part.section:
            if match := NUMBERED_HEADING.match(heading):
                found.setdefault(match[1], heading)
    return found


def _section_name(title: str, heading: str) -> str:
    return f"{title}: {heading}"


def _section(title: str, name: str) -> NamedEntity:
    """Return a section as an entity; its heading alone is another name of it."""
    heading = name.removeprefix(f"{title}: ")
    return NamedEntity(name, SECTION, (heading,) if heading != name else ())


def _referred(text: str, spoken: str) -> list[str]:
    """Return the numbers of sections that a text refers to, each once."""
    pattern = patterns_of(spoken).get("section")
    return list(dict.fromkeys(match[1] for match in pattern.finditer(text))) if pattern else []


def _days(text: str, spoken: str) -> Iterator[tuple[str, date]]:
    """Yield the days from and until which a text says that it holds."""
    patterns = patterns_of(spoken)
    for predicate, name in ((BEGINS, "begins"), (ENDS, "ends")) if patterns else ():
        for match in patterns[name].finditer(text):
            line, _, _ = text[match.end() : match.end() + NEAR].partition("\n")
            if day := _first_day(line, spoken):
                yield predicate, day


def _first_day(line: str, spoken: str) -> date | None:
    """Return the first day that a line names; None for none."""
    readings: list[tuple[int, int, int, int]] = []
    for pattern in (ISO_DAY, CHINESE_DAY):
        if match := pattern.search(line):
            readings.append((match.start(), int(match[1]), int(match[2]), int(match[3])))
    if match := DOTTED_DAY.search(line):
        readings.append((match.start(), int(match[3]), int(match[2]), int(match[1])))
    months, spelled, american = _spelled(spoken)
    if match := spelled.search(line):
        readings.append((match.start(), int(match[3]), months[match[2].lower()], int(match[1])))
    if match := american.search(line):
        readings.append((match.start(), int(match[3]), months[match[1].lower()], int(match[2])))
    for _, year, month, day in sorted(readings):
        try:
            return date(year, month, day)
        except ValueError:
            continue
    return None


@cache
def _spelled(spoken: str) -> tuple[dict[str, int], re.Pattern[str], re.Pattern[str]]:
    """Return the months by their names in a language, and what finds days spelled with them."""
    with override(spoken.partition("-")[0] or "en"):
        months = {
            str(names[number]).lower(): number
            for names in (MONTHS, MONTHS_ALT)
            for number in range(1, 13)
        }
    either = "|".join(sorted(map(re.escape, months), key=len, reverse=True))
    return (
        months,
        re.compile(SPELLED_DAY.format(months=either), re.IGNORECASE),
        re.compile(AMERICAN_DAY.format(months=either), re.IGNORECASE),
    )
