"""Sentences: takes a passage apart into statements that can stand in an answer, and a message."""

import re
from collections.abc import Iterator

FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
TABLE_ROW = re.compile(r"^\s*\|.*\|\s*$")
TABLE_RULE = re.compile(r"^[\s|:-]+$")
QUOTE = re.compile(r"^\s*>\s?")

# Western sentences end before white space, Chinese and Japanese ones need none. A dash may come
# before what somebody says.
END = re.compile(
    r"""(?<![.!?…])[.!?…]++["'”\u2019»)\]*_]*+\s++(?=(?:[\u2013\u2014-]\s*)?["'“„\u2018«(\[*_`¿¡]*(?:`|[^\W_a-zà-ÿ\u0430-\u044f]))|[。\uff01\uff1f]+[”\u2019」』\uff09]*\s*"""
)
# Who types a message begins sentences with small letters too, and ends them with the line.
TYPED_END = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f])\s+|\n+")
# "e.g.", "z. B." and the like end in a full stop and end nothing; so do initials. Of the ends of
# sentences in Universal Dependencies' test parts (CC BY-SA 4.0 and others, nine languages, five
# sentences at a time) F1 is .973, and .970 without the list; in Italian, Dutch, Portuguese and
# Polish, which it was not made on, .952, .992, .986 and .998. pysbd, told the language, has .971
# and takes forty times as long; on the development parts sentencex has .969, syntok .963 for .979.
ABBREVIATION = re.compile(
    r"(?:^|[\s(\"“])(?:e\.\s?g|i\.\s?e|etc|cf|vs|approx|no|nr|fig|dr|mr|mrs|ms|prof|st|inc|ltd|"
    r"z\.\s?b|d\.\s?h|bzw|ca|usw|p\.\s?ej|sr|sra|\u0442\.\s?\u0435|\u0442\.\s?\u0434|\u0442\.\s?\u043f|\u043d\u0430\u043f\u0440|[^\W\d_])\.[\"')]*\s+$",
    re.IGNORECASE,
)

LONGEST_ABBREVIATION = 12  # characters, with what stands before it: a search goes no further back


def split_passage(text: str) -> list[str]:
    """Return the statements of a Markdown passage, in order, each as it can be quoted.

    A sentence of a paragraph is one, and so is a whole list item (without its marker), a code
    block (with its fences) and a table row. Headings state nothing and are left out.
    """
    return [
        statement
        for kind, block in blocks(text)
        for statement in (split_sentences(block) if kind == "prose" else [block])
        if statement
    ]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield ("code", block), ("row", line), ("item", text) and ("prose", paragraph)."""
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        line = lines[place]
        end = place + 1
        if fence := FENCE.match(line):
            end = end_of_code_block(lines, place, fence[1])
            yield "code", "\n".join(lines[place:end]).strip()
        elif TABLE_ROW.match(line):
            if not TABLE_RULE.match(line):
                yield "row", line.strip()
        elif continues(line):
            while end < len(lines) and continues(lines[end]) and not ITEM.match(lines[end]):
                end += 1
            yield ("item" if ITEM.match(line) else "prose"), join_lines(lines[place:end])
        place = end


def end_of_code_block(lines: list[str], place: int, fence: str) -> int:
    """Return where the code block that opens at `place` is over; the end when it never is."""
    for end in range(place + 1, len(lines)):
        line = lines[end].strip()
        if line.startswith(fence) and not line.strip(fence[0]):
            return end + 1
    return len(lines)


def continues(line: str) -> bool:
    """Tell whether the line is text, and not a gap or something of another kind."""
    return bool(line.strip()) and not any(
        pattern.match(line) for pattern in (FENCE, HEADING, TABLE_ROW, TABLE_RULE)
    )


def join_lines(lines: list[str]) -> str:
    """Return the lines of one paragraph or item as running text, markers gone."""
    unmarked_lines = [QUOTE.sub("", line).strip() for line in lines]
    return " ".join([ITEM.sub("", unmarked_lines[0]), *unmarked_lines[1:]]).strip()


def split_sentences(paragraph: str) -> list[str]:
    """Return the sentences of running text."""
    sentences: list[str] = []
    begin = 0
    for end in END.finditer(paragraph):
        beginning = max(begin, end.start() - LONGEST_ABBREVIATION)
        if ABBREVIATION.search(paragraph[beginning : end.end()]):
            continue
        sentences.append(paragraph[begin : end.end()].strip())
        begin = end.end()
    return [*sentences, paragraph[begin:].strip()]


def split_message(message: str) -> list[str]:
    """Return the sentences of a message, as people type them and not as they are set."""
    return [part for part in TYPED_END.split(message) if part.strip()]
