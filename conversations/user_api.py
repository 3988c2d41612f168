"""API of users: what is known of one is forgotten."""

import uuid
from dataclasses import asdict
from datetime import datetime

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api import owner, reached_conversations
from conversations.erasure import forget_user
from conversations.models import Conversation
from knowledge.identifiers import Scope
from knowledge.postgres_text import storable


class ForgottenUser(BaseModel):
    """The receipt for a user who was forgotten."""

    id: uuid.UUID
    time: datetime
    user_id: str
    removed: dict[str, int]  # Kind of row → how many.
    left: int  # Conversations that are still there: ask again.


class UserView(APIView):
    """A user, as clients name the one for whom they ask."""

    scope = Scope.CHAT

    @extend_schema(
        responses={200: ForgottenUser},
        examples=[
            OpenApiExample(
                "A receipt",
                {
                    "id": "5f1c0f0e-3f0b-4c8e-9a3e-7f6d1d0b2c11",
                    "time": "2026-11-23T09:12:00Z",
                    "user_id": "u123",
                    "removed": {"conversations": 2, "messages": 9, "turns": 4, "steps": 61},
                    "left": 0,
                },
                response_only=True,
            )
        ],
    )
    def delete(self, request: Request, user_id: str) -> Response:
        """Forget every conversation that was held for a user, traces included; return a receipt.

        Those of your own keys; with the scope admin and the right to delete conversations, those of
        all. A user of whom nothing is known gets a receipt that says so. At most 500 conversations
        go at a time: where `left` is not 0, ask again.
        """
        receipt = forget_user(storable(user_id), forgettable(request))
        shown = ForgottenUser(user_id=user_id, **asdict(receipt))
        return Response(shown.model_dump(mode="json"))


def forgettable(request: Request) -> QuerySet[Conversation]:
    """Return the conversations that a key may have forgotten."""
    rows = reached_conversations(request)
    if request.user.has_perm("conversations.delete_conversation"):
        return rows
    return rows.filter(owner=owner(request))
