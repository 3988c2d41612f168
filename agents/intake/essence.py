"""Essence: makes the message a question that stands alone, in the conversation's context."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import MemoryUpdates, OpenQuestion, Reason, Remark, SmallTalk, Wordings
from agents.contract import View, Writes, llm_agent
from agents.ending.small_talk import kind_of
from agents.intake import wishes
from agents.intake.followups import (
    Read,
    Reading,
    best_wording,
    completed_question,
    is_vague,
    question_before,
)
from agents.intake.lang import likelihood
from agents.intake.route_likelihood import picked
from agents.llm.history import day, history_blocks, stamp
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.schema import NonEmpty, at_most
from agents.names import Role
from agents.words import ENGLISH, LANGUAGE_NAMES, base_language, terms
from knowledge.embedding import similarities
from knowledge.errors import EmbeddingUnavailable
from knowledge.language import SURE
from knowledge.search import search
from knowledge.sentences import split_message
from prompts.prompt import Block, Prompt

PROMPT = Prompt(
    "essence",
    "summary",
    "facts",
    "history",
    "open_clarification",
    "current_time",
    "original",
    "message",
)
# Remarks of the history that a message may go on from.
RELATED = 4
# A question that compares or collects needs more passages than one that asks for a single fact.
MORE = 4
# A longer sentence may ask for more than one thing; characters.
LONGEST_PLAIN = 200
MOST_NOTES, LONGEST_NOTE = 8, 80
MOST_FACTS = 3
LONGEST_TOPIC = 120
# A question has this cosine with the message, or with something that was said before it
# (all-MiniLM-L6-v2). Of 163 questions of conversations that people made stand alone (MT-RAG, cloud)
# all have .34 and more; .94 of the questions of other conversations have less.
AKIN = 0.3
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,4})?\Z")
# What a model writes for the language of whatever message it is.
ANY_LANGUAGE = "same"
ASKS = ("?", "\uff1f")


class Message(View):
    """What essence reads: the message, what was said and is known before it, what it may search."""

    text: str = ""
    text_eng: str = ""
    history: list[Remark] = []
    summary: str = ""
    facts: list[str] = []
    topic: str = ""
    current_time: str = ""
    open_clarification: OpenQuestion | None = None
    collections: list[str] = []
    languages: list[str] = []
    audience: str = ""
    owner: str | None = None
    user_id: str | None = None


class Essentials(BaseModel):
    """The message as the model understands it; what decides stands before what follows from it."""

    context_type: Literal["new_topic", "follow_up", "clarification", "exit"]
    canonical_question: NonEmpty
    topic: str
    response_notes: list[str]
    facts: list[str]
    outdated: list[int]
    language_preference: str
    unclear: Literal[
        "none", "ambiguous_query", "missing_context", "multiple_topics", "vague_request"
    ]


@llm_agent(
    Role.ESSENCE,
    reads=Message,
    writes=(
        "canonical_question",
        "context_type",
        "related_history",
        "response_notes",
        "retrieval_k",
        "clarification_result",
        "memory_updates",
        "wordings",
        "small_talk",
    ),
)
def distil(view: Message, llm: Model) -> Writes:
    """Let the model make the message a question that stands alone.

    Small talk needs no model to be understood, nor does a first message that is one plain question.
    Raises ModelFailure when what came back is another question.
    """
    text, question = _texts(view)
    if talk := _small_talk(view):
        return talk
    if not question or _stands_alone(view, _reader(view)):
        return resolve(view)
    time = view.current_time
    essentials = llm.ask(
        PROMPT,
        Essentials,
        cached_as={"current_time": day(time)},
        summary=view.summary,
        facts=fact_blocks(view.facts),
        history=history_blocks(view.history),
        open_clarification=open_question_blocks(view.open_clarification),
        current_time=stamp(time),
        original="" if text == question else text,
        message=question,
    )
    if _is_another(essentials.canonical_question, view):
        raise ModelFailure(Outcome.MALFORMED, "the model wrote another question than was asked")
    return _by_model(view, essentials)


def _is_another(canonical: str, view: Message) -> bool:
    """Whether a question shares nothing with the message and with what was said before it.

    What could not be translated is compared with nothing.
    """
    _, message = _texts(view)
    if likelihood(message).get(ENGLISH, 0) < SURE:
        return False
    said = [message, view.topic, view.summary, *view.facts, *(each.text for each in view.history)]
    if view.open_clarification:
        said += [view.open_clarification.question, *view.open_clarification.options]
    try:
        cosines = similarities(canonical, [each for each in said if each], is_foreign=False)
    except EmbeddingUnavailable:
        return False
    return bool((cosines < AKIN).all())


@distil.without_model
def resolve(view: Message) -> Writes:
    """Recognise a follow-up, a reply to a clarification, a wish and a leave-taking.

    A question that stays open is written as it is, so that search can find what to offer.
    """
    text, question = _texts(view)
    if talk := _standing_wish(view) or _small_talk(view):
        return talk
    read = _reader(view)
    writes = _by_rules(view, wishes.without_standing_wishes(question), read)
    canonical = writes["canonical_question"]
    remarks = [] if writes["context_type"] == "new_topic" else view.history[-RELATED:]
    writes |= {
        "related_history": remarks,
        "response_notes": wishes.in_force(wishes.notes(text), view.facts),
        "retrieval_k": settings.SEARCH_RESULTS_LIMIT,
    }
    if is_vague(canonical, read):
        reason = Reason.MISSING_CONTEXT if terms(canonical) else Reason.VAGUE_REQUEST
        writes |= {"needs_clarification": True, "clarification_reason": reason}
    return writes


def _texts(view: Message) -> tuple[str, str]:
    """What the user wrote, and the same in English."""
    text = view.text.strip()
    return text, (view.text_eng or text).strip()


def _stands_alone(view: Message, read: Read) -> bool:
    """Whether rules read all there is in a message: one plain question, and nothing before it.

    It names something that documents speak of. A wish that can be read only in one of two languages
    is left to the model, and so is what compares or collects. A search in other words would ask a
    model to find out.
    """
    text, question = _texts(view)
    known = (view.history, view.summary, view.facts, view.topic, view.open_clarification)
    readings = [
        (wishes.notes(each), bool(wishes.lasting(each)), wishes.answer_language(each))
        for each in (text, question)
    ]
    return (
        not any(known)
        and settings.SEARCH_EXPANSION == "off"
        and len(question) <= LONGEST_PLAIN
        and len(split_message(question)) == 1
        and readings[0] == readings[1]
        and len(terms(question)) > 1
        and not wishes.asks_several(question)
        and not is_vague(question, read)
        and not read(question).results.no_context
    )


def _small_talk(view: Message) -> Writes | None:
    """What is written for a message that is surely no question; None for any other.

    Who says goodbye leaves; so does who is asked something and thanks for it, or gives it up. What
    a button of a route says is none, whatever its letters look like.
    """
    if picked(view.text):
        return None
    waiting = view.open_clarification is not None
    kind = kind_of(tuple(dict.fromkeys(_texts(view))))
    if kind is None or (kind == "giving_up" and not waiting):
        return None
    leaves = kind == "goodbye" or (waiting and kind in {"thanks", "giving_up"})
    return _beside_questions(view, kind, leaves=leaves)


def _standing_wish(view: Message) -> Writes | None:
    """What is written for a message that only says how to answer from now on."""
    _, question = _texts(view)
    if wishes.without_standing_wishes(question) or not question:
        return None
    if view.history and not wishes.lasting(view.text):
        return None  # the last answer once more, in another language
    updates = _memory_by_rules(view, view.topic)
    return _beside_questions(view, "wish") | {"memory_updates": updates}


def _beside_questions(view: Message, kind: SmallTalk, *, leaves: bool = False) -> Writes:
    waiting = view.open_clarification is not None
    writes: Writes = {
        "canonical_question": _texts(view)[1],
        "context_type": "clarification" if waiting and leaves else "follow_up",
        "small_talk": kind,
    }
    return writes | ({"clarification_result": "exit"} if leaves else {})


def fact_blocks(facts: Sequence[str]) -> list[Block]:
    """Return the known facts as data, numbered from 1."""
    return [
        Block("fact", fact, {"number": str(number)}) for number, fact in enumerate(facts, start=1)
    ]


def open_question_blocks(open_question: OpenQuestion | None) -> list[Block]:
    """Return the open question and its options as data; empty when none is open."""
    if open_question is None:
        return []
    options = (
        Block("option", option, {"number": str(number)})
        for number, option in enumerate(open_question.options, start=1)
    )
    reason = {"reason": open_question.reason.value}
    return [Block("open_question", open_question.question, reason), *options]


def _by_model(view: Message, essentials: Essentials) -> Writes:
    """What follows from the model's words, and from what is known better than by it."""
    question, open_question = view.text_eng or view.text, view.open_clarification
    waiting, said = open_question is not None, essentials.context_type
    if said == "exit" and (waiting or not question.rstrip().endswith(ASKS)):
        kind: SmallTalk = "giving_up" if waiting else "goodbye"
        return _beside_questions(view, kind, leaves=True)
    completes = waiting and said == "clarification"
    follows = bool(view.history) and said in {"follow_up", "clarification"}
    canonical = essentials.canonical_question
    collects = wishes.asks_several(canonical)
    writes: Writes = {
        "canonical_question": canonical,
        "context_type": said if completes else "follow_up" if follows else "new_topic",
        "related_history": view.history[-RELATED:] if completes or follows else [],
        "response_notes": _notes(essentials, view.facts),
        "retrieval_k": settings.SEARCH_RESULTS_LIMIT + MORE * collects,
        "memory_updates": _memory_by_model(essentials, view.facts, view.text, question),
    }
    if completes:
        writes["clarification_result"] = "search_again"
    # A reply that completes the question settles it; "none of these" leaves it as it was.
    settled = completes and open_question and canonical != open_question.question
    if essentials.unclear != "none" and not settled:
        writes |= {
            "needs_clarification": True,
            "clarification_reason": Reason(essentials.unclear),
            "clarification_message": "",
        }
    return writes


