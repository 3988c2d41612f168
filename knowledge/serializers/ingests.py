"""Ingests as clients see them: how far one is, and what became of its items."""

from typing import Any

from rest_framework import serializers

from knowledge.models import Ingest, Item


class IngestSerializer(serializers.ModelSerializer[Ingest]):
    """A job that takes files, uploads or web pages into a collection."""

    collection = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    report = serializers.DictField(read_only=True, help_text="What came of it; empty until then.")

    class Meta:
        model = Ingest
        fields: tuple[str, ...] = (
            "id",
            "collection",
            "name",
            "status",
            "cancelling",
            "report",
            "error",
            "created",
            "started",
            "ended",
            "updated",
        )
        read_only_fields = fields


class ProgressSerializer(serializers.Serializer[Any]):
    """How far a job is."""

    items = serializers.IntegerField(help_text="Known so far: sitemaps and zips add theirs.")
    finished = serializers.IntegerField()
    outcomes = serializers.DictField(
        child=serializers.IntegerField(), help_text="Status of an item → how many have it."
    )
    documents = serializers.IntegerField(help_text="Of the finished items.")
    chunks = serializers.IntegerField(help_text="Written.")
    current = serializers.CharField(help_text="The item at hand.")
    rate = serializers.FloatField(help_text="Items a second over the last minute.")
    seconds_left = serializers.FloatField(allow_null=True, help_text="Null where it is unknown.")


class WarningSerializer(serializers.Serializer[Any]):
    """Something about an item that was taken in all the same."""

    source = serializers.CharField()  # type: ignore[assignment]  # a field of that name
    reason = serializers.CharField()


class ItemSerializer(serializers.ModelSerializer[Item]):
    """One file, web page or upload of a job, and what became of it."""

    # A second choice called `status` would be given a name at random in the schema.
    status = serializers.CharField(read_only=True, help_text=", ".join(Item.Status.values))
    warnings = WarningSerializer(many=True, read_only=True)

    class Meta:
        model = Item
        fields = ("number", "kind", "origin", "status", "reason", "warnings", "documents", "chunks")
        read_only_fields = fields


class ItemPage(serializers.Serializer[Any]):
    """A page of a job's items."""

    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = ItemSerializer(many=True)


class IngestDetail(IngestSerializer):
    """A job with how far it is and a page of its items."""

    progress = ProgressSerializer(read_only=True)
    items = ItemPage(read_only=True)

    class Meta(IngestSerializer.Meta):
        fields = (*IngestSerializer.Meta.fields, "progress", "items")
        read_only_fields = fields


class ItemsQuery(serializers.Serializer[Any]):
    """What may stand behind `?` where a job is looked at."""

    status = serializers.ChoiceField(
        Item.Status.choices, required=False, help_text="Only the items with this status."
    )


class IngestsQuery(serializers.Serializer[Any]):
    """What may stand behind `?` where jobs are listed."""

    collection = serializers.CharField(required=False, help_text="Only of this one.")
    status = serializers.ChoiceField(
        Ingest.Status.choices, required=False, help_text="Only those with this status."
    )
