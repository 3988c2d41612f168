"""Markup: what HTML says survives as Markdown, tables and code above all."""

import pytest

from knowledge.parsing.dispatch import parse
from knowledge.parsing.tables import Cell, expand_spans, sentences


def markdown(html: str) -> str:
    (page,) = parse("a.html", html.encode())
    return page.content


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href='https://example.com/x'>there</a>", "[there](https://example.com/x)"),
        ("<a href='/x'>there</a>", "there"),
        ("<h2>Lamps<a href='#lamps'>¶</a></h2>", "## Lamps"),
        ("See <img src='x.png' alt='a chart'>", "See a chart"),
        ("use &lt;b&gt; and a_b *c*", "use <b> and a_b *c*"),
        ("10<sup>6</sup> on the 1<sup>st</sup>", "10^6 on the 1st"),
        ("<dl><dt>Lamp</dt><dd>Shines</dd></dl>", "- Lamp:\n  Shines"),
        ("<pre><code class='language-py'>a\n  b</code></pre>", "```py\na\n  b\n```"),
        ("<pre><div>a</div><div>b</div></pre>", "```\na\nb\n```"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"),
    ],
)
def test_elements_become_markdown(html: str, expected: str) -> None:
    assert markdown(html) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("<tr><th>A<th>B</tr><tr><td>1<td>2</tr>", ["- A: 1; B: 2"]),
        ("<tr><th colspan=2>A<th>B</tr><tr><td>1<td>2<td>3</tr>", ["- A: 1; A: 2; B: 3"]),
        (
            "<tr><th>A<th>B</tr><tr><td rowspan=2>1<td>2</tr><tr><td>3</tr>",
            ["- A: 1; B: 2", "- A: 1; B: 3"],
        ),
        ("<tr><th>A<th>B</tr><tr><td colspan=2>All</tr>", ["- All"]),
        (
            "<thead><tr><td>A<td>B</tr><tr><td>a<td>b</tr></thead><tr><td>1<td>2</tr>",
            ["- A a: 1; B b: 2"],
        ),
        ("<tr><th>Name<td>Lamp</tr><tr><th>Price<td>3</tr>", ["- Name: Lamp", "- Price: 3"]),
        ("<tr><td>Name<td>Lamp</tr><tr><td>Price<td>3</tr>", ["- Name; Lamp", "- Price; 3"]),
        ("<tr><td>A<td>B<td>C</tr><tr><td>1<td>2<td>3</tr>", ["- A: 1; B: 2; C: 3"]),
        ("<tr><th>A<th>B</tr><tr><td>1<td>2<td>3</tr>", ["- A: 1; B: 2; 3"]),
        ("<tr><th>A<th>B</tr><tr><td><ul><li>x<li>y</ul><td>2</tr>", ["- A: x, y; B: 2"]),
    ],
)
def test_rows_of_tables_make_sense_alone(rows: str, expected: list[str]) -> None:
    assert markdown(f"<table>{rows}</table>").splitlines() == expected


def test_tables_within_tables_lose_nothing() -> None:
    inner = "<table><tr><td>A1<td>B1</tr><tr><td>C1<td>D1</tr></table>"
    text = markdown(f"<table><tr><td>A<td>B</tr><tr><td>{inner}<td>2</tr></table>")
    assert all(word in text for word in ("A", "B", "A1", "B1", "C1", "D1", "2"))


def test_tables_that_only_lay_out_a_page_are_no_lists() -> None:
    text = markdown("<table><tr><td><h2>Head</h2><p>Left</p><td><pre>code</pre></tr></table>")
    assert text == "## Head\n\nLeft\n\n```\ncode\n```"


def test_no_span_makes_a_table_wider_than_tables_are() -> None:
    table = expand_spans([[Cell("x", rows=10**6, columns=10**6)], [Cell("y")]])
    assert [len(row) for row in table] == [256, 256]
    assert sentences([[Cell("x", columns=10**6)], [Cell("y")]]) == ["x", "y"]


def test_a_form_around_the_page_is_the_page_and_one_within_is_not() -> None:
    whole = b"<body><form><h1>Lamps</h1><p>They shine all night.</p></form></body>"
    inner = b"<body><p>They shine all night.</p><form>Your name</form></body>"
    assert "shine" in parse("a.html", whole)[0].content
    assert parse("a.html", inner)[0].content == "They shine all night."


def test_remarks_beside_the_text_stay_and_lists_of_links_go() -> None:
    body = (
        b"<main><p>Lamps.</p><aside><p>Mind the oil.</p></aside>"
        b"<aside><a href='/a'>One</a> <a href='/b'>Two</a></aside></main>"
    )
    assert parse("a.html", body)[0].content == "Lamps.\n\nMind the oil."


def test_several_articles_are_all_read() -> None:
    body = b"<body><article>One lamp.</article><article>Two lamps.</article></body>"
    assert parse("a.html", body)[0].content == "One lamp.\n\nTwo lamps."