def _memory_by_model(
    essentials: Essentials, known_facts: Sequence[str], text: str, english: str
) -> MemoryUpdates:
    """What is to be remembered; of two wishes about the same matter the newer one."""
    facts = at_most(essentials.facts, MOST_FACTS, wishes.LONGEST_FACT) or wishes.lasting(text)
    withdrawn = _facts_at(known_facts, essentials.outdated)
    for message in (*facts, text, english):
        withdrawn += wishes.outdated(message, known_facts)
    return MemoryUpdates(
        facts=facts,
        withdrawn=list(dict.fromkeys(withdrawn)),
        topic=" ".join(essentials.topic.split())[:LONGEST_TOPIC],
        language_preference=_language(essentials.language_preference, text, english),
    )


def _facts_at(facts: Sequence[str], numbers: Sequence[int]) -> list[str]:
    return [facts[number - 1] for number in numbers if 0 < number <= len(facts)]


def _notes(essentials: Essentials, facts: Sequence[str]) -> list[str]:
    """The wishes for this answer, and those from before that it does not take back."""
    notes = at_most(essentials.response_notes, MOST_NOTES, LONGEST_NOTE)
    valid_facts = [
        fact for number, fact in enumerate(facts, start=1) if number not in essentials.outdated
    ]
    return wishes.in_force(wishes.in_known_words(notes), valid_facts)


