"""Typos: words of a question that no document has, and what they most likely were meant to be.

A word one slip away is put in its place: letters swapped, one left out, one too many, or another
one. Of several the likeliest: by the slip, and by how many passages have it. Names, codes, numbers
and words that people use although these documents do not stay as they are.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowledge.search.postings import READ
from knowledge.search.scope import Scope
from knowledge.search.sql import array_literal, rows

# Words of letters alone that stand by themselves: no part of an address, a path, a name in code.
WORD = re.compile(r"(?<![\w./\\@#$`:'\u2019-])[^\W\d_]+(?![\w/\\@#$`]|[.:'\u2019-]\w)")
# Has a capital though no sentence begins with it.
NAME = re.compile(r"(?<=[\w,;] )[^\W\d_]+")
# A word of three letters is one slip away from too many others.
SHORTEST = 4
# More words than this part unknown: the question is in another language. Two words tell nothing.
MOST_UNKNOWN, FEW_WORDS = 0.5, 2
ENGLISH = "english"  # as a text search configuration
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщъыьэюяё")
# What a slip is worth beside the logarithm of the passages: people swap letters and leave one out
# more often than they hit another one, and seldom miss the first.
SWAPPED, LEFT_OUT, DOUBLED, TOO_MANY, ANOTHER, FIRST = 2.0, 2.0, 2.0, 1.0, 0.0, -3.0
# Lexemes of the 20,000 commonest words of ten languages, as a Bloom filter with so many hashes:
# 1 in 1,000 others is taken for one of them. `assistant/lab/common_words.py` wrote it.
COMMON = Path(__file__).with_name("common_words.npy")
HASHES = 5
# How often the collections have a word, as each configuration stems it; a stop word stems to none.
COUNTS = """
SELECT word, bool_or(cardinality(lexemes) = 0), array_agg(config || ' ' || lexeme),
    coalesce(max((
        SELECT count(*) FROM (
            SELECT FROM knowledge_posting AS posting
            WHERE posting.collection = ANY(%(collections)s::int[]) AND posting.term = lexeme
            LIMIT %(read)s::int
        ) AS capped
    )), 0)
FROM unnest(%(words)s::text[]) AS word, unnest(%(configs)s::text[]) AS config,
    LATERAL (SELECT tsvector_to_array(to_tsvector(config::regconfig, word))) AS stemmed (lexemes),
    LATERAL (SELECT coalesce(lexemes[1], '')) AS head (lexeme)
