"""Language weights: the model that tells languages apart, trained on lists of words.

`python3 -m assistant.lab.language_weights FOLDER`, with `content/2018` of hermitdave/FrequencyWords
(words of film subtitles with their counts; CC BY-SA 4.0, and so are the weights), takes two
minutes and writes `knowledge/language.npz`. It is the same every time.
"""

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from assistant.lab.softmax_regression import Batch, Regression, in_bytes, save
from knowledge.language import WEIGHTS, features, pieces, scripts

# Those of the lists that have a state, or a script, to themselves; two words do not tell Bosnian,
# Galician and Malay from their neighbours.
LANGUAGES = [
    "af", "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa",
    "fi", "fr", "he", "hi", "hr", "hu", "hy", "id", "is", "it", "ja", "ka", "kk", "ko",
    "lt", "lv", "mk", "ml", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sq", "sr",
    "sv", "ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "zh",
]  # fmt: skip
LISTS = {"pt": ("pt", "pt_br"), "zh": ("zh_cn", "zh_tw")}
UNSPACED = frozenset({"ja", "th", "zh"})
MOST_WORDS = 50_000  # of a language
# Words count by this power of how often they are said: subtitles are small talk, questions are not.
# Languages come up by this power of how many words were counted of each.
WORD_POWER, LANGUAGE_POWER = 0.75, 0.5
LONGEST = 5  # words of a text
# Shares of the texts that are typed without accents, and that English names were mixed into; the
# commonest English words are no names.
UNACCENTED, MIXED, NAMES = 0.1, 0.3, range(300, 20_000)
USUAL = 0.05  # share of the words of a language that are in a script it is written in
SIZE = 1 << 16  # rows
STEPS, BATCH, RATE, BIAS_RATE = 6000, 256, 0.5, 0.001
LETTERS = str.maketrans("łıßøđæ", "lisoda")  # that do not come apart into a letter and a mark


class Lexicon(NamedTuple):
    """The words of a language, the commonest first, and how likely each and all before it are."""

    words: list[str]
    cumulative: NDArray[np.float64]
    counted: int


def lexicon(folder: Path, language: str) -> Lexicon:
    """Read a language's lists; words in scripts that it is seldom written in are left out."""
    counts: Counter[str] = Counter()
    for name in LISTS.get(language, (language,)):
        files = (folder / name / f"{name}_{kind}.txt" for kind in ("50k", "full"))
        for line in next(filter(Path.is_file, files)).read_text("utf-8").splitlines():
            word, _, count = line.rpartition(" ")
            for piece in pieces(word):
                counts[piece] += int(count)
    written: Counter[str] = Counter()
    for word, times in counts.items():
        written.update(dict.fromkeys(scripts(word), times))
    usual = {script for script, times in written.items() if times >= USUAL * counts.total()}
    common = Counter({word: n for word, n in counts.items() if scripts(word) <= usual})
    chosen = common.most_common(MOST_WORDS)
    powers = np.array([count for _, count in chosen], float) ** WORD_POWER
    return Lexicon([word for word, _ in chosen], np.cumsum(powers / powers.sum()), counts.total())


def unaccented(word: str) -> str:
    """Return a word as it is typed on a keyboard without its accents."""
    apart = unicodedata.normalize("NFD", word.translate(LETTERS))
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


class Texts:
    """Texts drawn from the lists: some words of one language, by chance."""

    def __init__(self, lexicons: dict[str, Lexicon], rng: np.random.Generator) -> None:
        self.lexicons = lexicons
        self.rng = rng
        counted = np.array([lexicons[each].counted for each in LANGUAGES]) ** LANGUAGE_POWER
        self.shares = counted / counted.sum()

    def draw(self) -> Iterator[tuple[int, list[str]]]:
        """Yield a batch: the place of the language, and the words."""
        for place in self.rng.choice(len(LANGUAGES), size=BATCH, p=self.shares):
            yield int(place), self.text(LANGUAGES[place])

    def text(self, language: str) -> list[str]:
        """Return the words of a text."""
        words, cumulative, _ = self.lexicons[language]
        chances = self.rng.random(1 + self.rng.integers(LONGEST))
        chosen = [words[min(at, len(words) - 1)] for at in np.searchsorted(cumulative, chances)]
        if language in UNSPACED:
            chosen = ["".join(chosen)]
        elif self.rng.random() < UNACCENTED:
            chosen = [unaccented(word) for word in chosen]
        is_long = len(chances) > 2
        if language != "en" and is_long and self.rng.random() < MIXED:
            count = 1 + int(self.rng.integers(len(chances) // 2))
            english = self.lexicons["en"].words
            names = [english[at] for at in self.rng.integers(NAMES.start, NAMES.stop, count)]
            chosen = chosen[0 if language in UNSPACED else count - 1 :] + names
        return chosen


@cache
def cached_features(word: str) -> list[int]:
    """Return the buckets of a word, which comes up again and again."""
    return features(word, SIZE)


def train(texts: Texts) -> Regression:
    """Return weights and bias, with a rate that falls to 0."""
    model = Regression(SIZE, len(LANGUAGES), share=True)
    for step in range(STEPS):
        languages, drawn = zip(*texts.draw(), strict=True)
        found = [[bucket for word in words for bucket in cached_features(word)] for words in drawn]
        batch = Batch(found, np.array(languages))
        rate = RATE * (1 - step / STEPS)
        model.learn(batch, batch.errors(model.scores(batch)), rate, bias_rate=BIAS_RATE * rate)
    return model


if __name__ == "__main__":
    lexicons = {language: lexicon(Path(sys.argv[1]), language) for language in LANGUAGES}
    # A byte for a weight costs 0.002 of the accuracy on pairs of words.
    save(in_bytes(LANGUAGES, train(Texts(lexicons, np.random.default_rng(0)))), WEIGHTS)
