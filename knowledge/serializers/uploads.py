"""Uploads as clients send them: files, an address, or a document as JSON."""

from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from rest_framework import serializers

DEFAULT_COLLECTION = "documents"
# A request is held in memory while its files are written down.
REQUEST_FILES = 5  # of the largest size allowed
WAYS = ("file", "url", "document")


class Upload(serializers.Serializer[Any]):
    """What `POST /api/documents/` takes: files (multipart), a URL, or a document as JSON.

    A document may also be sent as it is, with `content` and its other fields at the top.
    """

    collection = serializers.CharField(
        max_length=63, default=DEFAULT_COLLECTION, help_text="Made when it does not exist."
    )
    wait = serializers.BooleanField(
        default=True, help_text="Whether to answer when it is done, at the latest after 20 s."
    )
    file = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True),
        required=False,
        allow_empty=False,
        help_text="In any format that can be ingested; several parts may have this name.",
    )
    url = serializers.CharField(
        max_length=2000, required=False, help_text="A page, a file or a sitemap on the web."
    )
    document = serializers.JSONField(
        required=False, help_text="An object with `content`, and `title`, `source` and so on."
    )

    def to_internal_value(self, data: Any) -> Any:
        """Take a document whose fields stand at the top as one of its own."""
        if isinstance(data, dict) and "content" in data and "document" not in data:
            ours = {name: data[name] for name in data if name in self.fields}
            document = {name: data[name] for name in data if name not in self.fields}
            data = ours | {"document": document}
        return super().to_internal_value(data)

    def validate_file(self, files: list[UploadedFile]) -> list[UploadedFile]:
        """Refuse what is too much, naming it."""
        limit = settings.MAX_UPLOAD_BYTES
        for file in files:
            if (file.size or 0) > limit:
                raise serializers.ValidationError(
                    f"{file.name} is larger than {limit:,} bytes (MAX_UPLOAD_BYTES)."
                )
        if sum(file.size or 0 for file in files) > REQUEST_FILES * limit:
            raise serializers.ValidationError(
                f"Together the files are larger than {REQUEST_FILES * limit:,} bytes: "
                "send them in several requests."
            )
        return files

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Take exactly one of the three."""
        if sum(way in attrs for way in WAYS) != 1:
            raise serializers.ValidationError(
                "Send one or more files, or a url, or a document with its content."
            )
        return attrs
