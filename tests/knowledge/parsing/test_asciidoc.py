"""AsciiDoc: what its pages come to."""

from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from knowledge.errors import Unreadable
from knowledge.parsing import Page
from knowledge.parsing.dispatch import parse

TEXT = """\
= The Pier
Ann Bo <ann@example.org>
v2.1, 2026-03-04
:product: Harbour
:description: How to paint it.
:toc:

// a comment
{product} has a *red* pier, see <<paint>>, xref:boat.adoc#hull[the hull] and
https://example.org/docs[the docs^]. Press kbd:[F1] in menu:File[Open].

[#paint]
== Painting

.Colours
[cols="1,2",options="header"]
|===
|Part |Colour

|Pier
|red
and blue
|Mast |green
|===

WARNING: Be careful.

NOTE: It dries.

[source,sh]
----
paint --all # *now*
== not a heading
----

////
hidden
////

* one
** deeper
. first
. second

Brush:: to paint with
image::pier.png[A pier]
include::missing.adoc[]
"""


def page(text: str) -> Page:
    (only,) = parse("a.adoc", text.encode())
    return only


@pytest.fixture(scope="module")
def pier() -> Page:
    return page(TEXT)


def test_a_page_says_what_it_is(pier: Page) -> None:
    assert (pier.title, pier.edition, pier.last_updated) == ("The Pier", "2.1", date(2026, 3, 4))
    assert pier.description == "How to paint it."
    assert pier.warnings == ["left out, as they are not beside it: 1 included files"]


@pytest.mark.parametrize(
    "part",
    [
        "# The Pier\n\nHarbour has a **red** pier, see paint, the hull and\n"
        "[the docs](https://example.org/docs). Press F1 in File > Open.\n\n## Painting\n\n",
        "**Colours**\n\n- Part: Pier; Colour: red and blue\n- Part: Mast; Colour: green\n\n",
        "Warning: Be careful.\n\nIt dries.\n\n",
        "````sh\npaint --all # *now*\n== not a heading\n````",
        "- one\n   - deeper\n1. first\n1. second",
        "- Brush:\n  to paint with\nA pier",
    ],
)
def test_what_a_reader_would_see_is_kept(pier: Page, part: str) -> None:
    assert part in pier.content


def test_comments_authors_and_attributes_are_left_out(pier: Page) -> None:
    assert not any(word in pier.content for word in ("hidden", "comment", "Ann Bo", ":toc:"))


@given(st.lists(st.sampled_from(TEXT.split("\n")), max_size=30))
@example(["|===", "|a |b", "----"])
@settings(max_examples=60, deadline=None)
def test_whatever_order_lines_are_in_they_are_read_or_refused(lines: list[str]) -> None:
    try:
        assert page("\n".join(lines)).content
    except Unreadable:
        return
