"""Jobs: every item takes effect once, whatever is delivered twice, dies, or is called off."""

import threading
import uuid
from collections.abc import Sequence
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn
from zipfile import ZipFile

import pytest
from django.db import connection
from django.utils.timezone import now
from pytest_django import Settings

from knowledge import ingestion
from knowledge.embedding.local import LOCAL
from knowledge.errors import EmbeddingUnavailable, NothingToIngest, Unreadable
from knowledge.fetching import Fetched
from knowledge.ingestion import Report, holding, loading, pipeline, storing, writing
from knowledge.models import Chunk, Document, Encoded, Ingest, Version

pytestmark = pytest.mark.django_db

FOG = b"---\ntitle: Fog\n---\nThe foghorn sounds twice."


def upload(body: bytes = FOG, name: str = "fog.md", **more: Any) -> Ingest:
    return ingestion.plan("island", uploads=[(name, body)], **more)


def ran(job: Ingest) -> Report:
    made = ingestion.run(job.pk)
    assert made is not None
    job.refresh_from_db()
    return made


def states(job: Ingest) -> dict[str, str]:
    return dict(job.items.values_list("origin", "status"))


def test_upload_becomes_a_document_and_its_bytes_are_let_go() -> None:
    job = upload()
    assert ran(job).new == 1
    assert (job.status, job.report["new"], job.items.get().body) == ("done", 1, None)
    assert Document.objects.get().collection == job.collection


def test_second_delivery_does_nothing() -> None:
    job = upload()
    ran(job)
    assert ingestion.run(job.pk) is None
    assert Document.objects.get().version == 1


def test_job_in_other_hands_is_left_alone_until_its_lease_ends() -> None:
    job = upload()
    Ingest.objects.update(status="running", attempts=1, lease_until=now() + timedelta(seconds=30))
    assert ingestion.run(job.pk) is None
    assert not ingestion.waiting().exists()
    Ingest.objects.update(lease_until=now() - timedelta(seconds=1))
    assert ingestion.waiting().get() == job
    assert ran(job).new == 1


def test_item_that_killed_three_workers_is_set_aside_and_the_rest_goes_on() -> None:
    job = ingestion.plan(
        "island", uploads=[("bad.md", FOG), ("good.md", b"The harbour is open at night.")]
    )
    Ingest.objects.update(status="running", attempts=3, lease_until=now() - timedelta(seconds=1))
    ran(job)
    assert states(job) == {"bad.md": "skipped", "good.md": "new"}
    assert job.items.get(number=1).reason == "3 workers died over it"
    assert job.status == "done"


def test_job_without_items_left_that_killed_three_workers_is_given_up() -> None:
    job = upload()
    job.items.update(status="new")
    Ingest.objects.update(status="running", attempts=3, lease_until=now() - timedelta(seconds=1))
    assert ingestion.run(job.pk) is None
    job.refresh_from_db()
    assert (job.status, job.error) == ("failed", "Given up: 3 workers died over it.")


def test_unreadable_upload_fails_with_the_reason_and_is_not_tried_again() -> None:
    job = upload(b"\0\1")
    ran(job)
    assert (job.status, job.error) == ("failed", "it is a binary file and not text")
    assert not ingestion.waiting().exists()


def test_job_waits_when_the_model_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(texts: Sequence[str], **_: Any) -> NoReturn:
        raise EmbeddingUnavailable

    monkeypatch.setattr(LOCAL, "encode", missing)
    job = upload()
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable):
            ingestion.run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.attempts) == ("failed", 3)
    monkeypatch.undo()
    assert ingestion.retry(job.pk) == 1
    assert ran(job).new == 1


def test_upload_of_the_same_name_replaces_the_document() -> None:
    ran(upload())
    assert ran(upload(b"The foghorn is silent now.")).changed == 1
    assert Document.objects.get().version == 2


def test_job_that_does_not_exist_is_nothing_to_do() -> None:
    assert ingestion.run(uuid.uuid4()) is None


