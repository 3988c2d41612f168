"""Desk: what a client hands in to the API of the documents, and what became of it."""

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

FOG = b"# Fog\n\nThe foghorn sounds twice every thirty seconds while the fog lasts.\n"
FERRY = b"# Ferry\n\nPlaces on the night ferry are booked at the harbour counter.\n"


def file(name: str, content: bytes = FOG) -> SimpleUploadedFile:
    """A file as a browser sends it."""
    return SimpleUploadedFile(name, content)


def upload(client: Client, *files: SimpleUploadedFile, **more: Any) -> Any:
    """Send files into the collection `island`."""
    return client.post("/api/documents/", {"collection": "island", "file": list(files), **more})


def send(client: Client, **body: Any) -> Any:
    """Send JSON."""
    return client.post("/api/documents/", body, content_type="application/json")


def outcomes(answer: Any) -> dict[str, str]:
    """What became of each item, by its origin."""
    return {item["origin"]: item["status"] for item in answer.json()["items"]["results"]}
