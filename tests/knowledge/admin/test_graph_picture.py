"""Graph picture: an entity between its neighbours, each a link to its own."""

import re
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client

from knowledge import graph
from knowledge.admin.graph_picture import MOST, picture
from knowledge.graph import Graph, NamedEntity, StatedRelation
from knowledge.models import Document, Entity, Relation
from tests import factories
from tests.knowledge.pages import SCRIPT, address

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser whose user may do everything."""
    client.force_login(User.objects.create_superuser("root"))
    return client


def stated(*relations: tuple[str, str, str]) -> None:
    """Have a document state these."""
    factories.collection("handbook")
    names = dict.fromkeys(name for one, _, other in relations for name in (one, other))
    ties = tuple(StatedRelation(one, verb, other, part=0) for one, verb, other in relations)
    document = Document.objects.get()
    things = tuple(NamedEntity(name, "system") for name in names)
    graph.write(document, list(document.chunks.order_by("number")), Graph(things, ties))


def drawn(name: str) -> ElementTree.Element:
    """The picture of an entity."""
    relations = Relation.objects.select_related("subject", "object")
    html = picture(Entity.objects.get(name=name), relations, address)
    return ElementTree.fromstring(html[: html.index("</svg>") + len("</svg>")])  # noqa: S314 ours


def boxes(svg: ElementTree.Element) -> dict[str, tuple[float, str]]:
    """Where each neighbour stands from left to right, and what its link leads to."""
    return {
        link.findtext(f"{SVG}title", ""): (
            float(link.find(f"{SVG}rect").get("x", "")),  # type: ignore[union-attr]
            link.get("href", ""),
        )
        for link in svg.iter(f"{SVG}a")
    }


def test_what_leads_to_an_entity_stands_left_and_what_it_leads_to_right() -> None:
    stated(
        ("office", "keeps", "foghorn"), ("foghorn", "warns", "ship"), ("office", "owns", "foghorn")
    )
    found = boxes(drawn("foghorn"))
    assert found.keys() == {"office (system)", "ship (system)"}
    assert found["office (system)"][0] < found["ship (system)"][0]
    assert found["ship (system)"][1] == address(Entity.objects.get(name="ship"))
    labels = [each.text for each in drawn("foghorn").iter(f"{SVG}text")]
    assert "keeps; owns" in labels


def test_the_graph_can_be_walked_from_page_to_page(staff: Client) -> None:
    stated(("office", "keeps", "foghorn"), ("foghorn", "warns", f"ship {SCRIPT}"))
    here = address(Entity.objects.get(name="office"))
    for there in ("foghorn", f"ship {SCRIPT}"):
        page = staff.get(here).content.decode()
        assert SCRIPT not in page
        assert not re.search(r'<svg[^§]*?style="', page)
        target = Entity.objects.get(name=there)
        assert f'<a href="{address(target)}"><title>' in page
        here = address(target)


def test_more_neighbours_than_fit_are_counted_and_none_gives_no_picture() -> None:
    stated(*(("office", "keeps", f"horn {n}") for n in range(MOST + 3)))
    office = Entity.objects.get(name="office")
    relations = Relation.objects.select_related("subject", "object")
    assert "3 more than fit" in picture(office, relations, address)
    assert len(boxes(drawn("office"))) == MOST
    assert picture(office, [], address) == ""
