"""API of conversations: started, listed, read, gone on with and forgotten by who owns them."""

import uuid
from datetime import datetime
from typing import Annotated, Any

from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_view
from pydantic import BaseModel, WithJsonSchema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api import (
    IDEMPOTENCY,
    ConversationForm,
    MessageForm,
    asker,
    owned_conversation,
    owner,
    reached_conversations,
)
from conversations.erasure import forget
from conversations.models import Conversation, Message
from conversations.services import ask, begin, messages_after, with_beginnings
from knowledge.api.lists import ListView
from knowledge.api.sent import PagesQuery, Question, Sent
from knowledge.identifiers import Scope

# Messages that are told at once.
PAGE = 100
IDENTITY = "0f7c2f6e-4f39-4a44-9a50-3a1d9c1c3f10"
TURN = "2d6a1b54-0a53-4c1f-8f5e-7b1f6f0c9a11"
EXAMPLE = {
    "id": IDENTITY,
    "session_id": "visitor-17",
    "user_id": "u123",
    "owner": "shop",
    "assistant": "",
    "collections": ["handbook"],
    "status": "open",
    "language": "en",
    "first_message": "How do I book a trip?",
    "messages": 2,
    "created": "2026-11-23T09:12:00Z",
    "updated": "2026-11-23T09:12:04Z",
}


class ConversationQuery(PagesQuery):
    """What may stand behind `?` where conversations are listed."""

    status = serializers.ChoiceField(
        Conversation.Status.choices, required=False, help_text="Only those with this status."
    )
    assistant = serializers.CharField(
        required=False, max_length=63, help_text="Only those with this assistant."
    )
    session_id = serializers.CharField(
        required=False, max_length=64, help_text="Only the one of this name."
    )
    user_id = serializers.CharField(
        required=False, max_length=128, help_text="Only those for this user."
    )
    since = serializers.DateTimeField(
        required=False, help_text="Only those in which something happened then or later."
    )
    until = serializers.DateTimeField(
        required=False, help_text="Only those in which nothing happened since then."
    )
    q = serializers.CharField(
        required=False, max_length=200, help_text="Only those in which this was said."
    )


class ConversationSerializer(serializers.ModelSerializer[Conversation]):
    """A conversation without what was said; that is at `…/{id}/messages/`."""

    session_id = serializers.CharField(source="session", read_only=True)
    owner = serializers.SlugRelatedField[Any](
        slug_field="username",
        read_only=True,
        allow_null=True,
        help_text="Whose keys it belongs to; null: asked on the machine itself.",
    )
    collections = serializers.SlugRelatedField[Any](many=True, slug_field="name", read_only=True)
    language = serializers.CharField(
        source="language_preference", read_only=True, help_text="That its user wishes for, if any."
    )
    first_message = serializers.CharField(
        source="first_words", read_only=True, allow_null=True, help_text="What it began with."
    )
    messages = serializers.IntegerField(
        source="message_count", read_only=True, help_text="How many there are."
    )

    class Meta:
        model = Conversation
        fields = (
            "id",
            "session_id",
            "user_id",
            "owner",
            "assistant",
            "collections",
            "status",
            "language",
            "first_message",
            "messages",
            "created",
            "updated",
        )
        read_only_fields = fields


class ForgottenConversation(BaseModel):
    """The receipt for a conversation that was forgotten."""

    conversation_id: uuid.UUID
    removed: dict[str, int]  # Kind of row → how many.


class TakenMessage(BaseModel):
    """A message that is being answered."""

    turn_id: uuid.UUID
    events_url: str


SHOWN = OpenApiExample("A conversation", EXAMPLE, response_only=True)


