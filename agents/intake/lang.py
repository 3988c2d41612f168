"""Lang: finds the language the user speaks, to answer in it."""

from collections.abc import Iterable, Mapping

from pydantic import Field

from agents.attributes import Persona, Remark
from agents.contract import View, Writes, agent
from agents.intake.wishes import answer_language
from agents.names import Role
from agents.words import ENGLISH, base_language
from knowledge.language import LATIN, likeliest, pieces, probabilities, prose

# Characters that settle the language of any message.
ENOUGH_TEXT = 2000
RECENT = 3
# Somebody who says which language to answer in leaves little doubt.
WISHED = 0.95
# So much the language asked for, or else the one spoken so far, multiplies the odds of a message.
SETTLED = 6.0
# A change of language needs this probability; a single word that is of no language with an even
# chance ("login") is taken for English.
SURE, EVEN = 0.8, 0.5


class Message(View):
    """What lang reads: the message, those before it, and which languages are asked for or had."""

    text: str = ""
    history: list[Remark] = []
    language_preference: str | None = None
    assistant: Persona = Field(default_factory=Persona)


@agent(Role.LANG, reads=Message, writes=("language", "confidence", "spoken_language"))
def recognise(view: Message) -> Writes:
    """Find the language of the user, and answer in another one where the assistant has its own."""
    found = _found(view)
    spoken = found["language"]
    if view.assistant.answers_in(spoken):
        return found
    return found | {"language": view.assistant.language_for(spoken), "spoken_language": spoken}


def _found(view: Message) -> Writes:
    """Weigh the message, the last messages and the stored preference."""
    text = view.text
    requested = answer_language(text)
    if requested:
        return {"language": requested, "confidence": WISHED}
    # Who asks for the language of the message itself takes back what was asked for before.
    preference = view.language_preference if requested is None else None
    preferred = preference and base_language(preference)
    current = preferred or _language_before(view.history)
    chances = likelihood(text, {current: SETTLED} if current else {})
    if not chances:
        return {"language": current or ENGLISH, "confidence": 0.5 if current else 0.2}
    language = likeliest(chances)
    if current is None:
        is_telling = chances[language] >= EVEN or not LATIN.search(prose(text[:ENOUGH_TEXT]))
        spoken = language if is_telling else ENGLISH
        return {"language": spoken, "confidence": chances[spoken]}
    is_sure = chances[language] >= SURE and _says_enough(text)
    # Who asked for answers in German may go on writing English: the wish stands.
    is_sure = is_sure and not (preferred and language == ENGLISH)
    if language != current and not is_sure:
        return {"language": current, "confidence": 0.5}
    return {"language": language, "confidence": chances[language]}


def _language_before(history: Iterable[Remark]) -> str | None:
    """The language of the user's last messages, read together."""
    texts = [remark.text for remark in history if remark.role == "user"][-RECENT:]
    chances = likelihood("\n".join(texts))
    return likeliest(chances) if chances else None


def _says_enough(text: str) -> bool:
    """Whether a message shows its language by itself: people say "merci" in any."""
    words = pieces(prose(text[:ENOUGH_TEXT]))
    return len(words) > 1 or not LATIN.search("".join(words))


def likelihood(text: str, leaning: Mapping[str, float] | None = None) -> dict[str, float]:
    """Probabilities of the languages `text` may be in, summing to 1; empty without letters.

    `leaning` multiplies the odds of languages that the conversation makes likelier.
    """
    chances = probabilities(prose(text[:ENOUGH_TEXT]))
    for language, factor in (leaning or {}).items():
        chances[language] = chances.get(language, 0.0) * factor
    total = sum(chances.values())
    return {language: chance / total for language, chance in chances.items()} if total else {}