GROUP BY word
"""
# Which of the words stand, as they are or in a longer one, where their lexemes were found.
STANDING = """
SELECT word FROM unnest(%(words)s::text[], %(terms)s::text[]) AS meant (word, term)
WHERE EXISTS (
    SELECT FROM (
        SELECT chunk_id FROM knowledge_posting
        WHERE collection = ANY(%(collections)s::int[]) AND knowledge_posting.term = meant.term
        LIMIT %(read)s::int
    ) AS posting
        JOIN knowledge_chunk AS chunk ON chunk.id = posting.chunk_id
        JOIN knowledge_section AS section ON section.id = chunk.section_id
        JOIN knowledge_document AS document ON document.id = chunk.document_id
    WHERE strpos(
        lower(concat_ws(' ', chunk.text, section.path, document.title, document.crumbs)), word
    ) > 0
)
"""


class KnownWord(NamedTuple):
    """What the collections know of a word."""

    word: str
    is_stop_word: bool  # in one of their languages
    lexemes: list[str]  # each behind its configuration
    passages: int  # that have it, at most READ


def corrections(text: str, scope: Scope) -> dict[str, str]:
    """Return the words of a question that no passage has, each with what it should be.

    Nothing where most words are unknown: the question is in another language than the documents.
    """
    text_words = list(dict.fromkeys(word.casefold() for word in WORD.findall(text)))
    if not text_words or not scope.configs:
        return {}
    known = {each.word: each for each in look_up(text_words, scope)}
    unknown = [each for each in text_words if is_unknown(known[each])]
    if len(text_words) > FEW_WORDS and len(unknown) > MOST_UNKNOWN * len(text_words):
        return {}
    shouted = {word.casefold() for word in WORD.findall(text) if word.isupper()}
    names = {word.casefold() for word in NAME.findall(text) if word[0].isupper()}
    slips = {
        word: with_its_initial(word, slips_of(word)) if word in names else slips_of(word)
        for word in unknown
        if len(word) >= SHORTEST and word not in shouted and not is_common(known[word])
    }
    if not slips:
        return {}
    others = {other for found in slips.values() for other in found}
    meant = {each.word: each for each in look_up(others, scope)}
    chosen = {word: likeliest(found, meant) for word, found in slips.items()}
    standing = look_for([meant[other] for other in chosen.values() if other], scope)
    return {word: other for word, other in chosen.items() if other in standing}


def strange_words(text: str, scope: Scope) -> list[str]:
    """Return the words of an English text that are neither common nor in any passage.

    Capitals are left out: they are names. Of 600 support requests of Bitext's sample that are
    marked as misspelt (CDLA-Sharing-1.0) 446 have one, of 600 that are not 66, most of which are
    words the collection at hand had no use for ("newsletter").
    """
    asked = [word for word in dict.fromkeys(WORD.findall(text)) if word.islower()]
    known = look_up(asked, replace(scope, configs=sorted({*scope.configs, ENGLISH})))
    return [each.word for each in known if is_unknown(each) and not is_common(each)]


def corrected(text: str, replacements: Mapping[str, str]) -> str:
    """Return the text with the words replaced."""
    return WORD.sub(lambda match: replacements.get(match[0].casefold(), match[0]), text)


def look_up(asked: Iterable[str], scope: Scope) -> list[KnownWord]:
    """Return what the collections in scope know of the words."""
    values = {
        "words": sorted(asked),
        "configs": scope.configs,
        "collections": array_literal(scope.collections),
        "read": READ,
    }
    return [KnownWord(*row) for row in rows(COUNTS, values)]


def look_for(words: Sequence[KnownWord], scope: Scope) -> set[str]:
    """Return those of the words that a passage has, and not only another one of the same stem.

    "Mangled" is one slip from "dangled", and "rootless" from "rootness": of documents that speak of
    dangling images and of root, nobody means these.
    """
    if not words:
        return set()
    pairs = [(each.word, lexeme.partition(" ")[2]) for each in words for lexeme in each.lexemes]
    values = {
        "words": [word for word, _ in pairs],
        "terms": [term for _, term in pairs],
        "collections": array_literal(scope.collections),
        "read": READ,
    }
    return {word for (word,) in rows(STANDING, values)}


def is_unknown(word: KnownWord) -> bool:
    """Tell whether no passage has the word although it is one that could be searched for."""
    return not word.is_stop_word and not word.passages


def likeliest(slips: Mapping[str, float], meant: Mapping[str, KnownWord]) -> str:
    """Return the likeliest of the words at hand; empty where it is none that is searched for."""
    found = [(meant[word], worth) for word, worth in slips.items() if word in meant]
    scores = {
        each.word: worth + log(READ if each.is_stop_word else each.passages)
        for each, worth in found
        if each.is_stop_word or (each.passages and is_common(each) | (each.passages > 1))
    }
    if not scores:
        return ""
    best = max(scores, key=lambda word: scores[word])
    return "" if meant[best].is_stop_word or len(best) < SHORTEST else best


def slips_of(word: str) -> dict[str, float]:
    """Return the words one slip away from the typed one, and what each slip is worth."""
    letters = {*word}.union(*(each for each in ALPHABETS if not {*each}.isdisjoint(word)))
    found: dict[str, float] = {}

    def add(other: str, worth: float, place: int) -> None:
        value = worth + (FIRST if place == 0 else 0)
        found[other] = max(value, found.get(other, value))

    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        for letter in letters:
            doubles = letter in {before[-1:], after[:1]}
            add(before + letter + after, DOUBLED if doubles else LEFT_OUT, place)
            if after:
                add(before + letter + after[1:], ANOTHER, place)
        if after:
            add(before + after[1:], DOUBLED if before[-1:] == after[0] else TOO_MANY, place)
        if len(after) > 1:
            add(before + after[1] + after[0] + after[2:], SWAPPED, place)
    found.pop(word, None)
    return found


def with_its_initial(word: str, slips: Mapping[str, float]) -> dict[str, float]:
    """Return the slips that leave the first letter, which nobody misses in a name."""
    return {other: worth for other, worth in slips.items() if other[:1] == word[0]}


def is_common(word: KnownWord) -> bool:
    """Tell whether people use the word, whatever the documents do."""
    return any(is_in_use(lexeme) for lexeme in word.lexemes)


def is_in_use(lexeme: str) -> bool:
    """Tell whether a lexeme, "english comply", is of one of the commonest words."""
    bits = common_words()
    return bool(bits[hashes(lexeme, len(bits))].all())


@cache
def common_words() -> NDArray[np.bool_]:
    """Return the bits of the Bloom filter."""
    return np.unpackbits(np.load(COMMON)).astype(bool)


def hashes(word: str, size: int) -> list[int]:
    """Return the places of a lexeme in a filter of so many bits."""
    digest = blake2b(word.encode(), digest_size=4 * HASHES).digest()
    return [int.from_bytes(digest[at : at + 4]) % size for at in range(0, len(digest), 4)]
