"""API for chat clients: ask, and what becomes of a turn."""

import re
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from pydantic import BaseModel, ConfigDict
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents import envelopes
from agents.attributes import (
    Citation,
    ClarificationType,
    ClarifyingQuestion,
    Reason,
    Source,
)
from agents.models import Envelope
from agents.names import Route, Status
from agents.trace import correlation
from agents.trace.trace import trace
from conversations.answers import reply
from conversations.authentication import demand_usable, key_id
from conversations.models import Conversation
from conversations.reach import bound_to, foreign_turns
from conversations.services import LONGEST_AUDIENCE, Asker, Filters, ask, wait
from knowledge.api.access import may
from knowledge.api.sent import LanguageTag, Question, Sent
from knowledge.identifiers import Scope

SESSION = re.compile(r"^[\w.:-]{1,64}\Z")
# In a list of a body: collections, languages.
MOST_NAMES = 50
IDEMPOTENCY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="1 to 200 printable ASCII characters. Sent again with the same key, a request "
    "changes nothing and gets the first answer.",
)


class ConversationForm(Sent):
    """With whom, from what and for whom a conversation is."""

    session_id = serializers.RegexField(
        SESSION,
        required=False,
        help_text="Your own name for the conversation: continues it, or begins it.",
        error_messages={"invalid": "Use 1 to 64 letters, digits, '.', ':', '_' or '-'."},
    )
    user_id = serializers.CharField(
        required=False,
        max_length=128,
        allow_blank=True,
        help_text="For whom you ask, as you know them. A conversation stays with the one it began "
        "for.",
    )
    collections = serializers.ListField(
        child=serializers.CharField(max_length=63),
        required=False,
        max_length=MOST_NAMES,
        help_text="Names of the collections to answer from; left out: all that your key reaches.",
    )
    assistant = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=63,
        help_text="Name of the assistant to ask, if there are several. A conversation stays with "
        "the one it began with, and a key that is bound to one reaches only that.",
    )


class MessageForm(Sent):
    """From which documents one message is answered."""

    languages = serializers.ListField(
        child=LanguageTag(),
        required=False,
        max_length=MOST_NAMES,
        help_text="Answer this message from documents in these languages only: tags such as en.",
    )
    audience = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST_AUDIENCE,
        help_text="Answer it from documents for this audience, and those for everybody, only.",
    )

    @staticmethod
    def filters(values: dict[str, Any]) -> Filters:
        """Return what the documents must meet. Raises UnusableFilter."""
        return Filters(values.get("languages", ()), values.get("audience", ""))


class ChatRequest(MessageForm, ConversationForm):
    """The body of `POST /api/chat/`."""

    message = Question(help_text="What the user says.")
    wait = serializers.BooleanField(
        default=True, help_text="False: answer at once with the turn's id."
    )


ASKED = OpenApiExample(
    "A question",
    value={"message": "How do I book a trip?", "session_id": "visitor-17"},
    request_only=True,
)
ASKED_OF_ONE = OpenApiExample(
    "A question to one of several assistants",
    value={"message": "What does roaming cost in zone 2?", "assistant": "telecom"},
    request_only=True,
)


class Usage(BaseModel):
    """What a turn took; `cost` in US dollars, null when it is not known."""

    steps: int
    seconds: float
    model_calls: int
    cached_calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    cost_known: bool


class Clarification(BaseModel):
    """What the user is asked, or why the question was declined; then `questions` is empty."""

    type: ClarificationType
    reason: Reason
    questions: list[ClarifyingQuestion]


class Reply(BaseModel):
    """A turn as `POST /api/chat/` shows it."""

    model_config = ConfigDict(extra="forbid")

    session_id: str
    turn_id: uuid.UUID
    status: Status
    reply: str
    route: Route | None
    last_agent: str
    language: str | None
    sources: list[Source]
    citations: list[Citation]
    clarification: Clarification | None
    suggested_actions: list[str]
    used_tools: list[str]
    confidence: float | None
    mode: Literal["model", "extractive", "mixed"]
    error_id: str | None
    usage: Usage
    state_excerpt: dict[str, Any]
    events_url: str = ""  # of a turn that is not waited for


