"""Options: what a user can choose from, named as the documents name it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from agents.attributes import Passage

MOST_OPTIONS = 4
LONGEST_OPTION = 70


def options(passages: Sequence[Passage], most: int = MOST_OPTIONS) -> list[str]:
    """What to choose from, best first: titles, with the section where one title is not enough.

    Different documents come before several sections of one.
    """
    if len({p.document_id for p in passages}) == 1:
        return _distinct((_section(p) or p.title for p in passages), most)
    seen: Counter[str] = Counter()
    ranked = []
    for rank, passage in enumerate(passages):
        ranked.append((seen[passage.document_id], rank, passage))
        seen[passage.document_id] += 1
    firsts = [p for place, _, p in sorted(ranked, key=lambda each: each[:2]) if place == 0]
    return _distinct((_named(p) for p in firsts), most)


def _section(passage: Passage) -> str:
    return passage.section.rsplit(" > ", maxsplit=1)[-1].strip()


def _named(passage: Passage) -> str:
    """The title; the heading instead when the title is too long to choose by."""
    title = passage.title.strip() or _section(passage)
    return (_section(passage) or title) if len(title) > LONGEST_OPTION else title


def _distinct(names: Iterable[str], most: int) -> list[str]:
    found: dict[str, str] = {}
    for name in names:
        if name:
            found.setdefault(name.casefold(), name)
    return list(found.values())[:most]
