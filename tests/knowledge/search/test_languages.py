"""Languages: which model is asked for a question in another language than the documents."""

import pytest
from pytest_django import Settings

from knowledge.embedding import similarities
from knowledge.embedding.local import MULTILINGUAL
from knowledge.errors import EmbeddingUnavailable
from knowledge.identifiers import LOCAL_MODEL, MULTILINGUAL_MODEL
from knowledge.ingestion.backfill import fill
from knowledge.models import Calibration, Collection, Document, DocumentVector
from knowledge.search import search
from knowledge.search.confidence import Bar, judge
from knowledge.search.languages import across, languages_in
from knowledge.search.scope import scope_of
from tests.knowledge.islands import add, entry, island
from tests.knowledge.polyglot import Polyglot

pytestmark = pytest.mark.django_db

QUESTION = "Wann tönt das Nebelhorn?"


@pytest.fixture
def english(polyglot: Polyglot) -> Collection:
    """A collection in English with the vectors of both models."""
    collection = island()
    fill(collection, MULTILINGUAL)
    polyglot.asked.clear()
    return collection


def models(collection: Collection, language: str) -> dict[str, list[int]]:
    return across(scope_of([collection.name]), language).models


def test_a_question_in_another_language_is_asked_of_the_multilingual_model(
    polyglot: Polyglot, english: Collection
) -> None:
    results = search(QUESTION, collections=["island"], spoken="de")
    assert polyglot.asked == [("question", QUESTION)]
    assert results.passages[0].source in {"fog.md", "quiet.md"}
    assert "foghorn" in results.passages[0].text
    assert results.stats["is_foreign"]
    assert not results.error


@pytest.mark.parametrize("spoken", ["en", "en-GB"])
def test_one_in_the_language_of_the_documents_is_not(
    polyglot: Polyglot, english: Collection, spoken: str
) -> None:
    results = search("When does the foghorn sound?", collections=["island"], spoken=spoken)
    assert polyglot.asked == []
    assert not results.stats["is_foreign"]
    assert models(english, spoken) == {LOCAL_MODEL: [english.pk]}


def test_nothing_is_asked_of_it_unless_the_setting_is_on(
    polyglot: Polyglot, english: Collection, settings: Settings
) -> None:
    settings.CROSS_LINGUAL = False
    search(QUESTION, collections=["island"], spoken="de")
    assert polyglot.asked == []


def test_it_is_not_asked_before_its_vectors_are_there(english: Collection) -> None:
    vectors = DocumentVector.objects.filter(model=MULTILINGUAL_MODEL)
    vectors.filter(document__source="fog.md").delete()
    assert models(english, "de") == {LOCAL_MODEL: [english.pk]}


def test_a_language_that_some_documents_are_in_is_none_of_another_language(
    english: Collection,
) -> None:
    Document.objects.filter(source="fog.md").update(language="de-AT")
    assert models(english, "de") == {LOCAL_MODEL: [english.pk]}
    assert models(english, "fr") == {MULTILINGUAL_MODEL: [english.pk]}
    assert languages_in(scope_of(["island"])) == ["en", "de"]


def test_a_filter_leaves_the_languages_that_count(english: Collection) -> None:
    Document.objects.filter(source="fog.md").update(language="de")
    assert across(scope_of(["island"], ["en"]), "de").models == {MULTILINGUAL_MODEL: [english.pk]}


def test_each_collection_is_asked_by_the_model_that_suits_its_language(
    english: Collection,
) -> None:
    german = Collection.objects.create(name="german")
    add(german, entry("wetter.md", ["Das Nebelhorn tönt alle dreißig Sekunden."]))
    Document.objects.filter(collection=german).update(language="de")
    fill(german, MULTILINGUAL)
    scope = across(scope_of(["island", "german"]), "de")
    assert scope.models == {LOCAL_MODEL: [german.pk], MULTILINGUAL_MODEL: [english.pk]}
    found = search(QUESTION, collections=["island", "german"], spoken="de").passages
    assert {"fog.md", "wetter.md"} <= {passage.source for passage in found}


def test_a_model_behind_an_endpoint_keeps_its_place(english: Collection) -> None:
    Collection.objects.update(embedding_model="wide@acme")
    assert models(english, "de") == {"wide@acme": [english.pk]}


def test_confidence_goes_by_the_multilingual_models_own_calibration(english: Collection) -> None:
    assert across(scope_of(["island"]), "de").bars[english.pk].threshold == 0.35
    Calibration.objects.create(
        collection=english, model=MULTILINGUAL_MODEL, threshold=0.5, report={"scale": 0.2}
    )
    bar = across(scope_of(["island"]), "de").bars[english.pk]
    assert (bar.threshold, bar.scale) == (0.5, 0.2)
    assert scope_of(["island"]).bars[english.pk].threshold == 0.42


def test_words_that_both_languages_have_make_nobody_confident() -> None:
    def confidence(shares: list[float], *, is_foreign: bool) -> float:
        bars = [Bar(0.35, is_foreign=is_foreign)] * len(shares)
        verdict = judge([0.3, 0.2, 0.1], shares, bars, min_hits=1, chunks=100)
        return verdict.confidence or 0.0

    assert confidence([1.0, 0, 0], is_foreign=False) > confidence([0, 0, 0], is_foreign=False)
    assert confidence([1.0, 0, 0], is_foreign=True) == confidence([0, 0, 0], is_foreign=True)


def test_cosines_across_languages_come_as_different_as_within_one(polyglot: Polyglot) -> None:
    texts = ["The ferry leaves at noon.", "The keeper sleeps."]
    near, far = similarities("Fähre", texts, is_foreign=True)
    assert near > 0.35 > far
    assert [kind for kind, _ in polyglot.asked] == ["question", "passage", "passage"]
    polyglot.asked.clear()
    assert similarities("ferry", texts, is_foreign=False).argmax() == 0
    assert polyglot.asked == []


def test_without_the_package_the_reply_says_what_to_do(
    english: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(texts: object, **_: object) -> None:
        raise EmbeddingUnavailable("The multilingual model is not installed.")

    monkeypatch.setattr(MULTILINGUAL, "encode", missing)
    results = search("Wo ist der foghorn?", collections=["island"], spoken="de")
    assert "not installed" in results.error
    assert results.passages
