"""Documents as clients see them: text, chunks, versions, and the answers that cite them."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from knowledge.models import Chunk, Document, Reliance, Version
from knowledge.versions import replaced


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """One document without its text."""

    collection = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    chunks = serializers.IntegerField(source="chunk_count", read_only=True)

    class Meta:
        model = Document
        fields: tuple[str, ...] = (
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


class DocumentDetail(DocumentSerializer):
    """One document with its text."""

    copies = serializers.SlugRelatedField[Any](
        many=True,
        read_only=True,
        slug_field="source",
        help_text="Other places where the same bytes lie.",
    )

    class Meta(DocumentSerializer.Meta):
        fields = (*DocumentSerializer.Meta.fields, "keypoints", "copies", "content")


class ChunkSerializer(serializers.ModelSerializer[Chunk]):
    """One chunk of a document; its neighbours are those with the numbers before and after."""

    section = serializers.SerializerMethodField()

    class Meta:
        model = Chunk
        fields = ("id", "number", "section", "page", "tokens", "keywords", "text")

    def get_section(self, chunk: Chunk) -> list[str]:
        """Return the headings it stands under, outermost first."""
        return list(chunk.section.path)


class VersionSerializer(serializers.ModelSerializer[Version]):
    """One version of a document without its text."""

    is_latest = serializers.SerializerMethodField()
    replaced = serializers.SerializerMethodField(help_text="When the next one was taken in.")

    class Meta:
        model = Version
        fields: tuple[str, ...] = ("number", "title", "is_latest", "created", "replaced")

    def get_is_latest(self, version: Version) -> bool:
        """Return whether it is what the document says now."""
        return replaced(version) is None

    def get_replaced(self, version: Version) -> datetime | None:
        """Return when it was replaced; null for the latest."""
        return replaced(version)


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


class AnswersQuery(serializers.Serializer[Any]):
    """What may stand behind `?` where answers are listed."""

    version = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="Only of this version."
    )
