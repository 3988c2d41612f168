"""API of feedback: clients say what their users think of an answer, staff read it."""

import uuid
from typing import Any, ClassVar

from django.db.models import CharField, QuerySet, Value
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api import owned_turn, owner
from conversations.feedback import LONGEST_COMMENT, Feedback, Rating, rate, with_answers
from knowledge.api.access import may
from knowledge.api.lists import ListView
from knowledge.api.sent import PagesQuery, Sent
from knowledge.identifiers import Scope


class FeedbackRequest(Sent):
    """The body of `POST /api/turns/{id}/feedback/`."""

    rating = serializers.ChoiceField(Rating.choices, help_text="Whether the answer was good.")
    comment = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=LONGEST_COMMENT,
        help_text="Why, in the user's words.",
    )


class FeedbackSerializer(serializers.ModelSerializer[Feedback]):
    """What was said of one answer."""

    turn_id = serializers.UUIDField(read_only=True)

    class Meta:
        model = Feedback
        fields: tuple[str, ...] = ("turn_id", "rating", "comment", "created", "updated")
        read_only_fields = fields


class FeedbackEntry(FeedbackSerializer):
    """What was said of one answer, by whom, and what it is about."""

    by = serializers.SlugRelatedField[Any](
        slug_field="username", read_only=True, allow_null=True, help_text="Owner of the key."
    )
    conversation_id = serializers.UUIDField(read_only=True)
    question = serializers.CharField(
        read_only=True, allow_null=True, help_text="Null where the key lacks the scope chat."
    )
    answer = serializers.CharField(
        read_only=True, allow_null=True, help_text="Null where the key lacks the scope chat."
    )
    route = serializers.CharField(read_only=True, allow_null=True)

    class Meta(FeedbackSerializer.Meta):
        fields = (
            *FeedbackSerializer.Meta.fields,
            "by",
            "conversation_id",
            "question",
            "answer",
            "route",
        )
        read_only_fields = fields


class FeedbackQuery(PagesQuery):
    """What may stand behind `?` where feedback is listed."""

    rating = serializers.ChoiceField(
        Rating.choices, required=False, help_text="Only thumbs up, or down."
    )
    turn_id = serializers.UUIDField(required=False, help_text="Only on this turn.")
    conversation_id = serializers.UUIDField(
        required=False, help_text="Only on turns of this conversation."
    )
    since = serializers.DateTimeField(required=False, help_text="Only of then or later.")
    until = serializers.DateTimeField(required=False, help_text="Only of before then.")


class TurnFeedbackView(APIView):
    """What the user of a key thinks of an answer."""

    scope = Scope.CHAT

    @extend_schema(
        request=FeedbackRequest,
        responses={200: FeedbackSerializer, 201: FeedbackSerializer, 409: None},
        examples=[
            OpenApiExample(
                "Thumbs down",
                {"rating": "down", "comment": "That price is from last year."},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, turn_id: uuid.UUID) -> Response:
        """Say whether the answer was good: 201; said again, it replaces what was said: 200."""
        envelope = owned_turn(request, turn_id)
        body = FeedbackRequest.read(request.data)
        row, is_new = rate(envelope, owner(request), body["rating"], body["comment"])
        return Response(FeedbackSerializer(row).data, status=201 if is_new else 200)


@extend_schema(parameters=[FeedbackQuery])
class FeedbackListView(ListView[Feedback]):
    """All feedback, the latest first."""

    scope = Scope.ADMIN
    rights: ClassVar = {"GET": "conversations.view_feedback"}
    serializer_class = FeedbackEntry
    query_form = FeedbackQuery
    chosen_by = {
        "rating": "rating",
        "turn_id": "turn",
        "conversation_id": "turn__conversation_id",
        "since": "updated__gte",
        "until": "updated__lt",
    }
    queryset = Feedback.objects.none()  # tells the schema what it is about

    def get_queryset(self) -> QuerySet[Feedback]:
        """Those chosen, with what they are about."""
        rows = with_answers(self.choose(Feedback.objects.select_related("by")))
        if may(self.request, Scope.CHAT):
            return rows
        nothing = Value(None, output_field=CharField())
        return rows.annotate(question=nothing, answer=nothing)
