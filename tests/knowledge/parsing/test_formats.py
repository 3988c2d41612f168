"""Parsing: what each format yields, and what is refused with which reason."""

import json
from contextlib import suppress
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.errors import Unreadable
from knowledge.parsing import FORMATS, Page, is_readable
from knowledge.parsing.dispatch import parse


def only(name: str, body: bytes) -> Page:
    (page,) = parse(name, body)
    return page


def test_front_matter_describes_the_page() -> None:
    page = only(
        "a.md",
        b"---\ntitle: Booking\ndescription: How.\ntags: [x, y]\ncrumbs: A > B\nlang: DE\n"
        b"last_updated: 2026-03-04\naudience: guests\nversion: 2.1\n---\nText",
    )
    assert page.edition == "2.1"
    assert (page.title, page.description, page.keywords) == ("Booking", "How.", ["x", "y"])
    assert (page.crumbs, page.language, page.audience) == (["A", "B"], "de", "guests")
    assert (page.last_updated, page.content, page.warnings) == (date(2026, 3, 4), "Text", [])


def test_front_matter_may_be_toml() -> None:
    front = '+++\ntitle = "Backup"\ndate = 2024-03-05\ntags = ["files", "restore"]\n+++\n'
    (page,) = parse("page.md", f"{front}\nKeep a copy.".encode())
    assert (page.title, page.keywords, page.content) == (
        "Backup", ["files", "restore"], "Keep a copy.",
    )  # fmt: skip
    assert page.last_updated == date(2024, 3, 5)
    assert page.warnings == []
    (broken,) = parse("page.md", b"+++\ntitle = \n+++\nKeep a copy.")
    assert broken.warnings[0].startswith("front matter left out")
    assert broken.content == "Keep a copy."


def test_html_table_in_markdown_is_a_list_of_its_rows_unless_it_is_shown_as_code() -> None:
    table = "<table>\n<tr><th>Key</th><th>Does</th></tr>\n\n    <tr>\n        <td>`F1`</td>"
    table += "\n\n        <td>Help</td></tr>\n</table>"
    (page,) = parse("page.md", f"Keys:\n\n{table}\n\n```html\n{table}\n```\n".encode())
    assert "- Key: `F1`; Does: Help" in page.content
    assert page.content.count("<table>") == 1


def test_marks_of_templates_are_not_read() -> None:
    text = "See {{< toc >}} this <% if x %>page<% end %>, and `{{< toc >}}` in Hugo."
    (page,) = parse("page.md", text.encode())
    assert page.content == "See  this page, and `{{< toc >}}` in Hugo."


def test_page_without_front_matter_takes_its_title_from_the_first_heading() -> None:
    page = only("a.md", b"# Hello\n\nText")
    assert (page.title, page.warnings) == ("Hello", ["no front matter"])


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("## Trains by night\n\nText", "Trains by night"),
        ("Trains\n======\n\nText", "Trains"),
        ("## Above\n\n# Trains #\n\nText", "Trains"),
        ("```sh\n# fetch the list first\napt-get update\n```\n\n## Use it\n\nText", "Use it"),
        ("> # Said by somebody\n\nText", ""),
    ],
)
def test_the_title_is_the_first_main_heading_else_the_first_and_never_a_comment_in_code(
    text: str, title: str
) -> None:
    assert only("a.md", text.encode()).title == title


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("title: [x", "line 3"),
        ("date: 2024-13-45", "month must be in 1..12"),
        ("- a\n- b", "no 'name: value' lines"),
        ("x: !!python/object:os.system y", "could not determine a constructor"),
    ],
)
def test_broken_front_matter_is_a_warning_and_the_text_goes_on(front: str, reason: str) -> None:
    page = only("a.md", f"---\n{front}\n---\nThe text.".encode())
    assert page.content == "The text."
    assert len(page.warnings) == 1
    assert page.warnings[0].startswith("front matter left out")
    assert reason in page.warnings[0]


def test_html_yields_its_main_part_as_markdown() -> None:
    page = only(
        "a.html",
        b"<html lang='en'><head><title>T</title><meta name='description' content='D'></head>"
        b"<body><nav>no</nav><article><h1>Head</h1><h2>Sub</h2><script>no()</script><!-- no -->"
        b"<p>See <a href='/x'>that</a>.</p><ul><li>one</li></ul><pre><code>a  = 1\n</code></pre>"
        b"<table><tr><th>A</th></tr><tr><td>1</td></tr></table></article></body></html>",
    )
    assert (page.title, page.description, page.language) == ("Head", "D", "en")
    assert page.content == ("# Head\n\n## Sub\n\nSee that.\n\n* one\n\n```\na  = 1\n```\n\n- A: 1")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Größe".encode("utf-8-sig"), "Größe"),
        ("Größe".encode("utf-16"), "Größe"),
        ("The ship’s café is open all day".encode("cp1252"), "The ship’s café is open all day"),
        ("Привет, как дела".encode("cp1251"), "Привет, как дела"),
        ("Привет, как дела".encode("koi8-r"), "Привет, как дела"),
        ("日本語のテキストです".encode("shift-jis"), "日本語のテキストです"),
        ("Plain words".encode("utf-16-le"), "Plain words"),
        ("Привет, как дела".encode("utf-16-be"), "Привет, как дела"),
    ],
)
def test_text_is_read_in_the_encoding_it_is_in(body: bytes, text: str) -> None:
    assert only("a.txt", body).content == text


