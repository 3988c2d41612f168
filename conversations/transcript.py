"""Transcript: what the chat page shows of a conversation, message by message."""

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from agents.models import Envelope, Step
from agents.names import Role, Status
from agents.trace.trace import PlanStep, Span, judged_requirements, plan_steps, timeline
from agents.words import ENGLISH, Phrase
from conversations.answers import answer_html, by_marker, mode_sentence, numbers, without_sources
from conversations.feedback import Feedback
from conversations.interface import STATUSES, STEPS, VERDICTS
from conversations.models import Conversation, Message

# Messages that are shown at once; the others are a click away.
MOST_SHOWN = 60
AUTHOR = Message.Author
NOTHING = SafeString()
ITEM = re.compile(r"^- (.*)$", re.MULTILINE)
# What is not sent but written on: it asks for words of the user's own.
OPENINGS = (Phrase.SOMETHING_ELSE, Phrase.ROUTE_DOCUMENTATION)


@dataclass(frozen=True)
class Action:
    """Something to do next: what is sent, and how the button calls it. Empty: the user writes."""

    text: str
    label: str


@dataclass(frozen=True)
class Work:
    """What was done at one time, in words, by one role or several."""

    words: str
    seconds: float
    condition: str = "done"


@dataclass
class Reply:
    """What came of a turn."""

    message: Message
    html: SafeString
    cited: list[dict[str, Any]]
    mode: str = ""
    by_model: bool = False
    # Of an analysis: each requirement with its verdict, in `words`, and the passages `shown`.
    requirements: list[dict[str, Any]] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    feedback: Feedback | None = None


@dataclass
class Entry:
    """A message of the user with what came of it, or one that is neither's."""

    question: Message | None = None
    turn: Envelope | None = None
    reply: Reply | None = None
    # Of staff, or of the assistant beside any turn.
    said: Message | None = None
    html: SafeString = NOTHING
    work: list[Work] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)  # for staff, as is the plan
    plan: list[PlanStep] = field(default_factory=list)
    is_latest: bool = False
    # What was asked here before, and taken back.
    former: list["Entry"] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        """Whether there is more to come."""
        return self.turn is not None and not self.turn.ended

    @property
    def may_be_retaken(self) -> bool:
        """Whether its message can be asked anew, or otherwise."""
        return self.turn is not None and self.turn.ended and self.turn.status != Status.WITH_STAFF


@dataclass(frozen=True)
class Transcript:
    """The latest messages, oldest first; `earlier` is the first of them if there are others.

    After `last` comes what a page that follows the conversation has not drawn.
    """

    entries: list[Entry]
    earlier: uuid.UUID | None = None
    last: uuid.UUID | None = None

    @property
    def title(self) -> str:
        """What was asked first, of what is shown."""
        return next((each.question.text for each in self.entries if each.question), "")

    @property
    def running(self) -> Envelope | None:
        """The turn that is under way."""
        return next((each.turn for each in self.entries if each.is_running), None)


def transcript(
    conversation: Conversation, reader: User | None, *, before: uuid.UUID | None = None
) -> Transcript:
    """Return what `reader` (None: a visitor) is shown of a conversation, up to a message."""
    said = conversation.messages.filter(is_note=False).select_related("by")
    if before and (edge := said.filter(pk=before).first()):
        said = said.filter(created__lt=edge.created)
    latest = list(said.order_by("-created", "-pk")[: MOST_SHOWN + 1])
    messages = latest[:MOST_SHOWN][::-1]
    more = messages[0].pk if len(latest) > MOST_SHOWN else None
    last = messages[-1].pk if messages else None
    return Transcript(_folded(_entries(messages, reader)), more, last)


def _entries(messages: Sequence[Message], reader: User | None) -> list[Entry]:
    turns = Envelope.objects.in_bulk([each.turn_id for each in messages if each.turn_id])
    told = {each.turn_id: each for each in Feedback.objects.filter(turn__in=turns, by=reader)}
    entries: list[Entry] = []
    for message in messages:
        turn = turns.get(message.turn_id) if message.turn_id else None
        if message.role == AUTHOR.USER:
            entries.append(Entry(question=message, turn=turn))
        elif turn and message.role == AUTHOR.ASSISTANT:
            if not entries or entries[-1].turn != turn:
                entries.append(Entry(turn=turn))
            entries[-1].reply = _reply(message, turn, told.get(turn.pk))
        else:
            is_ours = message.role == AUTHOR.ASSISTANT
            html = answer_html(message.text) if is_ours else NOTHING
            entries.append(Entry(said=message, html=html))
    _add_work(entries, for_staff=bool(reader and reader.is_staff))
    if entries:
        entries[-1].is_latest = True
    return entries


