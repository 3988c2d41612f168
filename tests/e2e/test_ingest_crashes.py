"""Ingest workers die at any moment; what is stored is what an undisturbed run stores."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.e2e.conftest import CHECKOUT, Docent

PAGES, MOMENTS = 61, 3
CHANCE = random.SystemRandom()
PATIENCE_SECONDS = 300.0
SUBJECTS = ("crane", "ferry", "lighthouse", "foghorn", "harbour", "keeper", "pier", "beacon")

# What two runs must have in common, by everything but ids and times.
DOCUMENTS = """
SELECT source, origin, title, crumbs, description, content, summary, keypoints, keywords, version,
    language, config, sha1
FROM knowledge_document WHERE collection_id = %s ORDER BY source
"""
CHUNKS = """
SELECT source, section.number, section.path, chunk.number, text, chunk.keywords, page, chunk.sha1,
    tokens
FROM knowledge_chunk AS chunk JOIN knowledge_section AS section ON section.id = section_id
    JOIN knowledge_document AS document ON document.id = chunk.document_id
WHERE collection_id = %s ORDER BY source, chunk.number
"""
POSTINGS = """
SELECT source, chunk.number, term, impact
FROM knowledge_posting JOIN knowledge_chunk AS chunk ON chunk.id = chunk_id
    JOIN knowledge_document AS document ON document.id = chunk.document_id
WHERE collection_id = %s ORDER BY source, chunk.number, term
"""
OTHERS = """
SELECT (SELECT count(*) FROM knowledge_version JOIN knowledge_document AS document
        ON document.id = document_id WHERE collection_id = %(collection)s),
    (SELECT count(*) FROM knowledge_copy WHERE collection_id = %(collection)s),
    (SELECT count(*) FROM knowledge_chunkvector WHERE collection_id = %(collection)s),
    (SELECT count(*) FROM knowledge_sectionvector WHERE collection_id = %(collection)s),
    (SELECT count(*) FROM knowledge_documentvector WHERE collection_id = %(collection)s),
    (SELECT count(*) FROM knowledge_encoded)
"""
# How far the vectors of the same chunk lie apart; batches of other sizes round otherwise.
APART = """
SELECT max(one.embedding <=> two.embedding)
FROM knowledge_chunkvector AS one JOIN knowledge_chunk AS first ON first.id = one.chunk_id
    JOIN knowledge_document AS mine ON mine.id = first.document_id,
    knowledge_chunkvector AS two JOIN knowledge_chunk AS second ON second.id = two.chunk_id
    JOIN knowledge_document AS other ON other.id = second.document_id
WHERE mine.collection_id = %s AND other.collection_id = %s
    AND mine.source = other.source AND first.number = second.number
"""

Query = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def query(docent: Docent) -> Iterator[Query]:
    """Ask the database that Docent runs on."""
    with psycopg.connect(docent.environment["DATABASE_URL"], autocommit=True) as connection:
        yield lambda sql, *values: connection.execute(sql, values or None).fetchall()


@pytest.fixture(scope="module")
def island(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pages of many lengths, of which two are copies and one cannot be read."""
    folder = tmp_path_factory.mktemp("crashes") / "island"
    folder.mkdir()
    for number in range(PAGES):
        sections = [
            f"## {subject.title()} {number}\n\nThe {subject} of bay {number} was built by "
            f"islander {number + place} and is painted anew every {place + 2} years."
            for place, subject in enumerate(SUBJECTS[: 1 + number % len(SUBJECTS)])
        ]
        text = "\n\n".join([f"# Bay {number}", *sections])
        (folder / f"bay-{number:03}.md").write_text(text)
    for name in ("bay-010.md", "bay-020.md"):
        (folder / name).write_text((folder / "bay-000.md").read_text())
    (folder / "bay-030.md").write_bytes(b"\0\1")
    # More chunks than are embedded at once.
    long = "\n\n".join(f"## Log {day}\n\n" + f"Day {day}: calm sea. " * 15 for day in range(90))
    (folder / f"bay-{PAGES - 1:03}.md").write_text(long)
    return folder