@pytest.mark.parametrize("uploads", [[], [("fog.md", FOG), ("fog.md", b"Another.")]])
def test_job_of_nothing_or_of_two_files_of_one_name_is_refused(
    uploads: list[tuple[str, bytes]],
) -> None:
    with pytest.raises(NothingToIngest):
        ingestion.plan("island", uploads=uploads)
    assert not Ingest.objects.exists()


@pytest.mark.parametrize("url", ["ftp://example.com/x", "https://me:secret@example.com/"])
def test_address_nobody_may_ask_for_is_refused_before_there_is_a_job(url: str) -> None:
    with pytest.raises(Unreadable):
        ingestion.plan("island", urls=[url])
    assert not Ingest.objects.exists()


def test_same_paths_asked_for_again_while_their_job_is_open_are_one_job(island: Path) -> None:
    job = ingestion.plan("island", paths=[island])
    assert ingestion.plan("island", paths=[island]) == job
    assert ingestion.plan("island", paths=[island], force=True) != job
    assert ingestion.plan("mainland", paths=[island]) != job
    ran(job)
    assert ingestion.plan("island", paths=[island]) != job


def test_error_over_one_item_is_said_with_it_and_the_others_go_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = writing.write_chunks

    def fail(document: Document, *rest: Any) -> None:
        if document.source == "island/fog.txt":
            raise ValueError("no such thing as fog")
        store(document, *rest)

    monkeypatch.setattr(storing, "write_chunks", fail)
    job = ingestion.plan("island", paths=[island])
    made = ran(job)
    assert (made.new, len(made.skipped)) == (3, 1)
    assert made.skipped[0].reason == "Docent failed over it: ValueError: no such thing as fog"
    assert not Document.objects.filter(source="island/fog.txt").exists()
    monkeypatch.undo()
    assert ingestion.retry(job.pk) == 1
    assert ran(job).new == 4


def test_error_nobody_thought_of_is_raised_and_said_and_the_rest_can_go_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = writing.write_chunks

    def fail(document: Document, *rest: Any) -> None:
        if document.source == "island/fog.txt":
            raise AttributeError("a mistake of ours")
        store(document, *rest)

    monkeypatch.setattr(storing, "write_chunks", fail)
    job = ingestion.plan("island", paths=[island])
    with pytest.raises(AttributeError):
        ingestion.run(job.pk)
    job.refresh_from_db()
    assert (job.status, "a mistake of ours" in job.error) == ("queued", True)
    made = ran(job)
    assert (made.new, [each.source for each in made.skipped]) == (3, ["island/fog.txt"])


def test_item_that_makes_a_batch_fail_is_found_and_the_others_go_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = LOCAL.encode

    def fail(texts: Sequence[str], **more: Any) -> Any:
        if any("foghorn sounds" in text for text in texts):
            raise RuntimeError("the model does not like fog")
        return encode(texts, **more)

    monkeypatch.setattr(LOCAL, "encode", fail)
    job = ingestion.plan("island", paths=[island])
    for _ in range(2):
        with pytest.raises(RuntimeError):
            ingestion.run(job.pk)
    made = ran(job)
    assert (made.new, [each.source for each in made.skipped]) == (3, ["island/fog.txt"])
    assert "the model does not like fog" in made.skipped[0].reason


def test_cancelled_job_stops_between_items_and_goes_on_when_tried_again(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "CHUNKS_AT_ONCE", 1)
    monkeypatch.setattr(holding, "BEAT_SECONDS", 0.0)
    job = ingestion.plan("island", paths=[island])

    def call_off(finished: int, total: int, current: str) -> None:
        if finished == 2:
            assert ingestion.cancel(job.pk)

    assert ingestion.run(job.pk, call_off) is None
    job.refresh_from_db()
    assert (job.status, Document.objects.count()) == ("cancelled", 2)
    assert not ingestion.cancel(job.pk)
    assert ingestion.run(job.pk) is None
    assert ingestion.retry(job.pk) == 2
    assert ran(job).new == 4