def _add_work(entries: Sequence[Entry], *, for_staff: bool) -> None:
    """Say of each turn that has ended what was done; a page that looks again follows the others."""
    ended = {each.turn.pk: each for each in entries if each.turn and each.turn.ended}
    steps: dict[uuid.UUID, list[Step]] = defaultdict(list)
    for step in Step.objects.filter(envelope__in=ended).defer("output").order_by("number"):
        steps[step.envelope_id].append(step)
    for turn_id, entry in ended.items():
        entry.work = _work(steps[turn_id])
        if for_staff and entry.turn:
            entry.spans = timeline(entry.turn, steps[turn_id])
            entry.plan = plan_steps(entry.turn)


def _folded(entries: Iterable[Entry]) -> list[Entry]:
    """Put what was taken back with what was asked instead."""
    shown: list[Entry] = []
    former: list[Entry] = []
    for entry in entries:
        if _is_taken_back(entry):
            former.append(entry)
        else:
            entry.former, former = former, []
            shown.append(entry)
    return shown


def _is_taken_back(entry: Entry) -> bool:
    message = entry.question or entry.said or (entry.reply and entry.reply.message)
    return bool(message and message.taken_back)


def _reply(message: Message, turn: Envelope, feedback: Feedback | None) -> Reply:
    payload = turn.payload
    is_answer = turn.status == Status.COMPLETED
    citations = by_marker(payload.get("citations_used") or ()) if is_answer else []
    actions = payload.get("suggested_actions") or []
    text = without_sources(
        {
            "reply": message.text,
            "sources": payload.get("sources_used", []) if is_answer else [],
            "language": payload.get("language"),
        }
    )
    places = numbers(text, citations)
    for citation in citations:
        citation["number"] = places[citation["marker"]]
        citation["address"] = f"{reverse('cited', args=[turn.pk, citation['marker']])}#place"
        for quote in citation["quotes"]:
            if quote["status"] in STATUSES:
                citation["doubt"] = {**quote, "words": gettext(STATUSES[quote["status"]])}
    addresses = {each["marker"]: (str(each["number"]), each["address"]) for each in citations}
    mode = payload.get("mode", "extractive")
    form = payload.get("answer_form") or ""
    has_mode = turn.status in {Status.COMPLETED, Status.AWAITING_USER}
    sentence = mode_sentence(mode, quotes=bool(citations), form=form)
    return Reply(
        message,
        answer_html(without_items(text, actions), addresses, addresses.__getitem__),
        sorted(citations, key=lambda citation: citation["number"]),
        mode=gettext(sentence) if has_mode else "",
        by_model=mode == "model" or (mode == "mixed" and (form == "written" or not citations)),
        requirements=[
            each | {"words": gettext(VERDICTS[each["verdict"]])}
            for each in judged_requirements(payload)
        ],
        actions=_actions(actions, payload.get("language") or ENGLISH),
        feedback=feedback,
    )


def without_items(text: str, actions: Sequence[str]) -> str:
    """Return a text without the items that stand below it as buttons."""
    return ITEM.sub(lambda item: "" if item[1] in actions else item[0], text).rstrip()


def _actions(suggested: Iterable[str], language: str) -> list[Action]:
    """Return what is suggested as buttons; a command has its name in words."""
    help_words = Phrase.SUGGEST_HELP.in_language(language)
    openings = {phrase.in_language(language) for phrase in OPENINGS}
    return [
        Action("/help", gettext("What can you do?"))
        if text == help_words
        else Action("" if text in openings else text, text.replace(" > ", " \u203a "))
        for text in suggested
    ]


def _work(steps: Iterable[Step]) -> list[Work]:
    """Return what was done, in words; what several did for one purpose is told once."""
    done: dict[str, Work] = {}
    for step in steps:
        if step.role == Role.MANAGER or step.status == Step.Status.CANCELLED:
            continue
        words = gettext(STEPS[step.role])
        before = done.get(words, Work(words, 0.0))
        seconds = before.seconds + (step.run_seconds or 0.0)
        condition = "failed" if step.status == Step.Status.QUARANTINED else before.condition
        done[words] = Work(words, seconds, condition)
    return list(done.values())
