"""References: what a conversation is about, and questions that lean on it."""

import re
from collections.abc import Sequence

from agents.attributes import Remark
from agents.intake.vagueness import telling
from agents.intake.wishes import FORMING
from agents.intake.wording import (
    CONTINUING,
    EXPLETIVE,
    LEAD_IN,
    PREPOSITION,
    QUESTION,
    REFERENCE,
)
from agents.terms import APOSTROPHE, SENTENCE_ENDS, WORD, terms

TOPIC_WORDS = 8
# A pronoun refers to something within its own message when this many telling words precede it.
NAMED_BEFORE = 2
SPLIT_VERB = re.compile(
    r"\b(set|turn|switch|take|put|pick|back|start|shut|bring|fill|clean|roll|look|log|sign|clear|open|close|lock)"
    r"\s+(?:it|this|that|them|these|those)\s+(up|on|off|out|down|in|back|over|away)\b",
    re.IGNORECASE,
)
ENGLISH_REFERENCE = re.compile(
    r"(?<!\bdo )(?<!doing )\b(?:it|this|that|them|these|those|they)\b(?!\s+\w+ing\b)",
    re.IGNORECASE,
)
NOUN_PHRASE_WORDS = 6
SHORT_NOUN_WORDS = 3
PARTICLE = re.compile(r"(?:up|on|off|out|down|in|back|over|away|from|to|for|with|by|at)\b")
MOST_CHARACTERS = 60
MOST_ASKED = 3
# Beginnings of questions about something already spoken of, other than "what is", "how do I".
ASKING_DETAIL = re.compile(
    r"(?:why|how (?:many|much|long|often|big|far)|which|when|where|who|is|are|was|were|does|did)\b"
    r"(?! there\b)",
    re.IGNORECASE,
)
DETERMINER = re.compile(
    r"(?:the|an?|my|our|your|this|that|these|those|all|any|some|\w+s$)\b", re.IGNORECASE
)


def topic_of(question: str) -> str:
    """What a question is about, in its own words: from its first telling word to its last."""
    known = set(telling(question))
    found = WORD.findall(question.replace(APOSTROPHE, "'"))
    places = [place for place, word in enumerate(found) if word.casefold() in known]
    if not places:
        # Chinese words are not told apart: the question itself is short enough.
        return question.strip(f" {SENTENCE_ENDS}")[:MOST_CHARACTERS] if known else ""
    span = found[places[0] : places[-1] + 1]
    if len(span) > TOPIC_WORDS:
        span = [word for word in span if word.casefold() in known][:TOPIC_WORDS]
    return " ".join(span)


def refers_back(question: str) -> bool:
    """Whether the message has a pronoun for something it does not name itself."""
    plain = EXPLETIVE.sub(" ", question)
    match = REFERENCE.search(plain)
    return match is not None and len(telling(plain[: match.start()])) < NAMED_BEFORE


def leans_on(question: str, history: Sequence[Remark]) -> bool:
    """Whether the message can only be understood from what was said before it."""
    if not history:
        return False
    asked = terms(" ".join(telling(question)))
    if refers_back(question) or (CONTINUING.match(question.strip()) and len(asked) <= MOST_ASKED):
        return True
    # A short question after a detail that takes up a word of the last answer goes on about it.
    if not ASKING_DETAIL.match(question.strip()):
        return False
    answered = terms(_last(history, "assistant"))
    return 0 < len(asked) <= MOST_ASKED and not set(asked).isdisjoint(answered)


def _last(history: Sequence[Remark], role: str) -> str:
    return next((remark.text for remark in reversed(history) if remark.role == role), "")


def last_question(history: Sequence[Remark]) -> str:
    """What the user last asked: no wish for another form, and a reply with what it replied to."""
    said = [remark.text for remark in history if remark.role == "user"]
    for place in reversed(range(len(said))):
        text, before = said[place], said[place - 1] if place else ""
        asked = [word for word in telling(text) if word not in FORMING and not word.isdigit()]
        if not asked or refers_back(text):
            continue
        replied = before and refers_back(before) and not QUESTION.match(text)
        return completed(before, LEAD_IN.sub("", text, count=1)) if replied else text
    return ""


def completed(question: str, detail: str, *, noun: bool = True) -> str:
    """`question` with `detail` in the place of what it left open.

    "How do I set it up?" and "the WordPress plugin" become "How do I set up the WordPress
    plugin?". Where there is no such place, or `detail` is no noun, it follows in brackets.
    """
    detail = detail.strip(f" {SENTENCE_ENDS}")
    body = question.rstrip(" ?\uff1f")
    end = "?" if question.rstrip() != body else ""
    if not detail or detail.casefold() in question.casefold():
        return question
    if PREPOSITION.match(detail):
        return f"{body} {detail}{end}"
    if noun and _fits_a_pronoun(detail):
        if SPLIT_VERB.search(body):
            return SPLIT_VERB.sub(lambda verb: f"{verb[1]} {verb[2]} {detail}", body, count=1) + end
        if place := _pronoun(body):
            return body[: place.start()] + detail + body[place.end() :] + end
    return f"{body} ({detail}){end}"


def _pronoun(question: str) -> re.Match[str] | None:
    """The first English pronoun that stands for something."""
    idle = [match.span() for match in EXPLETIVE.finditer(question)]
    for match in ENGLISH_REFERENCE.finditer(question):
        if not any(begin <= match.start() < end for begin, end in idle):
            return match
    return None


def _fits_a_pronoun(detail: str) -> bool:
    """Whether `detail` reads like a noun phrase: short, and not "Adding this to that"."""
    spoken = detail.split()
    return len(spoken) <= NOUN_PHRASE_WORDS and not spoken[0].casefold().endswith("ing")


def with_topic(question: str, topic: str, history: Sequence[Remark]) -> str:
    """The question with the topic it leans on put in, or with the question before it in front."""
    before = last_question(history)
    if CONTINUING.match(question.strip()) and not refers_back(question) and before:
        return f"{before} {question}"
    noun = _noun(topic, before)
    if not noun:
        return completed(question, topic, noun=False)
    article = "" if DETERMINER.match(noun) or noun[0].isupper() else "the "
    whole = completed(question, article + noun)
    # In brackets the topic is a heading, and headings need no article.
    return whole.replace(f"({article}{noun})", f"({topic})")


def _noun(topic: str, before: str) -> str:
    """What can stand where "it" stands: the topic, or what something was done to, if short.

    "create a funnel" was asked as "how do I create a funnel": the funnel is "it".
    """
    verb, _, thing = topic.partition(" ")
    done = topic and re.search(rf"\b(?:I|we|you|to)\s+{re.escape(verb)}\b", before)
    if not done:
        return topic
    thing = re.sub(r"^an?\s+", "", thing)
    short = 0 < len(thing.split()) <= SHORT_NOUN_WORDS
    return thing if short and not PARTICLE.match(thing) else ""
