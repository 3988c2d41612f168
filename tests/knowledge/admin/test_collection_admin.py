"""The admin of the collections: their sizes, their golden questions, and the box to search them."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from knowledge.models import Calibration, Collection, Document, GoldenQuestion, Receipt
from tests.knowledge import levels
from tests.knowledge.pages import SCRIPT, SEARCH, address, shown

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser whose user may do everything."""
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_a_collection_that_goes_leaves_a_receipt_of_its_documents(
    staff: Client, document: Document
) -> None:
    staff.post(address(document.collection, "delete"), {"post": "yes"})
    assert not Collection.objects.exists()
    assert Receipt.objects.get().removed["documents"] == 1


def test_a_collection_shows_its_sizes_and_threshold(staff: Client, document: Document) -> None:
    collection = document.collection
    assert "not calibrated" in shown(staff, address(collection))
    model = collection.embedding_model
    Calibration.objects.create(collection=collection, model=model, threshold=0.4321)
    page = shown(staff, address(collection))
    assert "0.432, calibrated" in page
    assert "0.43" in shown(staff, reverse("admin:knowledge_collection_changelist"))


ADD_GOLDEN = "/admin/knowledge/goldenquestion/add/"
FIND = "/admin/knowledge/goldenquestion/find/"


def ticked(page: str) -> dict[str, bool]:
    """The sources that a form offers, and whether each is ticked."""
    boxes = re.findall(r'<input[^>]*name="sources"[^>]*>', page)
    return {
        match[1]: bool(re.search(r"\schecked(?=[\s>/])", box))
        for box in boxes
        if (match := re.search('value="([^"]*)"', box))
    }


def test_a_golden_question_takes_the_documents_that_are_ticked(
    staff: Client, document: Document
) -> None:
    body = {
        "collection": str(document.collection_id),
        "question": "When do unused days end?",
        "sources": [document.source],
    }
    staff.post(ADD_GOLDEN, body)
    question = GoldenQuestion.objects.get()
    assert question.sources == [document.source]
    assert ticked(shown(staff, address(question)))[document.source]
    staff.post(address(question), body | {"sources": []})
    question.refresh_from_db()
    assert question.sources == []


def test_a_golden_question_begins_with_the_hits_that_were_ticked(
    staff: Client, document: Document
) -> None:
    page = shown(staff, ADD_GOLDEN, question="When do they end?", document=document.pk)
    assert "When do they end?" in page
    assert ticked(page) == {document.source: True}


def test_documents_are_looked_for_and_what_was_filled_in_stays(
    staff: Client, document: Document
) -> None:
    other = levels.page("tea.md", ("Tea.", levels.towards(0, 1)), title="On tea",
                        collection=document.collection.name)  # fmt: skip
    body = {
        "collection": str(document.collection_id),
        "question": "What of them?",
        "sources": [document.source],
        "find": "on tea",
    }
    response = staff.post(FIND, body, follow=True)
    assert "What of them?" in response.text
    found = ticked(response.text)
    assert found[document.source]
    assert not found[other.source]


def test_golden_questions_refuse_sources_the_collection_does_not_hold(
    staff: Client, document: Document
) -> None:
    body = {
        "collection": str(document.collection_id),
        "question": "When do unused days end?",
        "sources": [document.source, "elsewhere.md"],
    }
    page = staff.post(reverse("admin:knowledge_goldenquestion_add"), body).content.decode()
    assert "no document with the source elsewhere.md" in page
    assert not GoldenQuestion.objects.exists()


def test_the_search_box_explains_every_candidate(staff: Client, ingested: Document) -> None:
    page = shown(staff, SEARCH, q="How often does the foghorn sound?", collection="island")
    assert 'id="candidate-1" class="kept"' in page
    assert "passage 1" in page
    for level in ("Keyword", "Semantic"):
        assert f'data-label="{level}"' in page
    assert f"{address(ingested)}?chunk=1#chunk-1" in page


def test_the_search_box_shows_what_stands_before_and_after_a_passage(staff: Client) -> None:
    levels.page(
        "a",
        *((text, levels.towards(1)) for text in ("Before.", "The foghorn.", SCRIPT, "Far off.")),
    )
    answer = shown(staff, SEARCH, q="foghorn", limit="1")
    folded = answer.partition('<details class="beside">')[2].partition("</details>")[0]
    assert "Before." in folded
    assert "alert(1)" in folded
    assert "Far off." not in folded
    assert SCRIPT not in answer


def test_the_search_box_shows_questions_and_passages_as_text(
    staff: Client, ingested: Document
) -> None:
    ingested.chunks.update(text=f"The foghorn {SCRIPT}")
    Document.objects.update(title=SCRIPT)
    page = shown(staff, SEARCH, q=f"{SCRIPT} foghorn")
    assert "candidate-1" in page
    assert SCRIPT not in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"q": ""}, "may not be blank"),
        ({"q": "x" * 8_001}, "at most 8,000"),
        ({"q": "fog", "collection": "coffee"}, "&#x27;coffee&#x27;"),
        ({"q": "fog", "collection": "a\0b"}, "Null characters are not allowed"),
        ({"q": "fog", "language": "german!"}, "language tag"),
        ({"q": "fog", "limit": "99"}, "less than or equal to 50"),
    ],
)
def test_the_search_box_says_what_was_wrong(
    query: dict[str, str], said: str, staff: Client
) -> None:
    page = shown(staff, SEARCH, **query)
    assert said in page
    assert "candidate-" not in page
