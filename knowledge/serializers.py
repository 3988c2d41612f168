"""Serializers: documents as clients see them, and uploads as they send them."""

from typing import Any

from rest_framework import serializers

from knowledge.models import Document, Ingest


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """One document without its text."""

    collection = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    chunks = serializers.IntegerField(source="chunk_count", read_only=True)

    class Meta:
        model = Document
        fields = (
            "id",
            "collection",
            "source",
            "title",
            "crumbs",
            "description",
            "summary",
            "keywords",
            "version",
            "language",
            "audience",
            "last_updated",
            "chunks",
            "created",
            "updated",
        )


class IngestSerializer(serializers.ModelSerializer[Ingest]):
    """An upload on its way into a collection."""

    collection = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)

    class Meta:
        model = Ingest
        fields = ("id", "collection", "name", "status", "report", "error", "created", "updated")
        read_only_fields = fields


class Upload(serializers.Serializer[Any]):
    """The body of `POST /api/documents/`: a file (multipart), or a document as JSON."""

    collection = serializers.CharField(max_length=63)
    file = serializers.FileField(required=False, help_text="Markdown, HTML, plain text, or JSON.")
    document = serializers.JSONField(
        required=False, help_text="An object with `content`, and `title`, `source` and so on."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Take exactly one of the two."""
        if ("file" in attrs) == ("document" in attrs):
            raise serializers.ValidationError("Send either a file or a document.")
        return attrs
