"""Fixtures: small documents about a product that does not exist, and those who work with them."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from celery import current_app
from django.contrib.auth.models import User
from django.test import Client
from django.utils.timezone import now
from pytest_django import Settings
from pytest_httpserver import HTTPServer

from knowledge import ingestion
from knowledge.embedding import registry
from knowledge.embedding.local import MULTILINGUAL
from knowledge.ingestion import find
from knowledge.models import Collection, Document, Reliance, Version
from knowledge.providers import Provider
from tests import factories
from tests.knowledge.desk import FOG, file, upload
from tests.knowledge.endpoint import Server
from tests.knowledge.pages import SCRIPT
from tests.knowledge.polyglot import Polyglot
from tests.knowledge.words import of_words

PAGES = {
    "ferry-booking.md": """---
title: Booking a ferry
description: How passengers reserve a place on the night ferry.
tags: [ferry, booking]
last_updated: 2026-03-04
---

import Card from '@site/Card';

Places on the night ferry are booked at the harbour counter or by telephone.

## Cancel a booking

A booking can be cancelled until two hours before departure. The price is refunded to the card it
was paid with. See [the refund rules](refunds.md).

<Card title="gone" />

## Take a bicycle

| Bicycle | Price |
|---------|-------|
| Folding | free  |
| Tandem  | 12 €  |
""",
    "rooms/lighthouse.md": """---
title: Sleeping in the lighthouse
---

The lighthouse has four rooms for guests. Breakfast is served at seven in the lantern room.

## Keys

The key of a room is handed out by the keeper, who lives in the white house next door.
""",
    "rooms/quiet-hours.html": """<html lang="en"><head><title>Quiet hours</title></head><body>
<nav>Home</nav><main><h1>Quiet hours</h1><p>Between ten in the evening and six in the morning
guests of the lighthouse must not play the foghorn.</p><script>x()</script></main></body></html>""",
    "fog.txt": "The foghorn sounds when visibility falls below one nautical mile. Every thirty "
    "seconds it sounds twice. Sailors report a broken foghorn to the harbour master.",
}


@pytest.fixture
def island(tmp_path: Path) -> Path:
    """Return a folder of four pages."""
    root = tmp_path / "island"
    for name, text in PAGES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def staff(client: Client) -> Client:
    """A client that may do everything."""
    client.force_login(User.objects.create_superuser("ann"))
    return client


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are done as soon as they are rung for."""

    def deliver(name: str, args: list[str], queue: str) -> None:
        ingestion.run(args[0])

    monkeypatch.setattr(current_app, "send_task", deliver)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs wait."""
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: None)


@pytest.fixture
def fog(staff: Client, worker: None) -> Document:
    """A document with two versions; an answer relied on the first."""
    upload(staff, file("fog.md"))
    first = Document.objects.get()
    Reliance.objects.create(turn=uuid4(), document=first.pk, version=1)
    upload(staff, file("fog.md", FOG.replace(b"twice", b"three times")), replace="true")
    return Document.objects.get()


@pytest.fixture
def document() -> Document:
    """A document with two chunks, replaced once; two answers relied on it."""
    factories.collection("handbook", content=f"# Leave\n\nUnused days end in April.\n\n{SCRIPT}")
    document = Document.objects.get()
    Document.objects.update(version=2)
    Version.objects.create(
        document=document,
        number=1,
        title=SCRIPT,
        content=f"# Leave\n\nUnused days end in March.\n\n{SCRIPT}\n\n{SCRIPT}!",
        sha1="1" * 40,
        created=now(),
    )
    for number in (1, 2):
        Reliance.objects.create(turn=uuid4(), document=document.pk, version=number)
    document.refresh_from_db()
    return document


@pytest.fixture
def ingested(monkeypatch: pytest.MonkeyPatch) -> Document:
    """A document that was taken in by a job, whose worker works at once."""
    monkeypatch.setattr(current_app, "send_task", lambda name, args, queue: ingestion.run(args[0]))
    upload = ("fog.md", b"# Fog\n\nThe foghorn sounds twice every thirty seconds.\n")
    ingestion.run(ingestion.plan("island", uploads=[upload]).pk)
    return Document.objects.get()


@pytest.fixture
def server(httpserver: HTTPServer, settings: Settings) -> Iterator[Server]:
    """A server of one's own, as the provider `own`, whose model knows words."""
    settings.PROVIDERS = {"own": Provider("own", httpserver.url_for("/v1"))}
    settings.EMBEDDING_WINDOW = 512
    registry.forget()
    yield Server(httpserver, of_words)
    registry.forget()


@pytest.fixture
def collection(island: Path, server: Server) -> Collection:
    """The island as a collection, which that model has no vectors of yet."""
    ingestion.ingest(find([island]), collection="island")
    return Collection.objects.get(name="island")


@pytest.fixture
def one_document_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The island has four documents, of which the first ten are all."""
    monkeypatch.setattr("knowledge.reindex.switchover.RECALL_AT", 1)


@pytest.fixture
def polyglot(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Polyglot:
    """The multilingual model is asked, and knows a few words."""
    settings.CROSS_LINGUAL = True
    model = Polyglot()
    monkeypatch.setattr(MULTILINGUAL, "encode", model)
    return model
