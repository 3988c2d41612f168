"""Corpus: documents nobody wrote, as many as asked for, whose words and vectors lie like real ones.

Words are drawn by Zipf's law, some from the words of the document's subject; vectors lie around
their document's, and those around their subject's. Everything follows from one seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from knowledge.names import LOCAL_DIMENSIONS

SEED = 7
PER_SECTION, PER_DOCUMENT = 2, 10  # chunks
WORDS = 250  # of a chunk
SUBJECTS = 400
VOCABULARY = 40_000
OF_SUBJECT = 300  # words that documents of one subject prefer
# What English text consists of: function words, words of its subject, and the rest.
SHARES = (0.45, 0.2, 0.35)
FUNCTION = (
    "the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "with", "on", "by",
    "this", "be", "or", "are", "from", "at", "an", "not", "you",
)  # fmt: skip
# Length of what sets a document apart from its subject, and a chunk from its document.
SPREAD = 0.8
SYLLABLES = [a + b for a, b in product("bdfgklmnprstvz", "aeiou")]
LENGTHS = (2, 3, 4)  # syllables of a word


@dataclass(frozen=True)
class Corpus:
    """The texts and vectors of one collection, chunk by chunk."""

    texts: Sequence[str]
    vectors: NDArray[np.float32]  # (chunks, 384), of length 1


def vocabulary(random: np.random.Generator) -> NDArray[np.str_]:
    """Return words that can be spoken, each once, frequent ones first."""
    lengths = random.choice(LENGTHS, 2 * VOCABULARY)
    made = ("".join(random.choice(SYLLABLES, length)) for length in lengths)
    return np.array(list(dict.fromkeys(made))[:VOCABULARY])


def make(chunks: int) -> Corpus:
    """Return a corpus of so many chunks."""
    random = np.random.default_rng(SEED)
    subjects = random.integers(0, SUBJECTS, -(-chunks // PER_DOCUMENT))
    of_chunk = np.repeat(subjects, PER_DOCUMENT)[:chunks]
    return Corpus(list(texts(of_chunk, random)), vectors(subjects, chunks, random))


def texts(subjects: NDArray[np.int64], random: np.random.Generator) -> Iterator[str]:
    """Yield a text per subject given."""
    words = vocabulary(random)
    zipf = np.cumsum(1 / (np.arange(len(words)) + 2.7))
    preferred = random.integers(0, len(words), (SUBJECTS, OF_SUBJECT))
    kinds = random.choice(3, (len(subjects), WORDS), p=SHARES).astype(np.int8)
    for subject, kind in zip(subjects, kinds, strict=True):
        drawn = words[np.searchsorted(zipf, random.random(WORDS) * zipf[-1])]
        # Squared: the first of a subject's words are its most frequent.
        of_subject = preferred[subject, (random.random(WORDS) ** 2 * OF_SUBJECT).astype(int)]
        drawn = np.where(kind == 1, words[of_subject], drawn)
        yield " ".join(np.where(kind == 0, random.choice(FUNCTION, WORDS), drawn)) + "."


def vectors(
    subjects: NDArray[np.int64], chunks: int, random: np.random.Generator
) -> NDArray[np.float32]:
    """Return unit vectors: of one document close together, of one subject near each other."""

    def near(centres: NDArray[np.float32]) -> NDArray[np.float32]:
        noise = random.standard_normal(centres.shape, dtype=np.float32)
        return unit(centres + SPREAD * unit(noise))

    centres = unit(random.standard_normal((SUBJECTS, LOCAL_DIMENSIONS), dtype=np.float32))
    documents = near(centres[subjects])
    return near(np.repeat(documents, PER_DOCUMENT, axis=0)[:chunks])


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows at length 1."""
    length: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return length


@dataclass(frozen=True)
class Questions:
    """Texts of a dozen words and vectors, each drawn from and lying near one chunk."""

    texts: list[str]
    vectors: NDArray[np.float32]
    meant: list[str]  # the texts of those chunks


def questions(corpus: Corpus, count: int) -> Questions:
    """Return so many questions, as many as there are chunks at most."""
    random = np.random.default_rng(SEED + 1)
    places = random.choice(len(corpus.texts), min(count, len(corpus.texts)), replace=False)
    meant = [corpus.texts[place] for place in places]
    asked = [" ".join(random.choice(text.rstrip(".").split(), 12)) for text in meant]
    noise = random.standard_normal((len(meant), LOCAL_DIMENSIONS), dtype=np.float32)
    return Questions(asked, unit(corpus.vectors[places] + SPREAD * unit(noise)), meant)