def _language(code: str, text: str, english: str) -> str | None:
    """The language to answer in from now on, if the message names it: models like to guess one.

    Empty for the language of each message, None for as before.
    """
    code, message = code.strip().casefold(), f"{text} {english}".casefold()
    requested = wishes.answer_language(text)
    if code == ANY_LANGUAGE and requested is None and "language" in message:
        return ""
    if not LANGUAGE.match(code):
        return requested
    names = LANGUAGE_NAMES.get(base_language(code), ())
    named = not names or any(name in message for name in names)
    return code if named else requested


def _by_rules(view: Message, question: str, read: Read) -> Writes:
    """The canonical question, which is the topic from here on, and its context."""
    before = question_before(view.topic, view.history)
    wordings = None
    if view.open_clarification:
        canonical, wordings = completed_question(question, view.open_clarification, read)
        if canonical:
            return {
                "canonical_question": canonical,
                "context_type": "clarification",
                "clarification_result": "search_again",
                "memory_updates": _memory_by_rules(view, canonical),
            } | _trace_of(wordings)
    if view.history and _reformats(question, before, read):
        return {
            "canonical_question": before,
            "context_type": "follow_up",
            "memory_updates": _memory_by_rules(view, before),
        }
    canonical = question
    if view.history and wordings is None:
        canonical, wordings = best_wording(question, before, read)
    return {
        "canonical_question": canonical,
        "context_type": "new_topic" if canonical == question else "follow_up",
        "memory_updates": _memory_by_rules(view, canonical),
    } | _trace_of(wordings)


def _memory_by_rules(view: Message, topic: str) -> MemoryUpdates:
    text = view.text
    return MemoryUpdates(
        facts=wishes.lasting(text),
        withdrawn=wishes.outdated(text, view.facts),
        topic=topic,
        language_preference=wishes.answer_language(text),
    )


def _reformats(text: str, before: str, read: Read) -> bool:
    """Whether the message only asks for the last answer in another form.

    It says how it wants to be answered, and nothing else that the documents speak of.
    """
    rest = wishes.without_wishes(text)
    if rest == text:
        return False
    return not terms(rest) or not read(f"{before} {rest}").mentions(rest)


def _reader(view: Message) -> Read:
    """Search as the search role will: it finds again what was found here."""

    @cache
    def read(question: str) -> Reading:
        results = search(
            question,
            collections=view.collections,
            languages=view.languages,
            audience=view.audience,
            limit=settings.SEARCH_RESULTS_LIMIT,
            reuse=f"{view.owner}/{view.user_id}",
        )
        return Reading(question, results)

    return read


def _trace_of(wordings: Wordings | None) -> Writes:
    return {"wordings": wordings} if wordings else {}
