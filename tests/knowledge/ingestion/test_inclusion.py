"""Inclusion: what a page includes of the files beside it, and that it is of no others."""

from pathlib import Path

import pytest
from pytest_django import Settings

from knowledge.ingestion.inclusion import with_inclusions
from knowledge.ingestion.sources import File, as_known, find

CODE = "import os\n\nclass Queue:\n    def put(self):\n        pass\n\n    x = 1\n\ny = 2\n"
FILES = {
    "shared/note.rst": "Note one.\nNote two.\n",
    "shared/outer.rst": "Outer.\n\n.. include:: note.rst\n",
    "shared/loop.rst": ".. include:: loop.rst\n",
    "code/queue.py": CODE,
    "parts/a.adoc": "Before\n// tag::one[]\nOne\n// end::one[]\nAfter\n",
    ".env": "SECRET=1",
    "guide/conf.py": "import x\nrelease = '3.1.2'  # of all\nversion = x.short\n",
}


def included(path: str, text: str) -> str:
    read = {name: body.encode() for name, body in FILES.items()}.get
    return with_inclusions(path, text.encode(), read).decode()


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        (".. include:: ../shared/note.rst", "Note one.\nNote two."),
        (".. include:: /shared/outer.rst", "Outer.\n\nNote one.\nNote two."),
        ("   .. include:: ../shared/note.rst\n      :start-after: one", "   Note two."),
        (".. include:: ../shared/note.rst\n   :end-before: two", "Note one."),
        (".. include:: ../shared/note.rst\n   :start-line: 1", "Note two."),
        (
            ".. literalinclude:: ../code/queue.py\n   :language: python\n   :pyobject: Queue.put",
            ".. code-block:: python\n\n       def put(self):\n           pass",
        ),
        (
            ".. literalinclude:: ../code/queue.py\n   :lines: 1,9-",
            ".. code-block:: \n\n   import os\n   y = 2",
        ),
    ],
)
def test_an_included_file_stands_in_place_of_the_line(directive: str, expected: str) -> None:
    text = included("docs/page.rst", f"Title\n=====\n\n{directive}\n\nEnd.")
    assert expected in text
    assert "include::" not in text
    assert text.startswith("Title\n=====\n\n")


@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: ../../etc/passwd",
        ".. include:: /../etc/passwd",
        ".. include:: ../.env",
        ".. include:: missing.rst",
        ".. include:: ../shared/note.rst\n   :parser: other",
    ],
)
def test_what_may_not_be_read_stays_for_the_parser_to_leave_out(directive: str) -> None:
    assert included("docs/page.rst", directive) == directive


def test_what_includes_itself_ends() -> None:
    assert included("shared/loop.rst", FILES["shared/loop.rst"]).count("include::") == 1


def test_tagged_region_of_asciidoc() -> None:
    assert included("a.adoc", "X\ninclude::parts/a.adoc[tag=one]\nY") == "X\nOne\nY"
    assert included("a.adoc", "include::parts/a.adoc[]") == "Before\nOne\nAfter\n"


def test_release_of_the_project_is_read_where_it_is_a_text() -> None:
    assert included("guide/deep/page.rst", "Text.").endswith("\n.. |release| replace:: 3.1.2\n")
    assert included("other/page.rst", "Text.") == "Text."
    assert included("guide/page.md", "Text.") == "Text."


def test_links_lead_nowhere_outside_the_ingested_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "docs"
    root.mkdir()
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "own.txt").write_text("own")
    page = root / "page.rst"
    page.write_text(".. include:: link.txt\n.. include:: own.txt\n.. include:: ../secret.txt\n")
    text = File(page, "docs/page.rst").read().decode()
    assert "own" in text.replace("own.txt", "")
    assert "secret\n" not in text
    assert text.count("include::") == 2


def test_a_rule_says_as_what_files_of_other_names_are_read(
    tmp_path: Path, settings: Settings
) -> None:
    for name in ("a.qmd", "LICENSE", "b.xyz", "c.md"):
        (tmp_path / name).write_text("text")
    assert [file.path.name for file in find([tmp_path]).files] == ["c.md"]
    settings.INGEST_AS = {"*.qmd": ".md", "LICENSE": ".txt"}
    found = find([tmp_path])
    assert [file.path.name for file in found.files] == ["LICENSE", "a.qmd", "c.md"]
    assert found.ignored["unknown format"] == 1
    assert as_known("docs/LICENSE") == "docs/LICENSE.txt"