def described(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Return them with what the serializer reads, in as many queries however many there are."""
    rows = with_beginnings(conversations)
    return rows.select_related("owner").prefetch_related("collections")


@extend_schema_view(get=extend_schema(parameters=[ConversationQuery]))
class ConversationsView(ListView[Conversation]):
    """The conversations that a key sees, and the way to begin one."""

    scope = Scope.CHAT
    query_form = ConversationQuery
    chosen_by = {
        "status": "status",
        "assistant": "assistant",
        "session_id": "session",
        "user_id": "user_id",
        "since": "updated__gte",
        "until": "updated__lt",
    }
    serializer_class = ConversationSerializer
    queryset = Conversation.objects.none()  # tells the schema what it is about

    def get_queryset(self) -> QuerySet[Conversation]:
        """Those chosen, the one with the latest message first."""
        rows = reached_conversations(self.request)
        if words := self.query.get("q"):
            said = Message.objects.filter(
                conversation=OuterRef("pk"), is_note=False, text__icontains=words
            )
            rows = rows.filter(Exists(said))
        return described(self.choose(rows)).order_by("-updated", "pk")

    @extend_schema(
        request=ConversationForm,
        responses={200: ConversationSerializer, 201: ConversationSerializer},
        parameters=[IDEMPOTENCY],
        examples=[
            OpenApiExample(
                "With a name of your own",
                {"session_id": "visitor-17", "collections": ["handbook"]},
                request_only=True,
            ),
            SHOWN,
        ],
    )
    def post(self, request: Request) -> Response:
        """Begin a conversation: 201; 200 with the one of this `session_id` where it has begun.

        To ask at once, `POST /api/chat/` is enough: it begins a conversation by itself.
        """
        body = ConversationForm.read(request.data)
        conversation, begins = begin(
            asker(request, body.get("user_id", "")),
            session=body.get("session_id", ""),
            assistant=body.get("assistant", ""),
            collections=body.get("collections", ()),
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )
        return Response(shown(conversation), status=201 if begins else 200)


def shown(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation as the API shows it. Raises Http404 when it was forgotten meanwhile."""
    row = described(Conversation.objects.filter(pk=conversation.pk)).first()
    if row is None:
        raise Http404
    return dict(ConversationSerializer(row).data)


class ConversationView(APIView):
    """One conversation, named by its `session_id` or its id."""

    scope = Scope.CHAT

    @extend_schema(responses=ConversationSerializer, examples=[SHOWN])
    def get(self, request: Request, name: str) -> Response:
        """Return how it stands. What was said in it is at `…/messages/`."""
        return Response(shown(owned_conversation(request, name)))

    @extend_schema(
        responses={200: ForgottenConversation},
        examples=[
            OpenApiExample(
                "A receipt",
                {
                    "conversation_id": IDENTITY,
                    "removed": {"conversations": 1, "messages": 2, "turns": 1, "steps": 17},
                },
                response_only=True,
            )
        ],
    )
    def delete(self, request: Request, name: str) -> Response:
        """Forget it with all that belongs to it, traces included, and return a receipt.

        A turn that is under way ends. One of another owner takes the scope admin and the right to
        delete conversations.
        """
        conversation = owned_conversation(request, name)
        is_own = conversation.owner_id == owner(request).pk
        if not is_own and not request.user.has_perm("conversations.delete_conversation"):
            raise PermissionDenied("You may read this conversation, and not delete it.")
        removed = forget(conversation)
        if not removed["conversations"]:
            raise Http404
        receipt = ForgottenConversation(conversation_id=conversation.pk, removed=removed)
        return Response(receipt.model_dump(mode="json"))


class MessagesQuery(Sent):
    """The query of `GET /api/conversations/{id}/messages/`."""

    after = serializers.UUIDField(
        required=False, help_text="Id of the last message that you have; left out: from the first."
    )


class MessageRequest(MessageForm):
    """The body of `POST /api/conversations/{id}/messages/`."""

    text = Question(help_text="What the user says.")


class SaidMessage(BaseModel):
    """One message, as its user sees it."""

    id: uuid.UUID
    author: Message.Author
    text: str
    time: datetime
    turn_id: uuid.UUID | None


# In the schema under a name of its own: turns have a status, too.
Standing = Annotated[
    Conversation.Status,
    WithJsonSchema({"type": "string", "enum": Conversation.Status.values}),
]


class SaidMessages(BaseModel):
    """Messages of a conversation, oldest first."""

    conversation_id: uuid.UUID
    session_id: str
    status: Standing
    messages: list[SaidMessage]
    more: bool


class MessagesView(APIView):
    """What was said in a conversation, by its user, the assistant and staff."""

    scope = Scope.CHAT

    @extend_schema(
        parameters=[MessagesQuery],
        responses=SaidMessages,
        examples=[
            OpenApiExample(
                "With staff",
                {
                    "conversation_id": IDENTITY,
                    "session_id": "visitor-17",
                    "status": "with_staff",
                    "messages": [
                        {
                            "id": "6c2b7a8e-6d7e-4f0b-8b5e-3f1f0a4e9d21",
                            "author": "staff",
                            "text": "Hello, which invoice is it about?",
                            "time": "2026-11-23T09:12:00Z",
                            "turn_id": None,
                        }
                    ],
                    "more": False,
                },
                response_only=True,
            )
        ],
    )
    def get(self, request: Request, name: str) -> Response:
        """Return at most 100 messages, from the first or after one; `more` says if others follow.

        A conversation is named by its `session_id` or its id. `status` is `with_staff` while a
        person answers in it.
        """
        conversation = owned_conversation(request, name)
        after = MessagesQuery.read(request.query_params).get("after")
        found = messages_after(conversation, after, most=PAGE + 1)
        said = SaidMessages(
            conversation_id=conversation.pk,
            session_id=conversation.session,
            status=Conversation.Status(conversation.status),
            messages=[said_message(message) for message in found[:PAGE]],
            more=len(found) > PAGE,
        )
        return Response(said.model_dump(mode="json"))

    @extend_schema(
        request=MessageRequest,
        responses={202: TakenMessage},
        parameters=[IDEMPOTENCY],
        examples=[
            OpenApiExample("A question", {"text": "How do I book a trip?"}, request_only=True),
            OpenApiExample(
                "Taken",
                {"turn_id": TURN, "events_url": f"/api/turns/{TURN}/events/"},
                response_only=True,
            ),
        ],
    )
    def post(self, request: Request, name: str) -> Response:
        """Take a message and answer at once with the turn that answers it.

        Follow the turn at `events_url`, or read it at `/api/turns/{turn_id}/`.
        """
        conversation = owned_conversation(request, name)
        if conversation.owner_id != owner(request).pk:
            raise PermissionDenied("You may read this conversation, and not write in it.")
        body = MessageRequest.read(request.data)
        envelope = ask(
            body["text"],
            asker(request),
            session=conversation.session,
            filters=MessageForm.filters(body),
            idempotency_key=request.headers.get("Idempotency-Key", ""),
        )
        taken = TakenMessage(
            turn_id=envelope.pk, events_url=reverse("turn-events", args=[envelope.pk])
        )
        return Response(taken.model_dump(mode="json"), status=202)


def said_message(message: Message) -> SaidMessage:
    """Return a message as its user sees it."""
    return SaidMessage(
        id=message.pk,
        author=Message.Author(message.role),
        text=message.text,
        time=message.created,
        turn_id=message.turn_id,
    )
