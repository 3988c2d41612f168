"""Corpus: documents nobody wrote, whose words and vectors lie like real ones, in the tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from knowledge.identifiers import LOCAL_DIMENSIONS, LOCAL_MODEL
from knowledge.models import Collection, Document, document_id
from knowledge.search import postings, vector_indexes

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
SHA1 = "0" * 40
MOST_ROWS = 100_000_000  # of one corpus


@dataclass(frozen=True)
class Corpus:
    """The texts and vectors of one collection, chunk by chunk."""

    texts: Sequence[str]
    vectors: NDArray[np.float32]  # (chunks, 384), of length 1


def vocabulary(random: np.random.Generator) -> NDArray[np.str_]:
    """Return words that can be spoken, each once, frequent ones first."""
    lengths = random.choice(LENGTHS, 2 * VOCABULARY)
    words = ("".join(random.choice(SYLLABLES, length)) for length in lengths)
    return np.array(list(dict.fromkeys(words))[:VOCABULARY])


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
    sources: list[str]  # the texts of those chunks


def questions(corpus: Corpus, count: int) -> Questions:
    """Return so many questions, as many as there are chunks at most."""
    random = np.random.default_rng(SEED + 1)
    places = random.choice(len(corpus.texts), min(count, len(corpus.texts)), replace=False)
    sources = [corpus.texts[place] for place in places]
    texts = [" ".join(random.choice(text.rstrip(".").split(), 12)) for text in sources]
    noise = random.standard_normal((len(sources), LOCAL_DIMENSIONS), dtype=np.float32)
    return Questions(texts, unit(corpus.vectors[places] + SPREAD * unit(noise)), sources)


def store(corpus: Corpus, name: str) -> Collection:
    """Write the corpus as a collection; sections and documents lie at the mean of their chunks."""
    collection = Collection.objects.create(name=name)
    vector_indexes.drop(LOCAL_MODEL)  # row by row they would take an hour
    documents = -(-len(corpus.texts) // PER_DOCUMENT)
    sections = -(-len(corpus.texts) // PER_SECTION)
    ids = [document_id(name, f"{number}.md") for number in range(documents)]
    Document.objects.bulk_create(
        (
            Document(
                id=identifier,
                collection=collection,
                source=f"{number}.md",
                origin=f"{name}/{number}.md",
                title=f"Page {number}",
                sha1=SHA1,
            )
            for number, identifier in enumerate(ids)
        ),
        batch_size=2000,
    )
    first_section, first_chunk = reserve("section"), reserve("chunk")
    copy(
        "section (id, document_id, number, path)",
        (
            (first_section + place, ids[place * PER_SECTION // PER_DOCUMENT], place, "[]")
            for place in range(sections)
        ),
    )
    copy(
        "chunk (id, document_id, section_id, number, text, keywords, sha1, tokens)",
        (
            (first_chunk + place, ids[place // PER_DOCUMENT], first_section + place // PER_SECTION,
             place + 1, text, "[]", SHA1, 250)
            for place, text in enumerate(corpus.texts)
        ),
    )  # fmt: skip
    store_vectors("chunk", "int8", count(first_chunk), corpus.vectors, collection)
    store_vectors("section", "int8", count(first_section), means(corpus, PER_SECTION), collection)
    store_vectors("document", "text", ids, means(corpus, PER_DOCUMENT), collection)
    index_all()
    return collection


def reserve(table: str) -> int:
    """Return an id from which on all are free, and move the sequence far beyond."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(%s)", [f"knowledge_{table}_id_seq"])
        free = int(cursor.fetchone()[0])
        cursor.execute("SELECT setval(%s, %s)", [f"knowledge_{table}_id_seq", free + MOST_ROWS])
    return free


def copy(target: str, rows: Iterable[Sequence[Any]], types: Sequence[str] = ()) -> None:
    """Fill the table; in binary when the types of its columns are given."""
    connection.ensure_connection()
    format_ = " (FORMAT binary)" if types else ""
    with (
        connection.connection.cursor() as cursor,
        cursor.copy(f"COPY knowledge_{target} FROM STDIN{format_}") as stream,
    ):
        if types:
            stream.set_types(types)
        for row in rows:
            stream.write_row(row)


def store_vectors(
    kind: str,
    key: str,
    ids: Iterable[int] | Iterable[str],
    rows: NDArray[np.float32],
    collection: Collection,
) -> None:
    """Fill a table of vectors."""
    connection.ensure_connection()
    register_vector(connection.connection)
    copy(
        f"{kind}vector ({kind}_id, collection_id, model, embedding)",
        (
            (identifier, collection.pk, LOCAL_MODEL, HalfVector(row))
            for identifier, row in zip(ids, rows, strict=False)
        ),
        (key, "int8", "text", "halfvec"),
    )


def means(corpus: Corpus, group: int) -> NDArray[np.float32]:
    """Return the unit vector in the direction of the mean of every `group` chunks."""
    return unit(np.add.reduceat(corpus.vectors, np.arange(0, len(corpus.texts), group), axis=0))


def index_all() -> None:
    """Write the postings, index the vectors, and let the planner know what there is."""
    postings.rebuild()
    vector_indexes.ensure(LOCAL_MODEL, LOCAL_DIMENSIONS)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
