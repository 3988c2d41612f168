"""Terms: the words of a text that carry its meaning, in a form in which two texts compare."""

import re
from pathlib import Path

APOSTROPHE = "\u2019"
WORD = re.compile(rf"[^\W_]+(?:['{APOSTROPHE}.-][^\W_]+)*")
HAN = re.compile(r"[\u3400-\u9fff]+")
ENDINGS = ("'s", "ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "e")
# Russian, German or French endings are many: the beginning of a word stands for all its forms.
BEGINNING = 6


def vocabulary(file: Path) -> dict[str, frozenset[str]]:
    """The words a file lists per language, one line "language: words" each."""
    lines = file.read_text("utf-8").splitlines()
    pairs = (line.split(":", maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {language: frozenset(listed.split()) for language, listed in pairs}


FUNCTION_WORDS = vocabulary(Path(__file__).parent / "function_words.txt")
EVERY_FUNCTION_WORD = frozenset().union(*FUNCTION_WORDS.values())


def words(text: str) -> list[str]:
    """The words of `text` in lower case; each run of Chinese characters in pairs."""
    found: list[str] = []
    for word in WORD.findall(text.casefold().replace(APOSTROPHE, "'")):
        if HAN.search(word):
            for run in HAN.findall(word):
                found.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
            found.extend(WORD.findall(HAN.sub(" ", word)))
        else:
            found.append(word)
    return found


def stem(word: str) -> str:
    """One form for the inflected forms of a word; rough, the same for question and passage."""
    if not word.isascii():
        return word[:BEGINNING]
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            cut = word[: -len(ending)]
            return cut + "y" if ending == "ies" else _undoubled(cut)
    return _undoubled(word)


def _undoubled(word: str) -> str:
    """`stopp` as left by `stopping`, and `tri` for `try` as left by `tried`."""
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] + "y" if word.endswith("i") else word


def _small_words_of(found: list[str]) -> frozenset[str]:
    """The function words to leave out: English ones, unless another language speaks louder.

    "die" is no more than an article in German and everything in an English question.
    """
    english = sum(word in FUNCTION_WORDS["en"] for word in found)
    others = (sum(word in own for word in found) for own in FUNCTION_WORDS.values())
    return FUNCTION_WORDS["en"] if english >= max(others) else EVERY_FUNCTION_WORD


def content_words(text: str) -> list[str]:
    """The words of `text` that are not function words, in lower case and in order."""
    found = words(text)
    small = _small_words_of(found)
    return [word for word in found if word not in small]


def terms(text: str) -> list[str]:
    """The stems of the content words of `text`, each once, in order."""
    return list(dict.fromkeys(stem(word) for word in content_words(text)))
