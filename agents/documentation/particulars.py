"""Particulars: what of a sentence its passage has to hold as it is: numbers, names, code."""

import re
from dataclasses import dataclass

from agents.documentation.quantities import ONE, agree, counted
from agents.terms import stem, words

ADDRESS = re.compile(r"https?://[^\s)>\]]+|www\.[^\s)>\]]+|[\w.+-]+@[\w-]+\.[\w.]+")
CODE = re.compile(r"`([^`\n]+)`")
# T2, maxRetries, max_retries, API: nobody translates those.
IDENTIFIER = re.compile(
    r"\b(?=\w*[^\W\d]\w*)(?:\w*_\w+|[^\W_]*[^\W\d_]\d\w*|\w+[a-z][A-Z]\w*|[A-Z]{2,}s?)\b"
)
CAPITALISED = re.compile(r"(?<=[\w,;:)\]] )[A-Z][\w'\u2019-]+")


@dataclass(frozen=True)
class Missing:
    """What a sentence names and its passage does not."""

    numbers: bool  # or addresses, or code: nothing a passage can mean without saying it
    names: bool  # or numbers in words, which may count what the passage lists

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        return self.numbers or self.names


def missing(sentence: str, passage: str, *, names: bool = True) -> Missing:
    """Compare what a sentence names with its passage.

    `names`: whether words that begin with a capital are names, as they are in English.
    """
    held = passage.casefold()
    exact = [each.rstrip(".,;:") for each in ADDRESS.findall(sentence)]
    exact += [each.strip() for each in CODE.findall(sentence)]
    bare = CODE.sub(" ", ADDRESS.sub(" ", sentence))
    named = [each for each in IDENTIFIER.findall(bare) if each.casefold() not in held]
    if names and (capitalised := CAPITALISED.findall(bare)):
        said = {stem(word) for word in words(passage)}
        named += [w for w in capitalised if not {stem(p) for p in words(w)} & said]
    return Missing(
        numbers=not agree(bare, passage)
        or any(" ".join(each.casefold().split()) not in " ".join(held.split()) for each in exact),
        names=bool(named)
        or not counted(bare) - {ONE} <= counted(passage)
        or not agree(bare, passage, one=True),
    )
