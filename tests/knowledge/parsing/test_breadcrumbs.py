"""Trail: which crumbs a web page's own navigation yields."""

import pytest

from knowledge.parsing import Page
from knowledge.parsing.dispatch import parse

PAGE = "<title>Night trains | Ferries</title>{}<main><h1>Night trains</h1><p>They run.</p></main>"
STATED = '<script type="application/ld+json">{}</script>'


def read(navigation: str) -> Page:
    return parse("a.html", PAGE.format(navigation).encode())[0]


@pytest.mark.parametrize(
    "navigation",
    [
        "<nav aria-label='Breadcrumbs'><ol><li><a href=/>Home</a><svg><title>x</title></svg></li>"
        "<li>Guide</li><li>Travel</li><li>Night trains</li></ol></nav>",
        "<ul class=breadcrumb><li></li><li>Guide</li><li>&rsaquo; Travel</li></ul>",
        "<div class='crumbs breadcrumbs'><a>Start</a> &gt; <a>Guide</a> &gt; <a>Travel</a></div>",
        "<ul class=wy-breadcrumbs><li><a class=icon></a></li><li>Guide</li><li>Travel</li>"
        "<li class=wy-breadcrumbs-aside>Edit this page</li></ul>",
        "<ol class=breadcrumbs><li>Guide</li><li>Travel</li><li aria-current=page>Night</li></ol>",
        "<div itemscope itemtype='https://schema.org/BreadcrumbList'><a><b itemprop=name>Guide</b>"
        "</a><a><meta itemprop='name' content='Travel'></a></div>",
        STATED.format(
            '{"@type": "BreadcrumbList", "itemListElement": [{"position": 2, "name": "Travel"},'
            '{"position": "1", "item": {"name": "Guide"}}, {"position":3,"name":"Night trains"}]}'
        ),
        STATED.format(
            '[5, {"@type": 7}, {"@graph": [{"@type": ["WebPage"], "breadcrumb": {"@type":'
            '"BreadcrumbList", "itemListElement": [{"name": "Guide"}, {"name": "Travel"}]}}]}]'
        ),
    ],
)
def test_crumbs_are_the_pages_above_without_the_first_and_the_page_itself(navigation: str) -> None:
    page = read(navigation)
    assert page.crumbs == ["Guide", "Travel"]
    assert page.content == "# Night trains\n\nThey run."


def test_the_page_is_also_called_by_its_title_without_the_sites_name() -> None:
    body = "<title>Timetable - Ferries</title><ol class=breadcrumb><li>A<li>Timetable</ol><p>Text"
    assert parse("a.html", body.encode())[0].crumbs == ["A"]


@pytest.mark.parametrize(
    "navigation",
    [
        "",
        "<nav><a>Guide</a><a>Travel</a></nav>",
        "<ul class=breadcrumb><li>Home</li></ul>",
        STATED.format('{"@type": "BreadcrumbList", "itemListElement": "none"}'),
        STATED.format('{"@type": "BreadcrumbList", '),
        STATED.format('"BreadcrumbList' + "[" * 5000),
    ],
)
def test_without_a_trail_there_are_no_crumbs(navigation: str) -> None:
    assert read(navigation).crumbs == []


def test_crumbs_are_few_and_short() -> None:
    items = "".join(f"<li>{number} {'x' * 500}</li>" for number in range(20))
    crumbs = read(f"<ul class=breadcrumb>{items}</ul>").crumbs
    assert [len(crumb) for crumb in crumbs] == [100] * 8
