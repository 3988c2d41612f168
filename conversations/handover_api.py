"""API for staff: the conversations that are with them, read and answered by programs."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api import owner, seen_conversations
from conversations.errors import UnknownMessage
from conversations.inbox import ACTIONS, CHANGE, ORDER, VIEW, Box, act, box
from conversations.models import Handover
from knowledge.api.access import ScopePermission
from knowledge.api.lists import ListView
from knowledge.api.sent import PagesQuery, Sent
from knowledge.identifiers import Scope

RIGHTS = {"GET": VIEW, "POST": CHANGE}


class MayAnswer(BasePermission):
    """Who may view the inbox may read it here, too, and who may change it may answer."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Look at the rights of the key's user."""
        return bool(request.user.has_perm(VIEW if request.method in SAFE_METHODS else CHANGE))


class HandoverQuery(PagesQuery):
    """The query of `GET /api/admin/handovers/`."""

    box = serializers.ChoiceField(
        choices=list(Box.NAMES), required=False, help_text="Left out: all that are open."
    )


class HandoverSerializer(serializers.ModelSerializer[Handover]):
    """A conversation with staff. Its messages are those of the conversation of this id."""

    session_id = serializers.CharField(source="conversation.session", read_only=True)
    user_id = serializers.CharField(source="conversation.user_id", read_only=True)
    assigned = serializers.CharField(
        source="assigned.username",
        default=None,
        read_only=True,
        allow_null=True,
        help_text="Who answers; null: nobody yet.",
    )

    class Meta:
        model = Handover
        fields = (
            "id",
            "conversation_id",
            "session_id",
            "user_id",
            "why",
            "requested",
            "assigned",
            "waiting_since",
            "returned",
            "closed",
            "note",
        )


class HandoverAction(Sent):
    """The body of `POST /api/admin/handovers/{id}/`."""

    action = serializers.ChoiceField(choices=list(ACTIONS))
    text = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, help_text="What to say."
    )
    note = serializers.CharField(
        required=False, allow_blank=True, help_text="For the assistant, with `give_back`."
    )
    seen = serializers.UUIDField(
        required=False,
        help_text="Id of the last message you have read: a conversation that has another of the "
        "user after it is neither given back nor closed.",
    )


class HandoversView(ListView[Handover]):
    """The inbox: who has waited longest comes first."""

    scope = Scope.ADMIN
    rights = RIGHTS
    permission_classes = (ScopePermission, MayAnswer)
    serializer_class = HandoverSerializer
    query_form = HandoverQuery

    @extend_schema(parameters=[HandoverQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the conversations that are with staff, or those in one box."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Handover]:
        """Return what is in the box."""
        chosen = box(self.query.get("box"), self.request.user)
        return _seen(self.request).filter(chosen).order_by(*ORDER, "pk")


class HandoverView(APIView):
    """One conversation with staff."""

    scope = Scope.ADMIN
    rights = RIGHTS
    permission_classes = (ScopePermission, MayAnswer)

    @extend_schema(responses=HandoverSerializer)
    def get(self, request: Request, handover_id: int) -> Response:
        """Return how it stands."""
        return Response(HandoverSerializer(_row(request, handover_id)).data)

    @extend_schema(
        operation_id="answer_handover",
        request=HandoverAction,
        responses={200: HandoverSerializer, 409: None},
        examples=[
            OpenApiExample("Answer", {"action": "say", "text": "Hello!"}, request_only=True),
            OpenApiExample(
                "Give back", {"action": "give_back", "note": "Invoice 7."}, request_only=True
            ),
        ],
    )
    def post(self, request: Request, handover_id: int) -> Response:
        """Take it, release it, say something to its user, give it back, or close it."""
        values = HandoverAction.read(request.data)
        row = _row(request, handover_id)
        text, note = values.get("text", ""), values.get("note", "")
        seen = None
        if "seen" in values:
            message = row.conversation.messages.filter(pk=values["seen"]).first()
            if message is None:
                raise UnknownMessage
            seen = message.created
        act(values["action"], row.pk, owner(request), text=text, note=note, seen=seen)
        return Response(HandoverSerializer(_row(request, handover_id)).data)


def _seen(request: Request) -> QuerySet[Handover]:
    """Return those of the conversations that the key may see."""
    rows = Handover.objects.select_related("conversation", "assigned")
    return rows.filter(conversation__in=seen_conversations(request, RIGHTS))


def _row(request: Request, handover_id: int) -> Handover:
    return get_object_or_404(_seen(request), pk=handover_id)
