"""Lang: finds the language the user speaks, to answer in it."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from agents.attributes import Remark
from agents.contract import View, Writes, agent
from agents.intake.wishes import answer_language
from agents.names import Role
from agents.words import ENGLISH, FUNCTION_WORDS, LOCALES, base_language, vocabulary, words
from knowledge.language import (
    NOT_LATIN,
    TELLING,
    has_telling_letter,
    letter_probabilities,
    odds_in_script,
    prose,
    script_of,
)

EVERYDAY = vocabulary(Path(__file__).parent / "everyday_words.txt")
# From here on letter statistics count in full; below, they are a gamble (measured on questions
# cut to their first two to four words).
ENOUGH_LETTERS = 35
# Chance of a language the letters do not suggest at all: product names mislead them.
UNSEEN = 0.05
# What one telling word adds to the logarithm of the odds, and how many words count.
HINT, MOST_HINTS = 3.5, 4
ENOUGH_WORDS = 4
# Characters that settle the language of any message.
ENOUGH_TEXT = 2000
RECENT = 3
# Somebody who says which language to answer in leaves little doubt.
WISHED = 0.95
# So much the language asked for, or else the one spoken so far, multiplies the odds of a message.
SETTLED = 6.0
# A change of language needs this probability and a word that tells, or enough words.
SURE = 0.8


class Message(View):
    """What lang reads: the message, those before it, and the language asked for."""

    text: str = ""
    history: list[Remark] = []
    language_preference: str | None = None


@agent(Role.LANG, reads=Message, writes=("language", "confidence"))
def recognise(view: Message) -> Writes:
    """Weigh the message, its script, the last messages and the stored preference."""
    text = view.text
    requested = answer_language(text)
    if requested:
        return {"language": requested, "confidence": WISHED}
    # Who asks for the language of the message itself takes back what was asked for before.
    preference = view.language_preference if requested is None else None
    preferred = preference and base_language(preference)
    current = preferred or _language_before(view.history)
    leaning: Counter[str] = Counter({current: SETTLED}) if current else Counter()
    chances = likelihood(text, leaning)
    if not chances:
        return {"language": current or ENGLISH, "confidence": 0.5 if current else 0.2}
    language = max(chances, key=lambda name: chances[name])
    is_sure = chances[language] >= SURE and _shows_language(text, language)
    # Who asked for answers in German may go on writing English: the wish stands.
    is_sure = is_sure and not (preferred and language == ENGLISH)
    if current and language != current and not is_sure:
        return {"language": current, "confidence": 0.5}
    return {"language": language, "confidence": chances[language]}


def _language_before(history: Iterable[Remark]) -> str | None:
    """The language of the user's last messages, read together."""
    texts = [remark.text for remark in history if remark.role == "user"][-RECENT:]
    chances = likelihood("\n".join(texts))
    return max(chances, key=lambda language: chances[language]) if chances else None


def _shows_language(text: str, language: str) -> bool:
    """Whether the message itself, short as it may be, shows that it is in `language`.

    A single word does not, unless its script does: people say "merci" in any language.
    """
    plain = prose(text[:ENOUGH_TEXT])
    if script_of(plain) != "latin":
        return True
    message_words = words(plain)
    if len(message_words) >= ENOUGH_WORDS:
        return True
    function_words = FUNCTION_WORDS.get(language, frozenset())
    return len(message_words) > 1 and not function_words.isdisjoint(message_words)


def likelihood(text: str, leaning: Mapping[str, float] | None = None) -> dict[str, float]:
    """Probabilities of the languages `text` may be in, summing to 1; empty without letters.

    `leaning` multiplies the odds of languages that the conversation makes likelier.
    """
    plain = prose(text[:ENOUGH_TEXT])
    script = script_of(plain)
    if script is None:
        return {}
    leaning = leaning or {}
    if script != "latin":
        odds = odds_in_script(script, plain)
        return _shares({each: odds[each] * leaning.get(each, 1.0) for each in odds})
    letters = letter_probabilities(plain)
    hints = _hints(plain)
    candidates = set(letters) | set(hints) | set(LOCALES) | set(leaning)
    trust = min(1.0, sum(map(str.isalpha, plain)) / ENOUGH_LETTERS)
    odds = {
        language: (letters.get(language, 0) + UNSEEN) ** trust
        * math.exp(HINT * min(hints[language], MOST_HINTS))
        * _familiarity(language, plain)
        * leaning.get(language, 1.0)
        for language in candidates - NOT_LATIN
    }
    return _shares(odds)


def _hints(text: str) -> dict[str, float]:
    """How strongly the words and letters of `text` speak for each language with Latin letters.

    A word that several languages share counts for each of them by its share; an everyday
    word counts half, for many are used in other languages too.
    """
    hints: dict[str, float] = defaultdict(float)
    for word in set(words(text)):
        for vocabularies, weight in ((FUNCTION_WORDS, 1.0), (EVERYDAY, 0.5)):
            sharing = [language for language, own in vocabularies.items() if word in own]
            for language in sharing:
                hints[language] += weight / len(sharing)
    for language in TELLING:
        hints[language] += 0.5 * has_telling_letter(language, text)
    return hints


def _familiarity(language: str, text: str) -> float:
    """How likely a language is before a word of it is read; less so in very short texts."""
    if language == ENGLISH:
        return 2.0
    if language in LOCALES:
        return 1.0
    short = len(text.split()) < ENOUGH_WORDS
    if language in FUNCTION_WORDS:
        return 0.2 if short else 0.5
    return 0.02 if short else 0.1


def _shares(odds: Mapping[str, float]) -> dict[str, float]:
    total = sum(odds.values())
    return {language: value / total for language, value in odds.items()}
