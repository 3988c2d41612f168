"""Versions of documents for staff: what answers that cite them can be checked against."""

from datetime import datetime

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.api.access import EVERYTHING, reach_of
from knowledge.api.document_api import find_document
from knowledge.api.lists import ListView
from knowledge.api.sent import PagesQuery
from knowledge.identifiers import Scope
from knowledge.models import Reliance, Version
from knowledge.versions import replacement_time, version, versions


class VersionSerializer(serializers.ModelSerializer[Version]):
    """One version of a document without its text."""

    is_latest = serializers.SerializerMethodField()
    replaced = serializers.SerializerMethodField(help_text="When the next one was taken in.")

    class Meta:
        model = Version
        fields: tuple[str, ...] = ("number", "edition", "title", "is_latest", "created", "replaced")

    def get_is_latest(self, version: Version) -> bool:
        """Return whether it is what the document says now."""
        return replacement_time(version) is None

    def get_replaced(self, version: Version) -> datetime | None:
        """Return when it was replaced; null for the latest."""
        return replacement_time(version)


class VersionDetail(VersionSerializer):
    """One version of a document as it was: what an answer that cites it can be checked against."""

    document = serializers.CharField(source="document_id", read_only=True)
    source = serializers.CharField(  # type: ignore[assignment]  # a field of that name
        source="document.source", read_only=True
    )

    class Meta(VersionSerializer.Meta):
        fields = ("document", "source", *VersionSerializer.Meta.fields, "content")


class AnswerSerializer(serializers.ModelSerializer[Reliance]):
    """An answer that cited a version of a document: the turn it was given in."""

    class Meta:
        model = Reliance
        fields = ("turn", "version", "created")


class AnswersQuery(PagesQuery):
    """What may stand behind `?` where answers are listed."""

    version = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Only of this version."
    )


class VersionsView(APIView):
    """The versions of a document that are kept."""

    scope = Scope.DOCUMENTS

    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, pk: str) -> Response:
        """List them without their texts, the latest first."""
        document = find_document(request, pk)
        return Response(VersionSerializer(versions(document), many=True).data)


class VersionView(APIView):
    """One version of a document."""

    scope = Scope.DOCUMENTS

    @extend_schema(responses=VersionDetail)
    def get(self, request: Request, pk: str, number: int) -> Response:
        """Return it as it was, so that an answer that cites it can be checked."""
        document = find_document(request, pk)
        try:
            return Response(VersionDetail(version(document, number)).data)
        except Version.DoesNotExist as error:
            raise Http404 from error


@extend_schema(parameters=[AnswersQuery])
class AnswersView(ListView[Reliance]):
    """The answers that cited a document, the latest first, also after it was deleted."""

    scope = Scope.DOCUMENTS
    serializer_class = AnswerSerializer
    query_form = AnswersQuery
    chosen_by = {"version": "version"}
    queryset = Reliance.objects.none()

    def get_queryset(self) -> QuerySet[Reliance]:
        """Those of the document in the address, or of `?version=` of it."""
        answers = Reliance.objects.filter(document=self.kwargs["pk"])
        # Of one that was deleted nobody knows which collection it was in.
        if reach_of(self.request) != EVERYTHING or not answers.exists():
            find_document(self.request, self.kwargs["pk"])
        return self.choose(answers).order_by("-created", "pk")
