"""Collections and receipts of what was deleted from them, for staff."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView

from knowledge.api.access import reach_of
from knowledge.api.lists import ListView
from knowledge.api.sent import PagesQuery
from knowledge.collections import with_sizes
from knowledge.identifiers import Scope
from knowledge.models import Collection, Receipt


class CollectionSerializer(serializers.ModelSerializer[Collection]):
    """One collection, how much it holds and how it is searched."""

    documents = serializers.IntegerField(source="document_count", read_only=True)
    chunks = serializers.IntegerField(source="chunk_count", read_only=True)
    golden_questions = serializers.IntegerField(source="question_count", read_only=True)
    threshold = serializers.FloatField(
        read_only=True,
        allow_null=True,
        help_text="Calibrated for its embedding model; null where SEARCH_CONFIDENCE_THRESHOLD is.",
    )

    class Meta:
        model = Collection
        fields = (
            "name",
            "title",
            "description",
            "embedding_model",
            "threshold",
            "documents",
            "chunks",
            "golden_questions",
            "created",
        )


class Deleted(serializers.Serializer[Any]):
    """What a receipt says of one document."""

    id = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field of that name
    title = serializers.CharField()
    version = serializers.IntegerField()


class ReceiptSerializer(serializers.ModelSerializer[Receipt]):
    """What a deletion removed."""

    documents = Deleted(many=True, read_only=True)
    removed = serializers.DictField(
        child=serializers.IntegerField(), read_only=True, help_text="Kind of row → how many."
    )
    answers = serializers.ListField(
        child=serializers.UUIDField(),
        read_only=True,
        help_text="Turns whose answers had cited one of the documents.",
    )

    class Meta:
        model = Receipt
        fields = (
            "id",
            "collection",
            "by",
            "reason",
            "documents",
            "removed",
            "answers",
            "created",
        )
        read_only_fields = fields


class CollectionsView(ListView[Collection]):
    """The collections with their sizes."""

    scope = Scope.DOCUMENTS
    serializer_class = CollectionSerializer

    def get_queryset(self) -> QuerySet[Collection]:
        """Those that the key reaches."""
        return reach_of(self.request).within(with_sizes(Collection.objects.all()), "name")


class ReceiptsQuery(PagesQuery):
    """What may stand behind `?` where receipts are listed."""

    collection = serializers.CharField(
        required=False, max_length=1000, help_text="Only of this one."
    )
    since = serializers.DateTimeField(required=False, help_text="Only of then or later.")
    until = serializers.DateTimeField(required=False, help_text="Only of before then.")


@extend_schema(parameters=[ReceiptsQuery])
class ReceiptsView(ListView[Receipt]):
    """Receipts of what was deleted, the latest first."""

    scope = Scope.DOCUMENTS
    serializer_class = ReceiptSerializer
    query_form = ReceiptsQuery
    chosen_by = {"collection": "collection", "since": "created__gte", "until": "created__lt"}
    queryset = Receipt.objects.all()

    def get_queryset(self) -> QuerySet[Receipt]:
        """Of collections that the key reaches."""
        return self.choose(reach_of(self.request).within(super().get_queryset(), "collection"))


class ReceiptView(RetrieveAPIView[Receipt]):
    """One receipt."""

    scope = Scope.DOCUMENTS
    serializer_class = ReceiptSerializer
    queryset = Receipt.objects.all()

    def get_queryset(self) -> QuerySet[Receipt]:
        """Of collections that the key reaches."""
        return reach_of(self.request).within(super().get_queryset(), "collection")
