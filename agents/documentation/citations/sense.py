"""Sense: whether a statement says anything, in a language that can be told."""

from agents.words import base_language, words
from knowledge.language import SURE, likeliest, pieces, probabilities, prose

# Of 2,349 questions in twelve languages (XQuAD) and claims (WiCE) none says each of its words more
# than 1.5 times, and .995 are told to be in some language with the chance SURE; of 600 made of
# random letters, syllables or neighbouring keys .08 are.
REPEATED = 2.5
FOREIGN = 0.95
FEWEST = 4  # words: fewer tell no language


def repeats(text: str) -> bool:
    """Whether a text says the same over and over."""
    said = words(text)
    return len(said) > REPEATED * len(set(said))


def novelty(text: str) -> float:
    """The share of a text's runs of three words that it did not say before, 0 to 1."""
    said = words(text)
    runs = list(zip(said, said[1:], said[2:], strict=False))
    return len(set(runs)) / len(runs) if runs else 1.0


def is_no_language(text: str) -> bool:
    """Whether the words of a text are not surely of any language."""
    plain = prose(text)
    return len(pieces(plain)) >= FEWEST and max(probabilities(plain).values(), default=1) < SURE


def is_foreign(text: str, original: str, language: str) -> bool:
    """Whether a text is surely neither in the language of its original nor in the one asked for.

    Not told where that is a language which the model does not know. Of 9,767 sentences, rows and
    lines of code of 247 English pages .002 would be taken for another language: rows of a table,
    names and lines of a shell.
    """
    plain = prose(text)
    chances = probabilities(plain)
    wanted = {base_language(language), likeliest(probabilities(prose(original)))}
    if len(pieces(plain)) < FEWEST or base_language(language) not in chances:
        return False
    best = likeliest(chances)
    return best not in wanted and chances[best] >= FOREIGN


def is_translated(text: str, original: str, language: str = "") -> bool:
    """Whether a text is in another language than its original: the one that was asked for.

    Any other will do where none is named.
    """
    chances = probabilities(prose(text))
    best = likeliest(chances)
    wanted = base_language(language) or best
    return (
        wanted != likeliest(probabilities(prose(original)))
        and best == wanted
        and chances.get(best, 0) >= SURE
    )