def test_waiting_job_is_cancelled_at_once() -> None:
    job = upload()
    assert ingestion.cancel(job.pk)
    assert ingestion.run(job.pk) is None
    job.refresh_from_db()
    assert job.status == "cancelled"


def test_open_job_cannot_be_tried_again() -> None:
    with pytest.raises(ingestion.JobError, match="has ended"):
        ingestion.retry(upload().pk)


def test_worker_that_lost_its_lease_changes_nothing_more(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "CHUNKS_AT_ONCE", 1)
    job = ingestion.plan("island", paths=[island])
    other = uuid.uuid4()

    def take_over(finished: int, total: int, current: str) -> None:
        if finished == 1:
            Ingest.objects.filter(pk=job.pk).update(token=other)

    assert ingestion.run(job.pk, take_over) is None
    job.refresh_from_db()
    assert (job.status, job.token, Document.objects.count()) == ("running", other, 1)


def test_vectors_of_a_long_document_outlive_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "\n\n".join(f"## Pier {n}\n\n" + f"Pier {n} has a crane. " * 40 for n in range(80))
    job = upload(body.encode())
    encode, encoded = LOCAL.encode, list[int]()

    def counted(texts: Sequence[str], **more: Any) -> Any:
        encoded.append(len(texts))
        if len(encoded) == 2:
            raise SystemExit
        return encode(texts, **more)

    monkeypatch.setattr(LOCAL, "encode", counted)
    with pytest.raises(SystemExit):
        ingestion.run(job.pk)
    assert (Document.objects.count(), Encoded.objects.count()) == (0, 64)
    assert ran(job).new == 1
    assert sum(encoded) - encoded[1] == Chunk.objects.count() > 64
    assert not Encoded.objects.exists()


def test_progress_counts_what_is_done_and_what_is_left(island: Path) -> None:
    job = ingestion.plan("island", paths=[island])
    seen = ingestion.progress(job)
    assert (seen.items, seen.finished, seen.seconds_left) == (4, 0, None)
    made = ran(job)
    seen = ingestion.progress(job)
    assert (seen.items, seen.finished, seen.documents) == (4, 4, 4)
    assert seen.outcomes == {"new": 4}
    assert seen.chunks == made.chunks == Chunk.objects.count()


def test_rows_of_json_count_once_however_often_the_worker_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "CHUNKS_AT_ONCE", 1)
    rows = ", ".join(f'{{"content": "The harbour has {n} piers."}}' for n in range(9))
    job = upload(f"[{rows}]".encode(), "piers.json")
    begun = 0

    def die(finished: int, total: int, current: str) -> None:
        nonlocal begun
        begun += 1
        if begun in {3, 8}:
            raise SystemExit

    for _ in range(2):
        with pytest.raises(SystemExit):
            ingestion.run(job.pk, die)
    made = ran(job)
    assert (made.new, made.unchanged) == (9, 0)
    assert set(Document.objects.values_list("version", flat=True)) == {1}


@pytest.mark.django_db(transaction=True)
def test_many_deliveries_at_once_are_one(island: Path) -> None:
    job = ingestion.plan("island", paths=[island])
    made: list[Report | None] = []

    def work() -> None:
        made.append(ingestion.run(job.pk))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.new for each in made if each is not None] == [4]
    assert Document.objects.count() == 4


def zipped(**files: str) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.md", text)
    return packed.getvalue()


def test_files_in_an_uploaded_zip_are_items_of_their_own() -> None:
    body = zipped(fog="The foghorn sounds twice.", empty="", pier="The pier has a crane.")
    job = upload(body, "island.zip")
    assert ran(job).new == 2
    assert states(job) == {
        "island.zip": "listed",
        "island.zip/fog.md": "new",
        "island.zip/empty.md": "skipped",
        "island.zip/pier.md": "new",
    }
    assert not job.items.exclude(status="skipped").exclude(body=None).exists()
    assert ran(upload(body, "island.zip")).unchanged == 2


