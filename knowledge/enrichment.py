"""Enrichment: what can be said about a document, without a model from its own words."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from knowledge.language import language
from knowledge.parsing import Page, outline
from knowledge.sentences import FENCE, split_passage

KEYWORDS_LIMIT = 12
WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
SUMMARY_SENTENCES, SUMMARY_LENGTH = 3, 600
KEYPOINTS_LIMIT, LINE_LENGTH = 6, 240

# English words that say nothing about a text's subject. Other languages are served by the length
# of a word: their particles are short.
ENGLISH = (
    "about above after again against all also and any are because been before being below between "
    "both but can cannot could did does doing don down during each else etc even every few for "
    "from further get had has have having her here hers herself him himself his how however into "
    "isn its itself just let like made make many may might more most much must myself need nor not "
    "now off once one only other ought our ours out over own per same see shall she should since "
    "some still such than that the their theirs them themselves then there these they this those "
    "through too under until upon use used using very want was way well were what when where which "
    "while who whom why will with within without won would yes yet you your yours yourself two "
    "click choose new sure"
)
STOP_WORDS = frozenset(ENGLISH.split())
PARTICLE = 4  # letters: words of other languages up to this length are left out


@dataclass(frozen=True)
class Enrichment:
    """What a document is about, in its own language."""

    language: str
    description: str  # one sentence
    summary: str
    keypoints: list[str]
    keywords: list[str]  # at most 12, weightiest first
    warnings: list[str] = field(default_factory=list)  # for who ingests it: what did not work


Describer = Callable[[Page, Enrichment], Enrichment]

_describers: list[Describer] = []


def register(describer: Describer) -> None:
    """Let `describer(page, by rules)` say it better; what it cannot, it returns as it was.

    It must keep what the page says itself. It takes its time, and does not raise.
    """
    _describers.append(describer)


def describe(page: Page, enrichment: Enrichment) -> Enrichment:
    """Return what can be said about a page that has a title, at least what rules found.

    It is called once per new or changed document, while no transaction is open, and for several
    at once in threads.
    """
    for describer in _describers:
        enrichment = describer(page, enrichment)
    return enrichment


def says_all(page: Page) -> bool:
    """Tell whether the page itself says what a describer would."""
    return bool(page.description and page.summary and page.keypoints)


def by_rules(page: Page) -> Enrichment:
    """Return what the page's own words say; what it says of itself is kept."""
    tongue = page.language or language(page.content)
    about = f"{page.description} {page.summary}"
    own_words = keywords(page.title, page.content, about=about, language=tongue)
    # Tags are few and say where a page belongs; what it speaks of is in its words.
    weighty = list(dict.fromkeys([*page.keywords, *own_words]))[:KEYWORDS_LIMIT]
    return Enrichment(
        language=tongue,
        description=page.description or description(page.content),
        summary=page.summary or summary(page.content, weighty),
        keypoints=page.keypoints or keypoints(page.content),
        keywords=weighty,
    )


def words(text: str) -> list[str]:
    """Return the words of 3 to 23 letters in lower case, in order, English stop words left out."""
    lower = (word.lower() for word in WORD.findall(text))
    return [word for word in lower if 3 <= len(word) <= 23 and word not in STOP_WORDS]


def keywords(title: str, content: str, *, about: str = "", language: str = "en") -> list[str]:
    """Return at most 12 words that tell the document apart, weightiest first.

    The title counts most, then headings, then what the document says about itself, then text.
    """
    weights: Counter[str] = Counter()
    heading_text = " ".join(headings(content))
    # (text, weight of a word, times it counts at most): repetition must not drown the title.
    for text, weight, most in ((title, 8, 1), (heading_text, 4, 2), (about, 3, 2), (content, 1, 8)):
        for word, count in Counter(words(text)).items():
            weights[word] += weight * min(count, most)
    if language != "en":
        weights = Counter({word: n for word, n in weights.items() if len(word) > PARTICLE})
    return [word for word, _ in weights.most_common(KEYWORDS_LIMIT)]


def chunk_keywords(text: str, section: Sequence[str], places: Mapping[str, int]) -> list[str]:
    """Return at most 12 of the document's words that occur in this chunk, most frequent first.

    `places` says of each of its words how weighty it is, the weightiest with the lowest number.
    """
    present = Counter(words(text)) + Counter(words(" ".join(section)))
    chosen = [word for word in present if word in places]
    return sorted(chosen, key=lambda word: (-present[word], places[word]))[:KEYWORDS_LIMIT]


def headings(content: str) -> list[str]:
    """Return the headings of a Markdown text."""
    return [each.heading for each in outline.headings(content)]


def summary(content: str, weighty: Sequence[str]) -> str:
    """Return the few sentences that hold most of the weighty words, in their order."""
    sentences = [
        each for each in split_passage(content)[:60] if 30 <= len(each) <= 400 and "`" not in each
    ]
    marks = set(weighty)

    def score(place: int) -> float:
        present = marks & set(words(sentences[place]))
        # Authors say first what a page is about.
        return len(present) + 2 / (1 + place)

    best = sorted(range(len(sentences)), key=score, reverse=True)[:SUMMARY_SENTENCES]
    return shortened(" ".join(sentences[place] for place in sorted(best)), SUMMARY_LENGTH)


def keypoints(content: str) -> list[str]:
    """Return the sentence that opens each section, the first six."""
    openings = (opening_sentence(body) for body in outline.bodies(content))
    return [shortened(each, LINE_LENGTH) for each in openings if each][:KEYPOINTS_LIMIT]


def description(content: str) -> str:
    """Return the sentence the text begins with."""
    return shortened(opening_sentence(content), LINE_LENGTH)


def opening_sentence(text: str) -> str:
    """Return the first statement that is no code; nothing when there is none."""
    return next((each for each in split_passage(text) if not FENCE.match(each)), "")


def shortened(text: str, length: int) -> str:
    """Return the text, cut at a word when it is longer than `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[:length].rsplit(" ", 1)[0] + " …"
