"""What strangers wrote is shown without doing anything."""

import pytest

from knowledge.safe_html import html


@pytest.mark.parametrize(
    "written",
    [
        "<script>alert(1)</script>",
        '<img src="https://example.org/x.png" onerror="alert(1)">',
        '<a href="https://example.org" onclick="alert(1)">x</a>',
        "<iframe src=https://example.org></iframe>",
        "<style>body { display: none }</style>",
    ],
)
def test_html_in_markdown_comes_out_as_words(written: str) -> None:
    shown = html(f"before {written} after")

    assert shown.startswith("<p>before &lt;")
    assert shown.count("<") == 2


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html;base64,PHNjcmlwdD4=",
        "vbscript:x",
        "file:///etc/passwd",
        "/admin/logout/",
        "//example.org",
        "ftp://example.org",
        "#C1",
    ],
)
def test_only_web_and_mail_addresses_become_links(address: str) -> None:
    assert "href" not in html(f"[press]({address}) [press](<{address}>) <{address}>")


@pytest.mark.parametrize("address", ["https://example.org/", "http://example.org/", "mailto:a@b.c"])
def test_a_link_says_that_it_is_not_ours(address: str) -> None:
    shown = html(f"[there]({address})")

    assert f'href="{address}"' in shown
    assert 'rel="noopener noreferrer nofollow ugc"' in shown


def test_an_image_is_never_fetched_and_its_words_stay() -> None:
    shown = html('![a *drawn* map <b>](https://example.org/map.png "title")')

    assert shown == "<p>a drawn map &lt;b&gt;</p>\n"


def test_tables_lists_and_code_keep_their_shape() -> None:
    shown = html("| a | b |\n| --- | :-: |\n| 1 | 2 |\n\n3. x\n\n```py\nx < 1\n```\n")

    assert "<td>1</td>" in shown
    assert '<ol start="3">' in shown
    assert "<pre><code>x &lt; 1\n</code></pre>" in shown
    assert "style=" not in shown