def test_json_documents_keep_what_they_say_about_themselves() -> None:
    entries = [
        {"content": "One [x](y.md)", "title": "First", "source": "https://example.com/1"},
        {"content": "Two", "version": 3, "chunks": [], "colour": "red"},
    ]
    first, second = parse("a.json", json.dumps(entries).encode())
    assert (first.content, first.title, first.source) == (
        "One x",
        "First",
        "https://example.com/1",
    )
    assert (first.edition, second.edition) == ("", "3")
    assert second.warnings == ["unknown keys left out: colour"]


def test_lines_are_documents_known_by_their_ids() -> None:
    lines = [
        {"id": 7, "text": "Title: Lamps\n\nThey shine."},
        {"_id": "b", "title": "Ships", "content": "They sail.", "source": "https://example.com/b"},
    ]
    first, second = parse("a.jsonl", "\n\n".join(map(json.dumps, lines)).encode())
    assert (first.source, first.title, first.content) == ("7", "Lamps", "They shine.")
    assert (second.source, second.title) == ("https://example.com/b", "Ships")


def test_lines_that_cannot_be_read_are_named_and_the_others_go_on() -> None:
    page = only("a.jsonl", b'{"content": "a"}\n{"content": \n[1]\n')
    assert page.content == "a"
    assert [warning.partition(":")[0] for warning in page.warnings] == [
        "line 2 left out",
        "line 3 left out",
    ]


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("a.md", b"", "it is empty"),
        ("a.md", b" \n\t", "it is empty"),
        ("a.md", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "it is a binary file and not text"),
        ("a.md", b"%PDF-1.7 \x01\x02\x03\x04\x05", "it is a binary file and not text"),
        ("a.md", b"---\ntitle: x\n---\n<!-- nothing -->", "there is no text in it"),
        ("a.html", b"<html><body><script>x</script></body></html>", "there is no text in it"),
        ("a.html", b"<div>" * 20000 + b"x", "nested too deeply"),
        ("a.json", b'{"a": ', "broken JSON at line 1"),
        ("a.json", b"[" * 100000, "broken JSON"),
        ("a.json", b'{"title": "x"}', "document 1, content: Field required"),
        ("a.json", b'[{"content": "a"}, {"content": "b", "title": 5}]', "document 2, title"),
        ("a.json", b"[]", "there is no text in it"),
        ("a.jsonl", b'{"content": "a"', "line 1: broken JSON"),
        ("a.jsonl", b"{}", "line 1: not in the document structure: content: Field required"),
        ("a.docx", b"", "it is empty"),
        ("a.docx", b"x", "it is damaged"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and more", "protected by a password"),
        ("a.pptx", b"PK\x03\x04 and no more", "it is damaged"),
        ("a.pdf", b" ", "it is empty"),
        ("a.pdf", b"%PDF-1.7 and no more", "it is damaged, or no PDF"),
        ("a.exe", b"x", "its format is not known"),
        ("a.xlsx", b"x", "it is damaged"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    name: str, body: bytes, reason: str
) -> None:
    with pytest.raises(Unreadable, match=reason):
        parse(name, body)


def test_formats_are_told_by_the_end_of_the_name() -> None:
    assert is_readable("README.MD")
    assert not is_readable("md")
    assert not is_readable("archive.zip")


# The first file of a format waits for its parser to be imported.
@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from(sorted(FORMATS)))
def test_any_bytes_are_read_or_refused(body: bytes, suffix: str) -> None:
    with suppress(Unreadable):
        assert parse(f"a{suffix}", body)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.json", b'{"content": "Words.", "title": "A\\u0000B", "keywords": ["c\\u0000"]}'),
        ("a.md", b'---\ntitle: "A\\0B"\nkeywords: ["c\\0"]\n---\nWords.'),
    ],
)
def test_escapes_cannot_smuggle_in_what_the_database_refuses(name: str, body: bytes) -> None:
    (page,) = parse(name, body)
    assert page.title == "AB"
    assert page.keywords == ["c"]
