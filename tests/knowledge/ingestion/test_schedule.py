"""Schedule: repositories and sitemaps that are read again, and what of them."""

import subprocess
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from django.utils.timezone import now
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from agents.steps.sweeper import read_sources
from knowledge import ingestion
from knowledge.errors import Unreadable
from knowledge.ingestion import schedule
from knowledge.models import Document, FetchedPage, Ingest, Item, Receipt, Source
from knowledge.web.git_repository import Repository, check_address, fetch_commit, head

pytestmark = pytest.mark.django_db

IDENTITY = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
BODY = "# {0}\n\nThe {0} is painted red every spring by the harbour master and her crew.\n"


def git(folder: Path, *words: str) -> str:
    command = ["git", *IDENTITY, *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, **files: str | None) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if text is None else path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "harbour"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "link.md").symlink_to("/etc/passwd")
    (folder / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch /tmp/hooked\n")
    commit(
        folder,
        **{"docs__pier.md": BODY.format("pier"), "docs__boat.md": BODY.format("boat")},
        **{"docs__mast.rst": "Mast\n====\n\n.. include:: /notes/paint.txt\n"},
        **{"notes__paint.txt": "The mast is green.\n", "pic__a.png": "x", "other__x.md": "# Other"},
    )
    return folder


def read(source: Source, *, is_whole: bool = False) -> Ingest:
    job = schedule.plan_run(source, is_whole=is_whole)
    assert job is not None
    ingestion.run(job.pk)
    job.refresh_from_db()
    return job


def changes(job: Ingest) -> dict[str, int]:
    names = ("new", "changed", "unchanged", "removed")
    return {name: job.report[name] for name in names if job.report[name]}


def test_repository_changed_twice_is_read_by_what_changed(repository: Path) -> None:
    source = schedule.add("docs", str(repository), folder="docs", is_local=True)
    first = read(source)
    assert changes(first) == {"new": 3}
    mast = Document.objects.get(origin="harbour/docs/mast.rst")
    assert "The mast is green." in mast.content
    assert mast.edition == git(repository, "rev-parse", "HEAD")[:10]

    assert changes(read(source)) == {"unchanged": 3}
    commit(repository, **{"docs__pier.md": BODY.format("pier") + "\nIt is long.\n"})
    second = read(source)
    assert changes(second) == {"changed": 1, "unchanged": 2}
    assert Document.objects.get(origin="harbour/docs/pier.md").version == 2

    commit(repository, **{"docs__boat.md": None, "notes__paint.txt": "The mast is blue.\n"})
    third = read(source)
    assert changes(third) == {"changed": 1, "unchanged": 1, "removed": 1}
    assert "The mast is blue." in Document.objects.get(origin="harbour/docs/mast.rst").content
    assert [each["title"] for each in Receipt.objects.get().documents] == ["boat"]
    assert [job.pk for job in source.runs.all()][:2] == [third.pk, second.pk]


def test_patterns_choose_files_and_links_are_never_followed(repository: Path) -> None:
    source = schedule.add("docs", str(repository), patterns=["*.md"], is_local=True)
    assert changes(read(source)) == {"new": 2}  # of the third there is too little
    assert not Document.objects.filter(origin__endswith="link.md").exists()
    assert not Path("/tmp/hooked").exists()  # noqa: S108  what the hook would have made


def test_repository_that_is_gone_leaves_its_documents(repository: Path, tmp_path: Path) -> None:
    source = schedule.add("docs", str(repository), is_local=True)
    read(source)
    repository.rename(tmp_path / "moved")
    failed = read(source)
    assert failed.status == Ingest.Status.FAILED
    assert "git failed: fatal:" in failed.error
    assert Document.objects.count() == 4


def test_source_is_read_when_it_is_due_and_never_twice_at_once(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[object] = []
    monkeypatch.setattr("agents.steps.sweeper.jobs.enqueue", rung.append)
    source = schedule.add("docs", str(repository), every=timedelta(hours=6), is_local=True)
    assert read_sources() == 1
    assert read_sources() == 0  # one is open
    assert schedule.plan_run(source) is None
    (job,) = source.runs.all()
    assert rung == [job]
    ingestion.run(job.pk)
    assert read_sources() == 0  # not due
    source.refresh_from_db()
    assert timedelta(hours=5) < source.due - now() < timedelta(hours=7)
    Source.objects.update(due=now(), paused=True)
    assert read_sources() == 0
    Source.objects.update(paused=False)
    assert read_sources() == 1


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/srv/docs.git", "only be named at the command line"),
        ("file:///srv/docs.git", "only be named at the command line"),
        ("git@example.org:docs.git", "only be named at the command line"),
        ("ext::sh -c touch% /tmp/x", "only be named at the command line"),
        ("http://example.org/docs.git", "read over https"),
        ("https://ann:secret@example.org/docs.git", "user name or password"),
        ("https://example.org:22/docs.git", "not fetched from port 22"),
        ("--upload-pack=touch", "only be named at the command line"),
    ],
)
def test_address_that_may_not_be_read_is_refused(address: str, reason: str) -> None:
    with pytest.raises(schedule.InvalidSource, match=reason):
        schedule.add("docs", address)
    assert not Source.objects.exists()


