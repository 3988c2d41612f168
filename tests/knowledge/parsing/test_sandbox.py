"""Reading: whatever a file does to the process that parses it, there is a reason and it goes on."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from knowledge.errors import Unreadable
from knowledge.parsing import Limits, Page
from knowledge.parsing.parsed_page import MEGABYTE
from knowledge.preparation import prepare
from knowledge.sandbox import reader as sandbox
from knowledge.sandbox.child import peak_memory
from knowledge.sandbox.reader import ParserUnavailable, Reader
from tests.knowledge.crafted import (
    HEAD,
    docx,
    packed_pdf,
    paragraph,
    pdf,
    pdf_bomb,
    pptx,
    shape,
    zipped,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def reader() -> Iterator[Reader]:
    with Reader() as made:
        yield made


@pytest.fixture
def misbehaving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.setattr(sandbox, "COMMAND", "tests.knowledge.misbehaving")
    with Reader(Limits(seconds=5, max_expanded_bytes=50_000)) as made:
        yield made


@pytest.fixture(scope="module")
def limited() -> Iterator[Reader]:
    """A reader for all hostile files of the module: what one does to it the next one would meet."""
    with Reader(Limits(memory_mb=256, max_expanded_bytes=50_000_000)) as made:
        yield made


def child_of(reader: Reader) -> int:
    assert reader.child is not None
    return reader.child.process.pid


def refused(reader: Reader, name: str, body: bytes) -> str:
    with pytest.raises(Unreadable) as caught:
        reader.read(name, body)
    return str(caught.value)


def test_pages_come_back_whole_with_their_warnings(reader: Reader) -> None:
    body = b"---\ntitle: Lamps\nlast_updated: 2026-03-04\n---\nThey shine."
    (page,), notes = reader.read("a.md", body)
    assert (page.title, page.content) == ("Lamps", "They shine.")
    assert str(page.last_updated) == "2026-03-04"
    assert notes == []
    (deck,), _ = reader.read("a.pptx", pptx([shape("One"), shape("Two")]))
    assert deck.starts == [(0, 1), (4, 2)]
    _, notes = reader.read("a.md", b"They shine.")
    assert notes == ["no front matter"]


def test_one_child_serves_many_files_also_after_a_refusal(reader: Reader) -> None:
    reader.read("a.txt", b"one")
    first = child_of(reader)
    assert refused(reader, "a.txt", b"") == "it is empty"
    reader.read("a.txt", b"two")
    assert child_of(reader) == first


def test_the_child_knows_nothing_of_its_parent(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "oil")
    reader.read("a.txt", b"one")
    about = Path(f"/proc/{child_of(reader)}")
    assert b"SECRET" not in (about / "environ").read_bytes()
    opened = {os.readlink(each).partition(":")[0] for each in (about / "fd").iterdir()}
    assert opened == {"pipe", os.devnull}


def test_a_child_killed_while_it_waits_is_replaced(reader: Reader) -> None:
    reader.read("a.txt", b"one")
    os.kill(child_of(reader), signal.SIGKILL)
    assert reader.child is not None
    reader.child.process.wait()
    assert reader.read("a.txt", b"two")[0][0].content == "two"


def test_the_child_dies_with_its_parent() -> None:
    code = (
        "import os; from knowledge.parsing import Limits\n"
        "from knowledge.sandbox.reader import Reader\n"
        "reader = Reader(Limits()); reader.read('a.txt', b'x')\n"
        "print(reader.child.process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False
    )
    child = int(completed.stdout)
    for _ in range(500):
        if not alive(child):
            break
        time.sleep(0.02)
    assert not alive(child)


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("crash", "reading it, the parser died of SIGSEGV"),
        ("exit", "reading it, the parser ended with status 3"),
        ("busy", "reading it took more than 5 seconds of the processor (PARSE_SECONDS)"),
        ("long", "the parser says more than it may"),
        ("garbage", "the parser's answer is none"),
        ("strange", "the parser's answer is none"),
        ("failed", "it is damaged, or unlike any file known here (KeyError)"),
    ],
)
def test_whatever_the_child_does_there_is_a_reason_and_a_new_child(
    misbehaving: Reader, word: str, reason: str
) -> None:
    assert misbehaving.read("fine", b"")[0][0].content == "Words."
    first = child_of(misbehaving)
    assert refused(misbehaving, word, b"") == reason
    assert misbehaving.read("fine", b"")[0][0].content == "Words."
    assert child_of(misbehaving) != first


def test_what_its_parent_has_in_memory_is_no_want_of_the_child(
    misbehaving: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, ballast = subprocess.Popen, []

    def start_when_larger(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        before = peak_memory()
        while peak_memory() <= before or peak_memory() < 600 * MEGABYTE:
            ballast.append(b"x" * (16 * MEGABYTE))
        return start(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", start_when_larger)
    assert refused(misbehaving, "crash", b"") == "reading it, the parser died of SIGSEGV"


def test_a_child_that_neither_works_nor_answers_is_given_up_by_the_clock(
    misbehaving: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "PATIENCE", 1)
    reason = "reading it did not end within 5 seconds, 1 times PARSE_SECONDS"
    assert refused(misbehaving, "hang", b"") == reason
    assert misbehaving.child is None


def test_a_parser_that_does_not_start_is_no_fault_of_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "COMMAND", "tests.knowledge.there_is_no_such_module")
    with Reader() as reader, pytest.raises(ParserUnavailable, match="does not start"):
        reader.read("a.txt", b"one")


ENTITIES = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
HOSTILE = [
    ("bomb.docx", docx(paragraph("x"), more={"word/media/a": b"\0" * 60_000_000}), "EXPANDED"),
    ("bomb.pptx", zipped({"ppt/presentation.xml": b" " * 60_000_000}), "PARSE_MAX_EXPANDED_BYTES"),
    ("entities.docx", docx(paragraph("&b;"), head=HEAD + ENTITIES), "declares XML entities"),
    ("pages.pdf", pdf([[("F", 9, 50, 700, "x")]], count=100_000), "PARSE_MAX_PAGES"),
    ("deep.html", b"<div>" * 5_000 + b"x", "nested too deeply"),
    ("deep.json", b"[" * 1_000_000, "nested too deeply"),
    ("deep.docx", docx("<w:smartTag>" * 9999 + "</w:smartTag>" * 9999), "nested too deeply"),
    (
        "runs.docx",
        docx("<w:p>" + "<w:r><w:t>a</w:t></w:r>" * 900_000 + "</w:p>"),
        "PARSE_MEMORY_MB",
    ),
    ("bomb.pdf", pdf_bomb(60), "unpacked it is larger than 50,000,000 bytes"),
    ("twice.pdf", packed_pdf(60, times=2), "unpacked it is larger than 50,000,000 bytes"),
    ("blank.pdf", packed_pdf(10), "it has no text, only pictures of pages"),
]


@pytest.mark.parametrize(("name", "body", "reason"), HOSTILE, ids=[each[0] for each in HOSTILE])
def test_hostile_files_are_refused_within_the_limits(
    limited: Reader, name: str, body: bytes, reason: str
) -> None:
    assert reason in refused(limited, name, body)
    assert limited.read("a.txt", b"and on")[0][0].content == "and on"


def test_a_huge_line_is_read(reader: Reader) -> None:
    (page,), _ = reader.read("a.txt", b"word " * 400_000)
    assert len(page.content) == 5 * 400_000 - 1


def test_more_text_than_the_limit_is_refused() -> None:
    with Reader(Limits(max_expanded_bytes=1000)) as reader:
        assert "more than 1,000 bytes of text" in refused(reader, "a.txt", b"word " * 1000)


def test_what_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    # However long a busy machine takes to give it that second.
    monkeypatch.setattr("knowledge.sandbox.reader.PATIENCE", 100)
    with Reader(Limits(seconds=1)) as reader:
        assert refused(reader, "a.html", b"<div>" * 200_000) == (
            "reading it took more than 1 seconds of the processor (PARSE_SECONDS)"
        )


def test_what_waits_for_its_turn_on_a_busy_machine_is_read() -> None:
    with Reader(Limits(seconds=1)) as reader:
        reader.read("a.txt", b"one")
        child = child_of(reader)
        os.kill(child, signal.SIGSTOP)
        # Longer than it may work, and shorter than it may take.
        waking = Timer(1.5, os.kill, (child, signal.SIGCONT))
        waking.start()
        assert reader.read("a.txt", b"two")[0][0].content == "two"
        waking.join()


def test_a_page_is_prepared_as_it_would_be_here_and_keeps_its_text(reader: Reader) -> None:
    text = "# Ferry\n\nThe ferry leaves at nine.\n\n## Cabins\n\n" + "There are cabins. " * 200
    page = Page(text, last_updated=date(2026, 11, 1), starts=[(0, 1), (4, 2)])
    assert reader.prepare(page, "ship/ferry.md", ["ship"]) == prepare(
        page, "ship/ferry.md", ["ship"]
    )


@pytest.mark.parametrize("text", ["_" * 100_000, ("|a" * 20_000 + "|\n") * 5])
def test_cutting_a_page_ends_at_the_limit(text: str) -> None:
    with Reader(Limits(seconds=1)) as reader:
        reader.prepare(Page("The pier is red. The boat is blue."), "a.txt", [])
        with pytest.raises(Unreadable, match=r"more than 1 seconds of the processor"):
            reader.prepare(Page(text), "a.txt", [])


@pytest.mark.parametrize("text", ["." * 100_000, "A. " * 30_000])
def test_a_text_of_marks_alone_is_cut_in_a_time_that_grows_with_it(text: str) -> None:
    with Reader(Limits(seconds=10)) as reader:
        assert reader.prepare(Page(text), "a.txt", []).parts
