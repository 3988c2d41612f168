"""Follow-ups: what a message means after what was said before it, in whatever language.

Without a model one rule decides: search with the message alone and with the question before it,
and keep what scores better.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.attributes import OpenQuestion, Remark, Wordings
from agents.words import terms, words
from knowledge.search import SearchResult

# So much better, as confidence, the question before must make a message to stand in front of it; so
# much worse it may make a reply to what was asked back. Chosen on one half of the conversations of
# the cloud part of IBM's mt-rag-benchmark (Apache-2.0): nDCG@10 of 95 last turns alone 0.418, with
# the question before 0.355, by this rule 0.431; 110 changes of topic 0.461 of 0.462. On the other
# half, which chose nothing: 0.511, 0.405 and 0.525; 0.535 of 0.535. It was 3,491 of the passages.
MARGIN = 0.15
# Characters of the question before that are searched for again.
LONGEST_BEFORE = 300
# A question with one word that carries meaning is vague where the best two documents are nearer to
# each other than this, as cosine: on 60 pages of Plausible's documentation (CC BY-SA 4.0)
# "How do I set it up?", "configure", "install", "delete" and "change it", in five languages, have
# at most 0.05, and "How do I cancel?" or "export" at least 0.08.
APART = 0.06
# Words are not told apart in Chinese: so many pairs of characters make about one.
PAIRS_PER_WORD = 3
# A reply that is but the number of an option has no more characters.
LONGEST_NUMBER = 12


@dataclass(frozen=True)
class Reading:
    """A wording of the message, and what search finds with it."""

    question: str
    results: SearchResult

    @property
    def score(self) -> float:
        """Confidence above what can carry an answer; without vectors 0, for nothing found -1."""
        confidence = self.results.stats["confidence"]
        if confidence is None:
            return -1.0 if self.results.no_context else 0.0
        return float(confidence - self.results.stats["threshold"])

    @property
    def is_split(self) -> bool:
        """Whether the best passages of two documents are about as near."""
        nearest: dict[str, float] = {}
        for passage in self.results.passages:
            known = nearest.get(passage.document_id, -1.0)
            nearest[passage.document_id] = max(known, passage.cosine or 0.0)
        best = sorted(nearest.values(), reverse=True)[:2]
        return len(best) > 1 and best[0] - best[1] < APART

    def mentions(self, text: str) -> bool:
        """Whether what was found has a word of the text that carries meaning."""
        found_terms = {term for passage in self.results.passages for term in terms(passage.text)}
        return not found_terms.isdisjoint(terms(text))


Read = Callable[[str], Reading]


def question_before(topic: str, history: Sequence[Remark]) -> str:
    """Return the question that the conversation is at: its topic, or what the user said last."""
    questions = (remark.text for remark in reversed(history) if remark.role == "user")
    return " ".join((topic or next(questions, "")).split())[-LONGEST_BEFORE:]


def best_wording(
    message: str, before: str, read: Read, margin: float = MARGIN
) -> tuple[str, Wordings]:
    """Return the wording of the message that search finds more with, and how both score.

    What names nothing by itself goes on from the question before it. Where there is nothing to
    search, the message stays alone.
    """
    alone, together = read(message), read(f"{before} {message}")
    continues = together.score - alone.score > margin or is_vague(message, read)
    chosen = together if continues and together.results.passages else alone
    return chosen.question, Wordings(
        alone=round(alone.score, 3),
        together=round(together.score, 3),
        kept="together" if chosen is together else "alone",
    )


def completed_question(
    reply: str, open_question: OpenQuestion, read: Read
) -> tuple[str | None, Wordings | None]:
    """Return the open question with what the reply says; None when that asks something else.

    A reply that says nothing and finds nothing ("none of them") leaves the question as it was.
    """
    question = open_question.question
    option = chosen_option(reply, open_question.options)
    if option:
        return f"{question} {option}", None
    alone = read(reply)
    if not terms(reply) or (alone.results.no_context and not alone.mentions(reply)):
        return question, None
    completion, wordings = best_wording(reply, question, read, -MARGIN)
    return completion if wordings.kept == "together" else None, wordings


def chosen_option(reply: str, options: Sequence[str]) -> str | None:
    """Return the option the reply picks: by its number, or as the only one with all its words."""
    if number := _number(reply):
        return options[number - 1] if number <= len(options) else None
    reply_terms = set(terms(reply))
    fitting = [option for option in options if reply_terms and reply_terms <= set(terms(option))]
    exact = [option for option in options if option.casefold() == reply.strip().casefold()]
    return (exact or fitting)[0] if exact or len(fitting) == 1 else None


def _number(reply: str) -> int | None:
    """The one whole number of a short reply, in the digits or numerals of any script."""
    if len(reply.strip()) > LONGEST_NUMBER:
        return None
    digits = re.findall(r"\d+", reply)
    numerals = digits or [c for c in reply if unicodedata.numeric(c, 0) >= 1]
    if len(numerals) != 1:
        return None
    return int(digits[0]) if digits else int(unicodedata.numeric(numerals[0]))


def is_vague(question: str, read: Read) -> bool:
    """Whether a question names nothing: no word that carries meaning, or one that fits anything.

    It fits anything where several documents are about as near. A word that stands for itself is
    looked up: "invoices" asks for whatever there is.
    """
    question_terms = terms(question)
    if len(words(question)) == len(question_terms) == 1:
        return False
    pairs = sum(unicodedata.category(term[0]) == "Lo" for term in question_terms)
    weight = len(question_terms) - pairs + pairs / PAIRS_PER_WORD
    return not question_terms or (weight <= 1 and read(question).is_split)
