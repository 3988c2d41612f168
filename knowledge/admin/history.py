"""History of a document: its versions, what changed, and which answers relied on each."""

from collections import Counter
from itertools import pairwise
from typing import Any

from knowledge.differences import TooLong, differences
from knowledge.models import Document, Version
from knowledge.reliance import relying_on
from knowledge.versions import replaced, version, versions

ANSWERS_SHOWN = 100


def history(document: Document, change: str) -> dict[str, Any]:
    """Return what the page of a document tells of its past.

    `change` is the number of the version whose difference to the one before it is shown.
    """
    answers = relying_on(document)
    cited = Counter(answer.version for answer in answers)
    kept = versions(document)
    before = {new.number: old.number for new, old in pairwise(kept)}
    return {
        "versions": [
            {
                "number": each.number,
                "title": each.title,
                "created": each.created,
                "replaced": replaced(each),
                "before": before.get(each.number),
                "answers": cited[each.number],
            }
            for each in kept
        ],
        "answers": answers[:ANSWERS_SHOWN],
        "answer_count": len(answers),
        "outdated_count": sum(
            count for number, count in cited.items() if number != document.version
        ),
        "difference": changed(document, before, change),
    }


def changed(document: Document, before: dict[int, int], change: str) -> dict[str, Any] | None:
    """Return the lines that a version changed; None when there is nothing to compare it with."""
    number = int(change) if change.isdecimal() and len(change) < 9 else 0
    if number not in before:
        return None
    try:
        old, new = version(document, before[number]), version(document, number)
        lines = differences(old.content, new.content)
    except Version.DoesNotExist:
        # Another process replaced the document just now.
        return None
    except TooLong:
        return {"number": number, "before": before[number], "is_too_long": True}
    return {"number": number, "before": before[number], "lines": lines}
