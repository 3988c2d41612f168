"""Parts of a document: its chunks, its versions, and the answers that relied on it."""

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.models import Chunk, Document, Reliance, Version
from knowledge.serializers.documents import (
    AnswerSerializer,
    AnswersQuery,
    ChunkSerializer,
    VersionDetail,
    VersionSerializer,
)
from knowledge.versions import version, versions


class ChunksView(ListAPIView[Chunk]):
    """The chunks of a document in the order of its text."""

    permission_classes = (IsAdminUser,)
    serializer_class = ChunkSerializer
    queryset = Chunk.objects.none()  # tells the schema what it is about

    def get_queryset(self) -> QuerySet[Chunk]:
        """Those of the document in the address."""
        document = get_object_or_404(Document.objects.only("pk"), pk=self.kwargs["pk"])
        return document.chunks.select_related("section")


class VersionsView(APIView):
    """The versions of a document that are kept."""

    permission_classes = (IsAdminUser,)

    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, pk: str) -> Response:
        """List them without their texts, the latest first."""
        document = get_object_or_404(Document, pk=pk)
        return Response(VersionSerializer(versions(document), many=True).data)


class VersionView(APIView):
    """One version of a document."""

    permission_classes = (IsAdminUser,)

    @extend_schema(responses=VersionDetail)
    def get(self, request: Request, pk: str, number: int) -> Response:
        """Return it as it was, so that an answer that cites it can be checked."""
        document = get_object_or_404(Document, pk=pk)
        try:
            return Response(VersionDetail(version(document, number)).data)
        except Version.DoesNotExist as error:
            raise Http404 from error


@extend_schema(parameters=[AnswersQuery])
class AnswersView(ListAPIView[Reliance]):
    """The answers that cited a document, the latest first, also after it was deleted."""

    permission_classes = (IsAdminUser,)
    serializer_class = AnswerSerializer
    queryset = Reliance.objects.none()

    def get_queryset(self) -> QuerySet[Reliance]:
        """Those of the document in the address, or of `?version=` of it."""
        query = AnswersQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        answers = Reliance.objects.filter(document=self.kwargs["pk"])
        if not answers.exists():
            get_object_or_404(Document.objects.only("pk"), pk=self.kwargs["pk"])
        return answers.filter(**query.validated_data).order_by("-created", "pk")
