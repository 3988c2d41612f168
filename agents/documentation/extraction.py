"""Extraction: an answer put together from the sentences of the passages, without a model."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.attributes import SourceReference
from agents.contract import Writes
from agents.documentation.citations.check import Evidence, citation
from agents.documentation.passages import with_sources
from agents.words import APOSTROPHE, ENGLISH, Phrase, base_language, terms, words
from knowledge.embedding import encode
from knowledge.sentences import blocks, split_passage

# Shares of an excerpt's score. Steps are terse: their heading and what stands around them say
# what they are about.
OWN, AROUND, HEADING, TERMS = 0.45, 0.15, 0.15, 0.25
# Passages come best first; each starts a little lower than the one before.
PER_RANK = 0.02
# Who asks how something is done wants the steps.
STEPS, FEWEST_STEPS = 0.1, 3
HOW_TO = re.compile(
    r"^\W*(?:how (?:do|can|to|could|should)|wie|cómo|comment|как|\u600e\u4e48|\u5982\u4f55)",
    re.IGNORECASE,
)
# How a sentence ends that leads to a list; the second is the Chinese colon.
LEADING = (":", "\uff1a")
ROW = re.compile(r"^(?:[-*]\s+)?[^:;]{1,60}: [^;]+; [^:;]{1,60}: ")
NUMBERED = r"^\s*\d{1,3}[.)]\s+"


@dataclass(frozen=True)
class Excerpt:
    """One sentence, list item, table row or code block of a passage."""

    reference: SourceReference
    rank: int  # of its passage, the best is 0
    place: int  # within its passage
    text: str
    kind: str  # "prose", "item", "row" or "code"
    series: int  # items of one list share it, with the sentence that leads to them; else -1
    numbered: bool = False


def excerpts_of(reference: SourceReference, rank: int) -> list[Excerpt]:
    """The excerpts of one passage in order, lists joined to the sentence before them."""
    pieces: list[tuple[str, str]] = []
    for kind, block in blocks(reference.text):
        texts = split_passage(block) if kind == "prose" else [block]
        # A table was made a list of its rows when it was ingested; they are no steps.
        named = "row" if kind == "item" and ROW.match(block) else kind
        pieces.extend((named, text) for text in texts if text)
    series = -1
    excerpts: list[Excerpt] = []
    for place, (kind, text) in enumerate(pieces):
        follows = place + 1 < len(pieces) and pieces[place + 1][0] == "item"
        leads = kind == "prose" and follows and text.endswith(LEADING)
        if leads or (
            kind == "item" and (not excerpts or excerpts[-1].series != series or series < 0)
        ):
            series = place
        joined = series if leads or kind == "item" else -1
        if joined < 0:
            series = -1
        numbered = kind == "item" and _numbered(text, reference.text)
        excerpts.append(Excerpt(reference, rank, place, text, kind, joined, numbered))
    return excerpts


def _numbered(item: str, passage: str) -> bool:
    return re.search(NUMBERED + re.escape(item[:20]), passage, re.MULTILINE) is not None


def scored(
    question: str, references: Sequence[SourceReference]
) -> tuple[list[Excerpt], NDArray[np.float32], NDArray[np.float32]]:
    """All excerpts, how well each answers `question` (0 to about 1), and their vectors."""
    excerpts = [s for rank, r in enumerate(references) for s in excerpts_of(r, rank)]
    if not excerpts:
        return [], np.zeros(0, np.float32), np.zeros((0, 1), np.float32)
    headings = [f"{r.title}: {r.section}" for r in references]
    vectors = encode([question, *headings, *(s.text for s in excerpts)])
    asked, above, own = vectors[0], vectors[1 : 1 + len(headings)], vectors[1 + len(headings) :]
    near, topical = own @ asked, above @ asked
    around = [_mean_of_best(near, excerpts, rank) for rank in range(len(references))]
    scores = OWN * near + TERMS * _shared_terms(question, excerpts)
    scores += np.array(
        [AROUND * around[s.rank] + HEADING * topical[s.rank] - PER_RANK * s.rank for s in excerpts]
    )
    if HOW_TO.match(question):
        # Items under a bold label are cases or features, not steps.
        steps = (s for s in excerpts if s.kind == "item" and not s.text.startswith("**"))
        length = Counter((s.rank, s.series) for s in steps)
        scores += STEPS * np.array([length[s.rank, s.series] >= FEWEST_STEPS for s in excerpts])
    return excerpts, scores.astype(np.float32), own


def _mean_of_best(near: NDArray[np.float32], excerpts: Sequence[Excerpt], rank: int) -> float:
    """How near the best three excerpts of a passage are, in the mean; 0 when it has none."""
    best = sorted((float(near[place]) for place, s in enumerate(excerpts) if s.rank == rank))[-3:]
    return sum(best) / len(best) if best else 0.0


def _shared_terms(question: str, excerpts: Sequence[Excerpt]) -> NDArray[np.float32]:
    """The share of the question's terms in each excerpt, its section's heading included.

    A term counts the more, the fewer excerpts have it.
    """
    wanted = terms(question)
    if not wanted:
        return np.zeros(len(excerpts), np.float32)
    have = [set(terms(f"{s.reference.section} {s.text}")) for s in excerpts]
    rarity = {
        term: np.log((1 + len(have)) / (1 + sum(term in each for each in have))) + 0.1
        for term in wanted
    }
    total = sum(rarity.values())
    return np.array(
        [sum(rarity[t] for t in wanted if t in each) / total for each in have], np.float32
    )


# Excerpts more alike than this say the same.
SAME = 0.87
MOST_ITEMS = 8
# Answers read better from few places.
MOST_PASSAGES = 3


class Choice:
    """The excerpts chosen so far, refusing what repeats them or goes beyond the length."""

    def __init__(
        self, excerpts: Sequence[Excerpt], vectors: NDArray[np.float32], most: int
    ) -> None:
        self.excerpts = excerpts
        self.vectors = vectors
        self.most = most
        self.chosen: list[int] = []
        self.lists = 0

    def take(self, place: int) -> bool:
        """Take one excerpt; False when it is refused."""
        if place in self.chosen or len(self.chosen) >= self.most:
            return False
        ranks = {self.excerpts[other].rank for other in self.chosen}
        if len(ranks) >= MOST_PASSAGES and self.excerpts[place].rank not in ranks:
            return False
        if self.chosen and float((self.vectors[self.chosen] @ self.vectors[place]).max()) > SAME:
            return False
        self.chosen.append(place)
        return True

    def take_series(self, place: int) -> None:
        """Take the list an excerpt belongs to, with the sentence that leads to it."""
        first = self.excerpts[place]
        members = [
            other
            for other, s in enumerate(self.excerpts)
            if s.rank == first.rank and s.series == first.series
        ]
        self.most = max(self.most, len(self.chosen) + min(len(members), MOST_ITEMS))
        self.lists += 1
        for member in members:
            self.take(member)


# Below this no excerpt answers the question.
ANSWERS = 0.38
# A further excerpt must come this close to the best one; one beside a chosen one, this close;
# a list is quoted whole when most of it comes this close.
CLOSE, BESIDE, MOST_OF_LIST = 0.84, 0.66, 0.66
# "It does not…" right after a chosen sentence goes on about it.
GOES_ON = 0.45
# Answers read better from one place: its excerpts count this much more.
SAME_PASSAGE = 0.05
# A second list, or one from elsewhere, makes an answer long: it has to be nearly as good.
ANOTHER_LIST = 0.95
# "See here.", a bare link and a question say nothing; "This is why." says little by itself.
POINTS, LEANS = 0.15, 0.04
FEWEST_WORDS = 4
MOST, BRIEF, DETAILED = 5, 2, 9
LEANING = re.compile(
    r"^\W*(?:this|that|these|those|it|they|then|however|but|so|or|and|also)\b", re.IGNORECASE
)
POINTER = re.compile(
    r"^\W*(?:see|read|learn|check|view|click|more)\b.{0,90}$|\bhere\W*(?:\]\S*)?$"
    rf"|^here['{APOSTROPHE}]s how\b.*[^:]$"
    r"|^\W*\[[^\]]*\]\([^)]*\)\W*$|\?$",
    re.IGNORECASE,
)
EXACT = re.compile(r"^(\d+) (?:lines|sentences)$")


def length_wished(notes: Sequence[str]) -> int:
    """How many excerpts the answer may have at most, from what the user wished."""
    for note in notes:
        if exact := EXACT.match(note):
            return max(1, int(exact[1]))
    if "brief" in notes:
        return BRIEF
    return DETAILED if "detailed" in notes else MOST


def choose(
    excerpts: Sequence[Excerpt],
    scores: NDArray[np.float32],
    vectors: NDArray[np.float32],
    notes: Sequence[str],
) -> list[Excerpt]:
    """The excerpts that answer, ready to be read; none when nothing comes near enough."""
    worthy = _worthy(excerpts, scores)
    if not len(worthy) or worthy.max() < ANSWERS:
        return []
    lead = int(worthy.argmax())
    best = float(worthy[lead])
    worthy += SAME_PASSAGE * np.array([s.rank == excerpts[lead].rank for s in excerpts])
    most = length_wished(notes)
    choice = Choice(excerpts, vectors, most)
    for place in (int(each) for each in np.argsort(-worthy)):
        if worthy[place] < max(CLOSE * best, ANSWERS) or len(choice.chosen) >= choice.most:
            break
        whole = most >= MOST and _whole_list(excerpts, worthy, place, MOST_OF_LIST * best)
        first = not choice.lists and excerpts[place].rank == excerpts[lead].rank
        if whole and (first or worthy[place] >= ANOTHER_LIST * best):
            choice.take_series(place)
        elif choice.take(place) and most >= MOST:
            _take_beside(choice, worthy, place, best)
    return in_order(excerpts, _without_loose_ends(excerpts, choice.chosen))


def _worthy(excerpts: Sequence[Excerpt], scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The scores, less for excerpts that say little where they stand alone."""
    lost = [
        POINTS * bool(POINTER.search(s.text) or len(words(s.text)) < FEWEST_WORDS)
        + LEANS * bool(LEANING.match(s.text))
        for s in excerpts
    ]
    return scores - np.array(lost, np.float32)


