"""The API of the search: its passages, its explanation, and the questions it refuses."""

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from knowledge.errors import EmbeddingUnavailable
from knowledge.models import Document
from knowledge.search import vector
from tests import factories
from tests.knowledge.desk import FERRY, file, upload
from tests.knowledge.levels import page, towards

pytestmark = pytest.mark.django_db


def test_a_search_gives_passages_and_how_far_they_can_be_trusted(
    staff: Client, fog: Document
) -> None:
    answer = staff.get("/api/search/", {"q": "How often does the foghorn sound?"})
    body = answer.json()
    assert answer.status_code == HTTPStatus.OK
    (passage,) = body["passages"]
    assert (passage["document_id"], passage["version"]) == (fog.pk, 2)
    assert passage["cosine"] > 0
    assert body["quality"] in {"excellent", "good", "poor"}
    assert body["explain"] is None


def test_explain_tells_every_levels_rank_and_why_something_was_dropped(
    staff: Client, fog: Document, worker: None
) -> None:
    upload(staff, file("ferry.md", FERRY))
    query = {"q": "How often does the foghorn sound?", "explain": "1", "limit": "1"}
    explained = staff.get("/api/search/", query).json()["explain"]
    assert {"keyword", "semantic"} <= set(explained["weights"])
    first, second = explained["candidates"]
    assert (first["place"], first["dropped"]) == (1, None)
    assert {each["level"] for each in first["standings"]} >= {"keyword", "semantic"}
    assert {each["rank"] for each in first["standings"]} == {1}
    assert second["place"] is None
    assert second["why"]
    assert explained["wordings"][0]["kind"] == "question"


def test_neighbours_are_added_when_they_are_asked_for(staff: Client) -> None:
    page("a", *((text, towards(1)) for text in ("One.", "Two.", "The foghorn.", "Four.")))

    def found(**more: str) -> tuple[list[str], list[str]]:
        body = staff.get("/api/search/", {"q": "foghorn", "limit": "1", **more}).json()
        (passage,) = body["passages"]
        assert passage["text"] == "The foghorn."
        return passage["before"], passage["after"]

    assert found() == ([], [])
    assert found(neighbours="1") == (["Two."], ["Four."])
    assert found(neighbours="5") == (["One.", "Two."], ["Four."])


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "q"),
        ({"q": "  "}, "q"),
        ({"q": "x" * 8_001}, "q"),
        ({"q": "a\0b"}, "q"),
        ({"q": "fog", "limit": "0"}, "limit"),
        ({"q": "fog", "limit": "many"}, "limit"),
        ({"q": "fog", "language": "english!"}, "language"),
        ({"q": "fog", "explain": "perhaps"}, "explain"),
        ({"q": "fog", "neighbours": "6"}, "neighbours"),
        ({"q": "fog", "neighbours": "-1"}, "neighbours"),
    ],
)
def test_a_search_that_cannot_be_understood_names_the_field(
    query: dict[str, str], field: str, staff: Client
) -> None:
    answer = staff.get("/api/search/", query)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert set(answer.json()["fields"]) == {field}
    assert field in answer.json()["detail"]


def test_a_search_in_a_collection_there_is_not_names_no_other(staff: Client) -> None:
    factories.collection("handbook")
    answer = staff.get("/api/search/", {"q": "fog", "collection": ["handbook", "coffee"]})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_collection")
    assert answer.json()["detail"] == "There is no collection 'coffee' here."


def test_a_search_keeps_to_the_language_and_audience_asked_for(
    staff: Client, fog: Document
) -> None:
    def found(**more: str) -> int:
        return len(staff.get("/api/search/", {"q": "foghorn", **more}).json()["passages"])

    Document.objects.update(audience="sailors")
    assert found() == found(language="en") == found(audience="sailors") == 1
    assert found(language="de") == found(audience="cooks") == 0


def test_only_who_may_read_documents_is_told_where_the_models_are(
    client: Client, fog: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise EmbeddingUnavailable("http://10.0.0.5 cannot be reached")

    monkeypatch.setattr(vector, "encode_wordings", away)
    bob = User.objects.create_user("bob")

    def told(*scopes: str) -> str:
        query = {"q": "How often does the foghorn sound?", "explain": "1"}
        answer = client.get("/api/search/", query, headers=factories.key(bob, scopes=[*scopes]))
        assert "Only words were compared" in answer.json()["error"]
        return answer.content.decode()

    assert "10.0.0.5" in told("chat", "documents")
    assert "10.0.0.5" not in told("chat")


def test_an_explanation_has_nothing_of_what_a_key_does_not_reach(
    client: Client, fog: Document
) -> None:
    factories.collection("secret", content="# Foghorn")
    bob = User.objects.create_user("bob")
    headers = factories.key(bob, collections=[fog.collection.name])
    query = {"q": "When do unused days of holidays and the foghorn end?", "explain": "1"}
    answer = client.get("/api/search/", query, headers=headers)
    named = {each["document_id"] for each in answer.json()["explain"]["candidates"]}
    assert named == {fog.pk}
    assert "Holidays" not in answer.content.decode()
