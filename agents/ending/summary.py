"""Summary: shortens messages to a line each, and keeps what only the user could tell again."""

import re
from collections.abc import Sequence

from agents.attributes import Remark
from agents.intake import wishes
from agents.words import digit_runs, literals
from knowledge.sentences import split_sentences

# A note begins with its day: a model is asked for prose. A mark says that its message leaves again.
NOTE = re.compile(r"^\[[\d-]+(\*?)\] ")
WAITING = "*"
SPEAKERS = {"user": "The user", "assistant": "The assistant", "staff": "Staff"}
# Characters of all notes and what was condensed before, of one message, and of one sentence.
LONGEST_SUMMARY = 4000
LONGEST_LINE = 240
LONGEST_SENTENCE = 160
# Characters around a number in a sentence that is too long, and how many numbers.
AROUND, MOST_SHOWN = 30, 2
GAP = " … "
# Years, amounts, numbers of orders; not "2 lines".
FEWEST_DIGITS = 3
THOUSANDS = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")


def note_of(remark: Remark, *, waiting: bool = False) -> str:
    """Return the note of a message; `waiting`: it leaves again, and its note gives way then."""
    return _line(remark.time, WAITING * waiting, SPEAKERS[remark.role], remark.text)


def fact_note(fact: str, time: str) -> str:
    """Return the note of a fact about the user, known at an ISO 8601 time."""
    return _line(time, "", SPEAKERS["user"], fact)


def _line(time: str, mark: str, speaker: str, text: str) -> str:
    return f"[{time[:10]}{mark}] {speaker}: {shortened(text, LONGEST_LINE)}"


def settled_lines(summary: str) -> list[str]:
    """Return the lines of a summary without the notes of messages that leave again."""
    return [line for line in summary.splitlines() if not _mark(line)]


def condensed(lines: Sequence[str]) -> list[str]:
    """Return the lines that a model wrote."""
    return [line for line in lines if not NOTE.match(line)]


def sayings(lines: Sequence[str]) -> list[str]:
    """Return what notes say that people said."""
    people = [SPEAKERS[role] for role in ("user", "staff")]
    notes = [NOTE.sub("", line).partition(": ") for line in lines if NOTE.match(line)]
    return [text for speaker, _, text in notes if speaker in people]


def _mark(line: str) -> str:
    match = NOTE.match(line)
    return match[1] if match else ""


def particulars(text: str) -> list[str]:
    """Return the identifiers and longer numbers of `text`, numbers in ASCII digits."""
    numbers = digit_runs(THOUSANDS.sub("", text))
    return [*literals(text), *(each for each in numbers if len(each) >= FEWEST_DIGITS)]


def shortened(text: str, most: int) -> str:
    """Return the text in `most` characters, 200 or more, in its order.

    Sentences with particulars or lasting wishes come before others, then the first before later
    ones.
    """
    whole = " ".join(text.split())
    if len(whole) <= most:
        return whole
    sentences = [_cut(each) for each in split_sentences(whole)]
    places: list[int] = []
    left = most
    for place in sorted(
        range(len(sentences)), key=lambda each: (not _is_telling(sentences[each]), each)
    ):
        needs = len(sentences[place]) + len(GAP)
        if needs <= left:
            places.append(place)
            left -= needs
    return GAP.join(sentences[place] for place in sorted(places))


def _is_telling(sentence: str) -> bool:
    return bool(particulars(sentence) or wishes.lasting(sentence))


def _cut(sentence: str) -> str:
    """The beginning of a sentence that is too long, and the surroundings of its first numbers."""
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    numbers = list(dict.fromkeys(particulars(sentence)))[:MOST_SHOWN]
    places = [place for each in numbers if (place := sentence.find(each)) >= 0]
    begin = LONGEST_SENTENCE - len(places) * (2 * AROUND + len(GAP))
    windows = [sentence[max(0, place - AROUND) : place + AROUND] for place in places]
    return GAP.join([sentence[:begin], *windows])


def bounded(lines: Sequence[str]) -> str:
    """Return the lines as one text in LONGEST_SUMMARY characters; notes give way, oldest first.

    Those without particulars go before the others. What a model condensed is kept: it is older
    than the notes, and holds what matters of it.
    """
    notes = [place for place, line in enumerate(lines) if NOTE.match(line)]
    excess = sum(len(line) + 1 for line in lines) - LONGEST_SUMMARY
    dropped: set[int] = set()
    for place in sorted(notes, key=lambda each: (bool(_particulars_of_note(lines[each])), each)):
        if excess <= 0:
            break
        dropped.add(place)
        excess -= len(lines[place]) + 1
    return "\n".join(line for place, line in enumerate(lines) if place not in dropped)


def _particulars_of_note(line: str) -> list[str]:
    return [each for text in sayings([line]) for each in particulars(text)]