def rows(query: Query, name: str) -> list[list[tuple[Any, ...]]]:
    """Return all rows of a collection that two runs must have in common."""
    collection = id_of(query, name)
    counts = OTHERS.replace("%(collection)s", str(collection))
    return [*(query(sql, collection) for sql in (DOCUMENTS, CHUNKS, POSTINGS)), query(counts)]


def id_of(query: Query, name: str) -> int:
    return int(query("SELECT id FROM knowledge_collection WHERE name = %s", name)[0][0])


def jobs_of(query: Query, name: str) -> list[tuple[Any, ...]]:
    """Return status and worker of a collection's jobs, and how many items each finished."""
    return query(
        "SELECT status, worker, (SELECT count(*) FROM knowledge_item "
        "WHERE ingest_id = ingest.id AND status <> 'waiting') FROM knowledge_ingest AS ingest "
        "JOIN knowledge_collection AS place ON place.id = collection_id WHERE place.name = %s "
        "ORDER BY ingest.created",
        name,
    )


def job_of(query: Query, name: str) -> tuple[Any, ...]:
    """Return status and worker of a collection's only job, and how many items it finished."""
    jobs = jobs_of(query, name)
    assert len(jobs) <= 1, "the same thing asked for again made another job"
    return jobs[0] if jobs else ("", "", 0)


def kill_at(query: Query, name: str, moment: int) -> bool:
    """Kill whoever works on the job once so many items are finished; False when it has ended."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        status, worker, finished = job_of(query, name)
        if status not in {"", "queued", "running"}:
            return False
        pid = int(worker.split("/")[2]) if status == "running" else 0
        if finished >= moment and pid and Path(f"/proc/{pid}").exists():
            os.kill(pid, signal.SIGKILL)
            return True
        time.sleep(0.02)
    pytest.fail(f"no worker got as far as item {moment}: {job_of(query, name)}")


def await_end(query: Query, name: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if job_of(query, name)[0] not in {"", "queued", "running"}:
            return
        time.sleep(0.1)
    pytest.fail(f"the job never ended: {job_of(query, name)}")


def assert_the_same(query: Query, name: str, calm: str) -> None:
    assert {status for status, _, _ in jobs_of(query, name)} == {"done"}
    assert rows(query, name) == rows(query, calm)
    assert query(APART, id_of(query, name), id_of(query, calm))[0][0] < 0.001


@pytest.fixture(scope="module")
def calm(docent: Docent, island: Path) -> str:
    """The collection of an undisturbed run."""
    done = docent.manage("ingest", str(island), "--collection", "calm")
    assert done.returncode == 0, done.stderr
    return "calm"


def test_killed_workers_leave_the_rows_of_an_undisturbed_run(
    docent: Docent, query: Query, island: Path, calm: str
) -> None:
    queued = docent.manage("ingest", str(island), "--collection", "stormy", "--background")
    assert queued.returncode == 0, queued.stderr
    moments = sorted(CHANCE.sample(range(PAGES - 10), MOMENTS))
    killed = [kill_at(query, "stormy", moment) for moment in moments]
    await_end(query, "stormy")
    assert len(jobs_of(query, "stormy")) == 1
    assert killed[0], f"the job ended before any of {moments}"
    assert_the_same(query, "stormy", calm)


@pytest.mark.every_moment
def test_killed_command_is_gone_on_with_by_the_same_command(
    docent: Docent, query: Query, island: Path, calm: str
) -> None:
    words = ["ingest", str(island), "--collection", "restless"]
    with subprocess.Popen(
        [sys.executable, "manage.py", *words], cwd=CHECKOUT, env=docent.environment
    ) as command:
        assert kill_at(query, "restless", CHANCE.randrange(PAGES - 20))
        command.kill()
    again = docent.manage(*words)
    assert again.returncode == 0, again.stderr
    assert_the_same(query, "restless", calm)
    first, *others = jobs_of(query, "restless")
    # There is another job only where a worker of Docent had gone on with the first, to its end.
    assert not others or first[1].split("/")[2] not in {
        str(command.pid),
        others[0][1].split("/")[2],
    }