class ChatView(APIView):
    """One turn: asks, and unless told not to waits for the answer."""

    scope = Scope.CHAT

    @extend_schema(
        operation_id="ask",
        request=ChatRequest,
        responses={200: Reply, 202: Reply},
        parameters=[IDEMPOTENCY],
        examples=[ASKED, ASKED_OF_ONE],
    )
    def post(self, request: Request) -> Response:
        """Answer a message from the documents."""
        values = ChatRequest.read(request.data)
        envelope = ask(
            values["message"],
            asker(request, values.get("user_id", "")),
            session=values.get("session_id", ""),
            assistant=values.get("assistant", ""),
            collections=values.get("collections", ()),
            filters=MessageForm.filters(values),
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )
        if not values["wait"]:
            events = reverse("turn-events", args=[envelope.pk])
            return Response(reply(envelope) | {"events_url": events}, status=202)
        return Response(reply(waited(request, envelope)))


class TurnView(APIView):
    """A turn as it stands."""

    scope = Scope.CHAT

    @extend_schema(responses=Reply)
    def get(self, request: Request, turn_id: uuid.UUID) -> Response:
        """Return the turn in the shape of `POST /api/chat/`."""
        return Response(reply(owned_turn(request, turn_id)))


class TraceView(APIView):
    """Everything that happened in a turn."""

    scope = Scope.CHAT

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, turn_id: uuid.UUID) -> Response:
        """Return every step with what it read and wrote, its waiting and its working time."""
        return Response(trace(owned_turn(request, turn_id), staff=may(request, Scope.ADMIN)))


class CancelView(APIView):
    """The end of a turn its user no longer waits for."""

    scope = Scope.CHAT

    @extend_schema(request=None, responses=Reply)
    def post(self, request: Request, turn_id: uuid.UUID) -> Response:
        """Cancel the turn; one that has ended stays as it is."""
        envelope = owned_turn(request, turn_id)
        envelopes.cancel(envelope.pk)
        envelope.refresh_from_db()
        return Response(reply(envelope))


def waited(request: Request, envelope: Envelope) -> Envelope:
    """Return a turn once it has ended. Raises AuthenticationFailed if the key ended before it."""
    ended = wait(envelope)
    demand_usable(request)
    return ended


def owner(request: Request) -> User:
    """Return the authenticated user, who owns what is asked here."""
    user = request.user
    if isinstance(user, AnonymousUser):
        raise PermissionError("a view without authentication asked for an owner")
    return user


def asker(request: Request, user_id: str = "") -> Asker:
    """Return who asks: the owner of the key or login, with what the key is bound to."""
    return Asker(owner(request), user_id, key_id(request), bound_to(request.auth))


def owned_conversation(request: Request, name: str) -> Conversation:
    """Return the requester's conversation of this session or id; everyone else gets 404.

    With the scope admin any, by its id; with a key that is bound, only what it reaches.
    """
    reached = reached_conversations(request)
    session = name if SESSION.match(name) else ""
    conversation = reached.filter(owner=owner(request), session=session).first()
    if conversation is None:
        try:
            conversation = get_object_or_404(reached, pk=uuid.UUID(name))
        except ValueError as error:
            raise Http404 from error
    return conversation


def reached_conversations(request: Request) -> QuerySet[Conversation]:
    """Return those seen in which no document was told of that the key does not reach."""
    foreign = foreign_turns(OuterRef("pk"), bound_to(request.auth))
    return seen_conversations(request).exclude(Exists(foreign))


def seen_conversations(
    request: Request, rights: Mapping[str, str] | None = None
) -> QuerySet[Conversation]:
    """Return the requester's conversations (all with the scope admin) that its key may see.

    A key that is bound to an assistant sees what was said to that one alone. `rights` are as those
    of a view, see `knowledge.api.access`.
    """
    conversations = Conversation.objects.all()
    if bound := bound_to(request.auth).assistant:
        conversations = conversations.filter(assistant=bound)
    sees_all = may(request, Scope.ADMIN, rights)
    return conversations if sees_all else conversations.filter(owner=owner(request))


def owned_turn(request: Request, turn_id: uuid.UUID) -> Envelope:
    """Return a turn of a conversation that the requester sees; everyone else gets 404.

    With a key that is bound to collections only one that looked into no others.
    """
    envelope = get_object_or_404(Envelope, pk=turn_id)
    identity = envelope.conversation_id
    get_object_or_404(seen_conversations(request), pk=identity)
    if foreign_turns(identity, bound_to(request.auth)).filter(pk=envelope.pk).exists():
        raise Http404
    correlation.note(turn=turn_id, conversation=identity)
    return envelope
