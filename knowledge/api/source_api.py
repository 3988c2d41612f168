"""Sources for staff: repositories and sitemaps that are read again on a schedule."""

import uuid
from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.api.access import reach_of
from knowledge.api.ingest_api import IngestSerializer
from knowledge.api.lists import ListView
from knowledge.api.sent import PagesQuery, Sent
from knowledge.collections import DEFAULT_COLLECTION
from knowledge.identifiers import Scope
from knowledge.ingestion import schedule
from knowledge.ingestion.jobs import AlreadyRead, enqueue
from knowledge.models import Source
from knowledge.models.documents import COLLECTION_NAME

SHORTEST, LONGEST = 5, 366 * 24 * 60  # minutes
RUNS = 20
# As a schema can say them; what they let through can be read as far as can be told beforehand.
LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,40}[A-Za-z0-9])?"
ADDRESS = rf"^https://{LABEL}(\.{LABEL}){{0,4}}(/[A-Za-z0-9._~/-]*)?$"
BRANCH_OR_NONE = r"^([A-Za-z0-9_.][A-Za-z0-9_./+@-]*)?$"
FOLDER = r"^([A-Za-z0-9_-][A-Za-z0-9 _-]*(\.[A-Za-z0-9 _-]+)*/?)*$"
RIGHTS = {
    "GET": "knowledge.view_source",
    "POST": "knowledge.add_source",
    "PATCH": "knowledge.change_source",
    "DELETE": "knowledge.delete_source",
}


class FollowedSource(serializers.ModelSerializer[Source]):
    """What a collection follows, and when it is read."""

    collection = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    minutes = serializers.SerializerMethodField(help_text="Between two runs.")
    patterns = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Source
        fields: tuple[str, ...] = (
            "id",
            "collection",
            "kind",
            "address",
            "branch",
            "folder",
            "patterns",
            "minutes",
            "paused",
            "due",
            "created",
        )
        read_only_fields = fields

    @extend_schema_field({"type": "integer"})
    def get_minutes(self, source: Source) -> int:
        """Return the time between two runs."""
        return int(source.every.total_seconds() // 60)


class FollowedSourceDetail(FollowedSource):
    """What a collection follows, with its latest runs."""

    runs = serializers.SerializerMethodField(help_text="The latest first, twenty at most.")

    class Meta(FollowedSource.Meta):
        fields = (*FollowedSource.Meta.fields, "runs")
        read_only_fields = fields

    @extend_schema_field(IngestSerializer(many=True))
    def get_runs(self, source: Source) -> Any:
        """Return the latest runs."""
        latest = source.runs.select_related("collection").order_by("-created")[:RUNS]
        return IngestSerializer(latest, many=True).data


class SourceToFollow(Sent):
    """What is to be followed."""

    address = serializers.RegexField(
        ADDRESS,
        max_length=900,
        help_text="Of a sitemap (.xml, .xml.gz), or of a Git repository.",
        error_messages={
            "invalid": "Send an address like https://host/path, without a name, password or query. "
            "Others can be named at the command line and in the admin."
        },
    )
    collection = serializers.RegexField(
        COLLECTION_NAME,
        max_length=63,
        default=DEFAULT_COLLECTION,
        help_text="Made when missing.",
        error_messages={
            "invalid": "'%(value)s' cannot name a collection: use 1 to 63 of a-z, 0-9, '-' and '_'."
        },
    )
    branch = serializers.RegexField(
        BRANCH_OR_NONE,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="Of a repository.",
        error_messages={"invalid": "That is no name of a branch."},
    )
    folder = serializers.RegexField(
        FOLDER,
        default="",
        allow_blank=True,
        max_length=500,
        help_text="Of a repository.",
        error_messages={"invalid": "Name a folder within the repository, like docs/en."},
    )
    patterns = serializers.ListField(
        child=serializers.CharField(max_length=200), default=list, max_length=50
    )
    minutes = serializers.IntegerField(default=1440, min_value=SHORTEST, max_value=LONGEST)


class SourceChange(Sent):
    """What is to be changed."""

    minutes = serializers.IntegerField(required=False, min_value=SHORTEST, max_value=LONGEST)
    paused = serializers.BooleanField(required=False)


class SourcesView(ListView[Source]):
    """What collections follow."""

    scope = Scope.DOCUMENTS
    rights = RIGHTS
    serializer_class = FollowedSource
    query_form = PagesQuery
    queryset = Source.objects.none()  # tells the schema what it is about

    def get_queryset(self) -> QuerySet[Source]:
        """Those of collections that the key reaches."""
        return reach_of(self.request).within(Source.objects.select_related("collection"))

    @extend_schema(request=SourceToFollow, responses={201: FollowedSourceDetail})
    def post(self, request: Request) -> Response:
        """Follow a Git repository or a sitemap; it is read at once, and then on its schedule."""
        sent = SourceToFollow.read(request.data)
        reach_of(request).check([sent["collection"]])
        source = schedule.add(
            sent["collection"],
            sent["address"],
            branch=sent["branch"],
            folder=sent["folder"],
            patterns=sent["patterns"],
            every=timedelta(minutes=sent["minutes"]),
        )
        if job := schedule.plan_run(source):
            enqueue(job)
        return Response(FollowedSourceDetail(source).data, status=201)


class SourceView(APIView):
    """One of what collections follow."""

    scope = Scope.DOCUMENTS
    rights = RIGHTS

    @extend_schema(responses=FollowedSourceDetail)
    def get(self, request: Request, source_id: uuid.UUID) -> Response:
        """Return it with its latest runs, and what each changed."""
        return Response(FollowedSourceDetail(find_source(request, source_id)).data)

    @extend_schema(request=SourceChange, responses=FollowedSourceDetail)
    def patch(self, request: Request, source_id: uuid.UUID) -> Response:
        """Change how often it is read, or pause it."""
        source = find_source(request, source_id)
        sent = SourceChange.read(request.data)
        source.paused = sent.get("paused", source.paused)
        if "minutes" in sent:
            source.every = timedelta(minutes=sent["minutes"])
        source.save(update_fields=["paused", "every"])
        return Response(FollowedSourceDetail(source).data)

    @extend_schema(responses={200: FollowedSource})
    def delete(self, request: Request, source_id: uuid.UUID) -> Response:
        """Follow it no more, and return what it was. Its documents stay."""
        source = find_source(request, source_id)
        answer = Response(FollowedSource(source).data)
        source.delete()
        return answer


class SourceRunView(APIView):
    """A run that does not wait for the schedule."""

    scope = Scope.DOCUMENTS
    rights: ClassVar = {"POST": RIGHTS["PATCH"]}

    @extend_schema(request=None, responses={202: IngestSerializer, 409: None})
    def post(self, request: Request, source_id: uuid.UUID) -> Response:
        """Read it now, also what its server calls unchanged."""
        job = schedule.plan_run(find_source(request, source_id), is_whole=True)
        if job is None:
            raise AlreadyRead
        enqueue(job)
        return Response(IngestSerializer(job).data, status=202)


def find_source(request: Request, source_id: uuid.UUID) -> Source:
    """Return what is followed, if the key of a request reaches it. Raises Http404."""
    in_reach = reach_of(request).within(Source.objects.select_related("collection"))
    return get_object_or_404(in_reach, pk=source_id)