def _whole_list(
    excerpts: Sequence[Excerpt], scores: NDArray[np.float32], place: int, floor: float
) -> bool:
    """Whether an excerpt is a step, or of a list that is about the question as a whole."""
    excerpt = excerpts[place]
    if excerpt.series < 0:
        return False
    members = [
        other
        for other, s in enumerate(excerpts)
        if s.rank == excerpt.rank and s.series == excerpt.series
    ]
    steps = any(excerpts[member].numbered for member in members)
    return steps or 2 * sum(scores[member] >= floor for member in members) > len(members)


def _without_loose_ends(excerpts: Sequence[Excerpt], chosen: Sequence[int]) -> list[int]:
    """Drop what leads to a list or to code that was not taken."""
    return [
        place
        for place in chosen
        if not excerpts[place].text.endswith(LEADING)
        or (place + 1 in chosen and excerpts[place + 1].rank == excerpts[place].rank)
    ]


def _take_beside(choice: Choice, scores: NDArray[np.float32], place: int, best: float) -> None:
    """Take what follows a chosen sentence in its passage, when it still belongs to the subject."""
    beside = place + 1
    if beside >= len(scores) or choice.excerpts[beside].rank != choice.excerpts[place].rank:
        return
    following = choice.excerpts[beside]
    goes_on = following.series < 0 and LEANING.match(following.text)
    if scores[beside] < (GOES_ON if goes_on else BESIDE) * best:
        return
    if following.series < 0:
        choice.take(beside)
    elif not choice.lists:
        choice.take_series(beside)


