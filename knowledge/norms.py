"""Norms: what a text prescribes, forbids and allows, and what it says that a word means.

By wording alone, as `norms.toml` has it for each language: it tells where to look, and not what the
law is.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from knowledge.sentences import blocks, split_sentences

WORDINGS = Path(__file__).with_suffix(".toml")
Kind = Literal["prohibition", "duty", "permission"]
KINDS: tuple[Kind, ...] = ("prohibition", "duty", "permission")  # the first that holds counts
GAP = r"[^.,;!?\n]{1,80}?"
# "2.1", "(a)", "§ 4" and the like before what a clause says.
NUMBERING = re.compile(
    r"^[\s*_>#-]*(?:§+\s*)?"
    r"(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})(?:\.\d{1,3})*[.)]\s|\d{1,3}(?:\.\d{1,3})+\s)?\s*"
)
SHORTEST, LONGEST = 8, 1200  # characters of what prescribes something, and that are looked at
QUOTED = r"[\"“”„«»\u201a\u2018'\u300c\u300e]"
LONGEST_TERM = 60
# “Term” and, a few words on, how the language says that something is meant.
TERM = rf"{QUOTED}(?P<term>[^\"“”„«»\n]{{2,{LONGEST_TERM}}}?){QUOTED}"
BETWEEN = r"[^.;:\"“”„«»\n]{0,60}?"
BOLD = r"(?:\*\*|__)(?P<bold>[^*_\n]{2,60}?)(?:\*\*|__)"
# (hereinafter the “Term”), in any language: what stands before it is what is meant.
IN_PARENTHESES = re.compile(
    rf"[(\uff08][^()\"“”„«»\uff08\uff09]{{0,50}}{TERM}[^()\"“”„«»\uff08\uff09]{{0,30}}[)\uff09]"
)


@dataclass(frozen=True)
class Norm:
    """A sentence that prescribes, forbids or allows something."""

    kind: Kind
    text: str
    wording: str  # of the sentence, that tells so


@dataclass(frozen=True)
class Definition:
    """A sentence that says what a term means."""

    term: str
    text: str


def languages() -> list[str]:
    """Return the codes of the languages whose wordings are known."""
    return sorted(_wordings())


def norms(text: str, language: str) -> list[Norm]:
    """Return what a Markdown text prescribes, in order; nothing in a language without wordings.

    What stands in a list below such a sentence is meant by it, too.
    """
    patterns = patterns_of(language)
    found: list[Norm] = []
    leads: Norm | None = None
    for sentence in sentences(text) if patterns else ():
        # "The parties undertake:" and then a list, whose items begin with a small letter.
        goes_on = leads is not None and sentence[:1].islower()
        norm = _norm(sentence, patterns) or (leads if goes_on else None)
        if norm:
            found.append(replace(norm, text=sentence))
        if sentence.rstrip().endswith((":", "\uff1a")):
            leads = norm
        elif not goes_on:
            leads = None
    return found


def definitions(text: str, language: str) -> list[Definition]:
    """Return what a Markdown text defines, in order; of a language without wordings little."""
    patterns = patterns_of(language)
    means = patterns["definition"] if patterns else None
    found = (each for sentence in sentences(text) for each in _definitions(sentence, means))
    return [each for each in found if any(map(str.isalpha, each.term))]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a Markdown text without their numbering; code and tables have none."""
    for kind, block in blocks(text):
        if kind in ("prose", "item"):
            for sentence in split_sentences(block):
                yield NUMBERING.sub("", sentence, count=1).strip()


def _norm(sentence: str, patterns: dict[str, re.Pattern[str]]) -> Norm | None:
    plain = patterns["not"].sub(lambda match: " " * len(match[0]), _begun_small(sentence))
    if len(plain) < SHORTEST or sentence.rstrip().endswith(("?", "\uff1f")):
        return None
    for kind in KINDS:
        if match := patterns[kind].search(plain):
            return Norm(kind, sentence, " ".join(match[0].split()))
    return None


def _begun_small(sentence: str) -> str:
    """Return what is looked at of a sentence; a capital at its beginning says nothing."""
    is_capital = sentence[:1].isupper() and not sentence[1:2].isupper()
    return (sentence[:1].lower() if is_capital else sentence[:1]) + sentence[1:LONGEST]


def _definitions(sentence: str, means: re.Pattern[str] | None) -> Iterator[Definition]:
    if means and (match := means.search(sentence[:LONGEST])):
        yield Definition(_plain(match["term"] or match["bold"]), sentence)
    for match in IN_PARENTHESES.finditer(sentence[:LONGEST]):
        yield Definition(_plain(match["term"]), sentence)


def _plain(term: str) -> str:
    return " ".join(term.strip(" ,.;:*_'").split())


def _base(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


@cache
def _wordings() -> dict[str, dict[str, list[str]]]:
    with WORDINGS.open("rb") as file:
        return tomllib.load(file)


def patterns_of(language: str) -> dict[str, re.Pattern[str]]:
    """Return the wordings of a language as patterns, by kind; of one that is not known, none.

    Of a definition, the group `term` or `bold` is what is defined; of a section, the first group
    is its number.
    """
    return _patterns(_base(language))


@cache
def _patterns(language: str) -> dict[str, re.Pattern[str]]:
    known = _wordings().get(language)
    if known is None:
        return {}
    either = {kind: _any(wordings) for kind, wordings in known.items()}
    if "promise" in known:
        either["duty"] += f"|{_promised(known)}"
    both = {
        "begins": f"(?i:{either['begins']})",
        "ends": f"(?i:{either['ends']})",
        "definition": rf"(?:{TERM}|{BOLD}){BETWEEN}(?:{either['definition']})",
        "section": rf"(?:§+|(?i:{either['section']}))\s*(\d{{1,3}}(?:\.\d{{1,3}})*)",
    }
    return {kind: re.compile(pattern) for kind, pattern in (either | both).items()}


def _promised(known: Mapping[str, list[str]]) -> str:
    """Return a pattern for what a party says that it will do, and not for what will happen.

    A plural in parentheses or one word may stand between.
    """
    parties = _any([form for each in known["parties"] for form in (each, each.capitalize())])
    promise, foreseen = _any(known["promise"]), _any(known["foreseen"])
    beside = r"(?:\(s\))?\]?(?:\s\w{3,12})?"
    return rf"(?:{parties}){beside}\s(?:{promise})\s(?!(?:\w+ly\s)?(?:{foreseen}))(?=\w)"


def _any(wordings: list[str]) -> str:
    """Return a pattern for any of the wordings, the longest first; for none, one for nothing."""
    ordered = sorted(wordings, key=len, reverse=True)
    either = [each for wording in ordered for each in dict.fromkeys((wording, wording.upper()))]
    return "|".join(map(_one, either)) if either else r"(?!)"


def _one(wording: str) -> str:
    parts = (r"\s+".join(map(re.escape, part.split())) for part in wording.split("…"))
    pattern = rf"\s{GAP}\s".join(parts) if "…" in wording else next(iter(parts))
    # Where no spaces are written, a word stands anywhere.
    return (
        pattern if not wording.isascii() and wording[0] >= "\u4e00" else rf"(?<!\w){pattern}(?!\w)"
    )