def test_private_hosts_and_other_protocols_are_never_asked(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no public address"):
        head(Repository("https://127.0.0.1/docs.git"))
    with pytest.raises(Unreadable, match="git failed: fatal: transport 'ext' not allowed"):
        head(Repository("ext::touch /tmp/x", is_local=True))
    with pytest.raises(Unreadable, match="no address of a repository"):
        check_address("--upload-pack=touch", is_local=True)


def test_repository_that_is_too_large_is_refused(repository: Path, settings: Settings) -> None:
    commit(repository, **{"big.md": Random(1).randbytes(50_000).hex()})  # noqa: S311
    settings.GIT_MAX_BYTES = 4096
    with pytest.raises(Unreadable, match=r"larger than 4,096 bytes \(GIT_MAX_BYTES\)"):
        fetch_commit(Repository(f"file://{repository}", is_local=True), "main")


def test_page_of_a_known_host_is_what_a_citation_names() -> None:
    known = Repository("https://github.com/harbour/docs.git")
    assert known.page("a b.md", "main") == "https://github.com/harbour/docs/blob/main/a%20b.md"
    assert known.root == "github.com/harbour/docs"
    assert Repository("https://git.example.org/docs", "v2").page("a.md", "v2") == ""
    assert Repository("https://git.example.org/docs", "v2").root == "git.example.org/docs@v2"


class Site:
    """A site with a sitemap, whose server knows what has changed."""

    def __init__(self, server: HTTPServer) -> None:
        self.server, self.asked = server, list[tuple[str, int]]()
        self.pages = dict.fromkeys(("pier", "boat", "mast"), "1")  # name → version
        self.lastmods: dict[str, str] = {}
        server.expect_request("/sitemap.xml").respond_with_handler(self.sitemap)
        for name in self.pages:
            server.expect_request(f"/{name}").respond_with_handler(self.page)

    def sitemap(self, _: Request) -> Response:
        urls = "".join(
            f"<url><loc>{self.server.url_for(f'/{name}')}</loc>"
            f"<lastmod>{self.lastmods[name]}</lastmod></url>"
            if name in self.lastmods
            else f"<url><loc>{self.server.url_for(f'/{name}')}</loc></url>"
            for name in self.pages
        )
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        return Response(f'<urlset xmlns="{space}">{urls}</urlset>', content_type="text/xml")

    def page(self, request: Request) -> Response:
        name = request.path[1:]
        etag = f'"{name}-{self.pages[name]}"'
        status = 304 if request.headers.get("If-None-Match") == etag else 200
        self.asked.append((name, status))
        text = f"<h1>{name}</h1><p>{BODY.format(name)} Version {self.pages[name]}.</p>"
        body = "" if status == 304 else text
        return Response(body, status, {"ETag": etag}, content_type="text/html")


@pytest.fixture
def site(httpserver: HTTPServer, settings: Settings) -> Site:
    settings.FETCH_PRIVATE_HOSTS = [f"localhost:{httpserver.port}"]
    return Site(httpserver)


def test_sitemap_is_read_by_what_changed(site: Site) -> None:
    site.lastmods = {"mast": "2026-03-01"}
    source = schedule.add("docs", site.server.url_for("/sitemap.xml"))
    assert source.kind == Source.Kind.SITEMAP
    assert changes(read(source)) == {"new": 3}
    assert sorted(site.asked) == [("boat", 200), ("mast", 200), ("pier", 200)]

    site.asked.clear()
    site.pages["pier"] = "2"
    assert changes(read(source)) == {"changed": 1, "unchanged": 2}
    assert sorted(site.asked) == [("boat", 304), ("pier", 200)]  # the sitemap vouches for the mast

    site.asked.clear()
    site.lastmods["mast"] = "2026-04-01"
    del site.pages["boat"]
    assert changes(read(source)) == {"unchanged": 2, "removed": 1}
    assert sorted(site.asked) == [("mast", 304), ("pier", 304)]
    assert FetchedPage.objects.count() == 2
    assert Receipt.objects.get().documents[0]["title"] == "boat"

    site.asked.clear()
    assert changes(read(source, is_whole=True)) == {"unchanged": 2}
    assert sorted(site.asked) == [("mast", 200), ("pier", 200)]


def test_page_whose_document_was_deleted_is_fetched_again(site: Site) -> None:
    source = schedule.add("docs", site.server.url_for("/sitemap.xml"))
    read(source)
    ingestion.delete(Document.objects.filter(title="pier"))
    assert changes(read(source)) == {"new": 1, "unchanged": 2}


def test_worker_that_dies_over_a_source_is_succeeded(repository: Path) -> None:
    source = schedule.add("docs", str(repository), folder="docs", is_local=True)
    job = schedule.plan_run(source)
    assert job is not None
    # Its lease has lapsed with nothing done but the listing begun.
    Ingest.objects.filter(pk=job.pk).update(
        status=Ingest.Status.RUNNING, lease_until=now() - timedelta(seconds=1), attempts=1
    )
    assert list(ingestion.waiting()) == [job]
    ingestion.run(job.pk)
    job.refresh_from_db()
    assert (job.status, changes(job)) == (Ingest.Status.DONE, {"new": 3})
    assert job.items.filter(kind=Item.Kind.GIT).get().status == Item.Status.LISTED
