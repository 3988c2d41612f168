"""The admin of the graph: entities and relations are found by name and lead to who says so."""

from datetime import date
from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from knowledge import graph
from knowledge.graph import Graph, NamedEntity, StatedRelation
from knowledge.models import Document, Entity, Relation
from tests import factories
from tests.knowledge.pages import SCRIPT, address, shown

pytestmark = pytest.mark.django_db

ENTITIES = reverse("admin:knowledge_entity_changelist")
RELATIONS = reverse("admin:knowledge_relation_changelist")


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser whose user may do everything."""
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def stated() -> Document:
    """A document in its third version that states two relations of three things."""
    factories.collection("handbook")
    Document.objects.update(version=3)
    document = Document.objects.get()
    statements = Graph(
        entities=(
            NamedEntity("Harbour Office", "organisation", ("harbour master",)),
            NamedEntity("foghorn", "system"),
            NamedEntity(f"Guild {SCRIPT}", "organisation"),
        ),
        relations=(
            StatedRelation(
                "Harbour Office", "keeps", "foghorn", part=1, valid_to=date(2024, 2, 29)
            ),
            StatedRelation(
                f"Guild {SCRIPT}", "pays for", "foghorn", part=0, valid_from=date(2024, 3, 1)
            ),
        ),
    )
    graph.write(document, list(document.chunks.order_by("number")), statements)
    return document


def test_entities_are_found_by_any_of_their_names(staff: Client, stated: Document) -> None:
    page = shown(staff, ENTITIES, q="harbour master")
    assert "Harbour Office" in page
    assert address(Entity.objects.get(key="foghorn")) not in page
    assert "foghorn" in shown(staff, ENTITIES)


def test_an_entity_shows_its_names_and_relations_with_their_time_and_document(
    staff: Client, stated: Document
) -> None:
    page = shown(staff, address(Entity.objects.get(key="foghorn")))
    for text in ("keeps", "until 2024-02-29", "pays for", "from 2024-03-01", "version 3"):
        assert text in page
    assert page.index("pays for") < page.index("keeps</a>")
    assert f"{address(stated)}?chunk=2#chunk-2" in page
    assert address(Entity.objects.get(name="Harbour Office")) in page
    assert SCRIPT not in page
    office = shown(staff, address(Entity.objects.get(name="Harbour Office")))
    assert "harbour master" in office
    assert address(stated) in office


def test_relations_are_found_by_either_of_their_ends_and_by_their_document(
    staff: Client, stated: Document
) -> None:
    keeps, pays = (Relation.objects.get(predicate=predicate) for predicate in ("keeps", "pays for"))
    for query in ("office", "keeps"):
        page = shown(staff, RELATIONS, q=query)
        assert address(keeps) in page
        assert address(pays) not in page
    page = shown(staff, RELATIONS, document__id__exact=stated.pk)
    assert address(keeps) in page
    assert address(pays) in page
    assert f"{RELATIONS}?document__id__exact={stated.pk}" in shown(staff, address(stated))


def test_a_relation_shows_the_passage_that_states_it(staff: Client, stated: Document) -> None:
    page = shown(staff, address(Relation.objects.get(predicate="pays for")))
    assert "from 2024-03-01" in page
    assert "Unused days of part 1 end in March." in page
    assert f"{address(stated)}?chunk=1#chunk-1" in page
    assert SCRIPT not in page


def test_nobody_writes_the_graph_by_hand(staff: Client, stated: Document) -> None:
    for row in (Entity.objects.first(), Relation.objects.first()):
        assert row is not None
        for path in (address(row), address(row, "delete")):
            assert staff.post(path, {"post": "yes"}).status_code == HTTPStatus.FORBIDDEN
    for kind in ("entity", "relation"):
        add = reverse(f"admin:knowledge_{kind}_add")
        assert staff.get(add).status_code == HTTPStatus.FORBIDDEN
    assert Relation.objects.count() == 2


def test_who_may_not_view_the_graph_sees_none_of_it(client: Client, stated: Document) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    for path in (ENTITIES, RELATIONS, address(Relation.objects.all()[0])):
        assert client.get(path).status_code == HTTPStatus.FORBIDDEN
