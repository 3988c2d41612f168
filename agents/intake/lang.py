"""Lang: finds the language the user speaks, to answer in it."""

from collections import Counter
from collections.abc import Iterable

from agents.attributes import Remark
from agents.contract import View, Writes, agent
from agents.intake.spoken import ENOUGH_TEXT, ENOUGH_WORDS, likelihood
from agents.intake.wishes import answer_language
from agents.languages import ENGLISH, base
from agents.names import Role
from agents.terms import FUNCTION_WORDS, words
from knowledge.script import prose, script_of

RECENT = 3
# Somebody who says which language to answer in leaves little doubt.
WISHED = 0.95
# So much the language asked for, or else the one spoken so far, multiplies the odds of a message.
SETTLED = 6.0
# A change of language needs this probability and a word that tells, or enough words.
SURE = 0.8


def _before(history: Iterable[Remark]) -> str | None:
    """The language of the user's last messages, read together."""
    said = [remark.text for remark in history if remark.role == "user"][-RECENT:]
    chances = likelihood("\n".join(said))
    return max(chances, key=lambda language: chances[language]) if chances else None


def _tells(text: str, language: str) -> bool:
    """Whether the message itself, short as it may be, shows that it is in `language`.

    A single word does not, unless its script does: people say "merci" in any language.
    """
    plain = prose(text[:ENOUGH_TEXT])
    if script_of(plain) != "latin":
        return True
    spoken = words(plain)
    if len(spoken) >= ENOUGH_WORDS:
        return True
    own = FUNCTION_WORDS.get(language, frozenset())
    return len(spoken) > 1 and not own.isdisjoint(spoken)


class Message(View):
    """What lang reads: the message, those before it, and the language asked for."""

    text: str = ""
    history: list[Remark] = []
    language_preference: str | None = None


@agent(Role.LANG, reads=Message, writes=("language", "confidence"))
def recognise(view: Message) -> Writes:
    """Weigh the message, its script, the last messages and the stored preference."""
    text = view.text
    wished = answer_language(text)
    if wished:
        return {"language": wished, "confidence": WISHED}
    # Who asks for the language of the message itself takes back what was asked for before.
    stored = view.language_preference if wished is None else None
    preferred = stored and base(stored)
    settled = preferred or _before(view.history)
    leaning: Counter[str] = Counter({settled: SETTLED}) if settled else Counter()
    chances = likelihood(text, leaning)
    if not chances:
        return {"language": settled or ENGLISH, "confidence": 0.5 if settled else 0.2}
    language = max(chances, key=lambda name: chances[name])
    sure = chances[language] >= SURE and _tells(text, language)
    # Who asked for answers in German may go on writing English: the wish stands.
    sure = sure and not (preferred and language == ENGLISH)
    if settled and language != settled and not sure:
        return {"language": settled, "confidence": 0.5}
    return {"language": language, "confidence": chances[language]}
