"""Translation: gives the question in English, as far as that can be done honestly."""

import re
from difflib import SequenceMatcher

from pydantic import BaseModel

from agents.attributes import Unit
from agents.contract import View, Writes, llm_agent
from agents.intake.lang import likelihood
from agents.intake.wishes import without_wishes
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.schema import NonEmpty, at_most
from agents.names import Role
from agents.words import ENGLISH, LITERAL, base_language, digit_runs, literals
from knowledge.search.scope import scope_of
from knowledge.search.typos import strange_words
from prompts.prompt import Prompt

PROMPT = Prompt("translation", "text", "language")
SURELY_ENGLISH = 0.9
# A translation that lost something is no sure one.
UNSURE = 0.5
MOST_CORRECTIONS, LONGEST_CORRECTION = 20, 200
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
# A corrected text is much like the text; what obeys it is not: four badly misspelt questions came
# to 0.76 and more, five replies to injections to 0.31 and less. Short texts may change a lot.
LIKE = 0.45
SHORTEST = 40
COMPARED = 600  # characters from the beginning
# A translation has so many characters for each of its text. Of 2,200 questions in eleven languages
# (XQuAD) the English ones have .52 to 2.26, for Chinese 1.8 to 5.3; a word that was ordered instead
# has far fewer, and a poem more.
LEAST, MOST = 0.4, 6.0


class Message(View):
    """What translation reads."""

    text: str = ""
    language: str = ENGLISH
    spoken_language: str = ""
    collections: list[str] = []
    languages: list[str] = []
    audience: str = ""


class Translation(BaseModel):
    """The text in English, as the model gives it."""

    text_eng: NonEmpty
    corrections: list[str]
    confidence: Unit


@llm_agent(
    Role.TRANSLATION,
    reads=Message,
    writes=("text_eng", "translation_confidence", "corrections", "corrections_made"),
)
def translate(view: Message, llm: Model) -> Writes:
    """Let the model translate or correct; what must survive and did not is put back.

    English with nothing to correct goes on as it is, unasked. Raises ModelFailure when what came
    back is another text.
    """
    text = view.text
    if not text.strip() or (_is_english(view) and not _strange_words(view)):
        return carry_over(view)
    translation = llm.ask(PROMPT, Translation, text=text, language=_spoken(view))
    english = translation.text_eng
    obeys = is_rewritten if _surely_english(text) else is_out_of_proportion
    if obeys(text, english):
        raise ModelFailure(Outcome.MALFORMED, "the model wrote another text than the one given")
    missing = lost(text, english)
    corrections = at_most(translation.corrections, MOST_CORRECTIONS, LONGEST_CORRECTION)
    return {
        "text_eng": "\n".join([english, *missing]),
        "translation_confidence": min(translation.confidence, UNSURE)
        if missing
        else translation.confidence,
        "corrections": corrections,
        "corrections_made": bool(corrections),
    }


def _strange_words(view: Message) -> list[str]:
    """The words that are misspelt, or of another language, as far as the documents tell."""
    scope = scope_of(view.collections, view.languages, view.audience)
    return strange_words(LITERAL.sub(" ", without_wishes(view.text)), scope)


def _is_english(view: Message) -> bool:
    return base_language(_spoken(view)) == ENGLISH or _surely_english(view.text)


def _spoken(view: Message) -> str:
    """The language of the message, as far as it is known."""
    return view.spoken_language or view.language


def _surely_english(text: str) -> bool:
    return likelihood(text).get(ENGLISH, 0) >= SURELY_ENGLISH


@translate.without_model
def carry_over(view: Message) -> Writes:
    """Pass the text on unchanged, certain when it is English and with no confidence otherwise.

    Somebody who asked for answers in another language may well go on writing English.
    """
    return {
        "text_eng": view.text,
        "translation_confidence": float(_is_english(view)),
        "corrections": [],
        "corrections_made": False,
    }


def lost(text: str, translation: str) -> list[str]:
    """Return the code, addresses, identifiers and numbers of `text` that `translation` lacks.

    Numbers may be written with other separators: only their digits count.
    """
    missing = [literal for literal in literals(text) if literal not in translation]
    digits = set(digit_runs(translation))
    numbers = NUMBER.findall(LITERAL.sub(" ", text))
    missing += [number for number in numbers if not digits.issuperset(digit_runs(number))]
    return list(dict.fromkeys(missing))


def is_rewritten(text: str, corrected: str) -> bool:
    """Whether a text that was only to be corrected came back as another one."""
    if len(text) < SHORTEST:
        return False
    before, after = (" ".join(each.casefold().split())[:COMPARED] for each in (text, corrected))
    return SequenceMatcher(None, before, after, autojunk=False).ratio() < LIKE


def is_out_of_proportion(text: str, translation: str) -> bool:
    """Whether a text is too short or too long to be the translation of another."""
    return len(text) >= SHORTEST and not LEAST <= len(translation) / len(text) <= MOST