def test_files_gone_from_a_zip_are_removed_if_it_lies_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "isle").mkdir()
    path = tmp_path / "isle" / "all.zip"
    path.write_bytes(zipped(fog="The foghorn sounds twice.", pier="The pier has a crane."))
    ran(ingestion.plan("island", paths=[path.parent]))
    path.write_bytes(zipped(pier="The pier has a crane."))
    assert ran(ingestion.plan("island", paths=[path.parent])).removed == 1
    assert Document.objects.get().source == "isle/all.zip/pier.md"
    path.write_bytes(b"no zip any more")
    made = ran(ingestion.plan("island", paths=[path.parent]))
    assert (made.removed, Document.objects.count()) == (0, 1)


def fetched(url: str, text: str) -> Fetched:
    return Fetched(url=url, name="page.html", body=text.encode(), etag="", last_modified="")


def test_pages_of_a_sitemap_are_items_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    site = "https://example.com/sitemap.xml"
    pages = {
        "https://example.com/docs/fog": "<h1>Fog</h1><p>The foghorn sounds twice.</p>",
        "https://example.com/pier": "<h1>Pier</h1><p>The pier has a crane.</p>",
    }
    monkeypatch.setattr(loading, "pages_of", lambda url: [*pages] if url == site else [url])
    monkeypatch.setattr(loading, "fetch", lambda url: fetched(url, pages[url]))
    job = ingestion.plan("island", urls=[site])
    assert ran(job).new == 2
    assert states(job) == {site: "listed"} | dict.fromkeys(pages, "new")
    fog = Document.objects.get(source="https://example.com/docs/fog")
    assert (fog.title, fog.crumbs) == ("Fog", ["Docs"])
    # Only the mark-up changed, as it does on sites that stamp every answer.
    pages = {url: f"<body data-stamp='2'>{text}</body>" for url, text in pages.items()}
    assert ran(ingestion.plan("island", urls=[site])).unchanged == 2


def test_page_that_cannot_be_fetched_keeps_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://example.com/fog"
    monkeypatch.setattr(loading, "pages_of", lambda url: [url])
    monkeypatch.setattr(loading, "fetch", lambda url: fetched(url, "<p>The foghorn is loud.</p>"))
    ran(ingestion.plan("island", urls=[url]))

    def refuse(url: str) -> NoReturn:
        raise Unreadable("its server answered 404 Not Found")

    monkeypatch.setattr(loading, "fetch", refuse)
    job = ingestion.plan("island", urls=[url])
    assert [each.reason for each in ran(job).skipped] == ["its server answered 404 Not Found"]
    assert (job.status, Document.objects.count()) == ("failed", 1)


def test_document_is_taken_in_anew_from_its_file(island: Path) -> None:
    ran(ingestion.plan("island", paths=[island]))
    fog = Document.objects.get(source="island/fog.txt")
    first = set(fog.chunks.values_list("pk", flat=True))
    assert ran(ingestion.reingest(fog)).changed == 1
    fog.refresh_from_db()
    assert fog.version == 1, "the same text is the same version"
    assert not first & set(fog.chunks.values_list("pk", flat=True))
    (island / "fog.txt").write_text("The foghorn has been replaced by a bell.")
    ran(ingestion.reingest(fog))
    fog.refresh_from_db()
    assert (fog.version, Document.objects.count()) == (2, 4)


def test_document_of_an_upload_is_taken_in_anew_from_its_text() -> None:
    ran(upload())
    document = Document.objects.get()
    before = Document.objects.values("title", "content", "sha1", "version", "summary").get()
    assert ran(ingestion.reingest(document)).changed == 1
    assert Document.objects.values("title", "content", "sha1", "version", "summary").get() == before
    job = ingestion.reingest(document)
    ingestion.delete([document])
    assert ran(job).skipped[0].reason == "the document was deleted"


def test_only_so_many_versions_are_kept(settings: Settings) -> None:
    settings.KEEP_VERSIONS = 2
    for year in range(5):
        ran(upload(f"The foghorn of year {year} sounds twice.".encode()))
    document = Document.objects.get()
    assert document.version == 5
    assert [each.number for each in document.versions.all()] == [4, 3]
    ingestion.delete([document])
    assert not Version.objects.exists()