def in_order(excerpts: Sequence[Excerpt], chosen: Sequence[int]) -> list[Excerpt]:
    """The chosen excerpts as they stand in their passages, the best excerpt's passage first."""
    ranks = list(dict.fromkeys(excerpts[place].rank for place in chosen))
    return sorted(
        (excerpts[place] for place in chosen), key=lambda s: (ranks.index(s.rank), s.place)
    )


RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:)[^)]*\)")


def _as_said(excerpt: Excerpt, number: int) -> str:
    """The excerpt as it stands in the answer, its marker behind it."""
    # A link into the documents' own pages leads nowhere from an answer.
    text = RELATIVE_LINK.sub(r"\1", excerpt.text)
    gap = "\n" if excerpt.kind == "code" else " "
    marked = f"{text}{gap}[{excerpt.reference.marker}]"
    if excerpt.kind == "item":
        return f"{number}. {marked}" if excerpt.numbered else f"- {marked}"
    return marked


def _composed(excerpts: Sequence[Excerpt], as_list: bool) -> str:
    """The answer's body: sentences run on, lists, rows and code stand on lines of their own."""
    body = ""
    number = 0
    before: Excerpt | None = None
    for excerpt in excerpts:
        number = number + 1 if excerpt.numbered else 0
        piece = _as_said(excerpt, number)
        if as_list and excerpt.kind == "prose":
            piece = f"- {piece}"
        body += (_gap(before, excerpt, as_list) if before else "") + piece
        before = excerpt
    return body


def _gap(before: Excerpt, now: Excerpt, as_list: bool) -> str:
    prose = before.kind == now.kind == "prose"
    if prose and not as_list:
        # What leads to a list begins a paragraph.
        return " " if before.rank == now.rank and now.series < 0 else "\n\n"
    together = before.kind == now.kind or (before.series == now.series >= 0)
    return "\n" if as_list or (together and before.rank == now.rank) else "\n\n"


def extracted(
    question: str,
    references: Sequence[SourceReference],
    *,
    language: str,
    notes: Sequence[str],
    doubted: str,
) -> Writes | None:
    """Quote what answers the question, each quote cited; None when nothing does.

    `doubted` is what quality found unsupported in an answer before: that is not said again.
    """
    excerpts, scores, vectors = scored(question, references)
    chosen = [
        excerpt
        for excerpt in choose(excerpts, scores, vectors, notes)
        if excerpt.text not in doubted
    ]
    if not chosen:
        return None
    parts = [_composed(chosen, "list" in notes)]
    # Titles and quotes stay as they are; that they do is said once.
    if base_language(language) != ENGLISH:
        parts.insert(0, Phrase.QUOTED.in_language(language))
    evidence = Evidence(references)
    cited = (excerpt.reference for excerpt in chosen)
    return with_sources("\n\n".join(parts), cited, language) | {
        "citations_used": [
            citation(excerpt.reference, excerpt.text, status)
            for excerpt in chosen
            for status in evidence.statuses(excerpt.text, [excerpt.reference.marker]).values()
        ],
        "generation_confidence": min(1.0, max(0.0, float(scores.max()))),
        # What was found wrong with an answer before is not true of this one.
        "generation_error": "",
        "validation_result": {},
    }
