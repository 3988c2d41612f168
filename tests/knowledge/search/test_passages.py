"""Search: the right passage first, and an honest answer when there is none."""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from pytest_django import Settings

from knowledge import ingestion
from knowledge.embedding.local import LOCAL
from knowledge.errors import EmbeddingUnavailable, UnknownCollection
from knowledge.models import Chunk, Collection, Document
from knowledge.search import search, whole_sections

pytestmark = pytest.mark.django_db


@pytest.fixture
def searched(island: Path, settings: Settings) -> None:
    """Ingest the island; its questions are judged by the threshold measured for the model."""
    settings.SEARCH_CONFIDENCE_THRESHOLD = 0.35
    ingestion.ingest(ingestion.find([island]), collection="island")


@pytest.mark.parametrize(
    ("question", "source", "section"),
    [
        ("How do I get my money back for the ferry?", "ferry-booking.md", "Cancel a booking"),
        ("Can I bring my bike?", "ferry-booking.md", "Take a bicycle"),
        ("tandem", "ferry-booking.md", "Take a bicycle"),
        ("Who gives me the key to my room?", "rooms/lighthouse.md", "Keys"),
        ("When must guests be quiet?", "rooms/quiet-hours.html", ""),
        ("What does the foghorn sound like in fog?", "fog.txt", ""),
    ],
)
@pytest.mark.usefixtures("searched")
def test_best_passage_is_the_one_that_answers(question: str, source: str, section: str) -> None:
    first = search(question, collections=["island"]).passages[0]
    assert (first.source, first.section) == (f"island/{source}", section)


@pytest.mark.usefixtures("searched")
def test_passage_holds_what_a_citation_needs() -> None:
    passage = search("How do I cancel a booking?", collections=["island"]).passages[0]
    document = Document.objects.get(source="island/ferry-booking.md")
    assert (passage.document_id, passage.version) == (document.pk, 1)
    assert (passage.title, passage.crumbs, passage.language) == ("Booking a ferry", [], "en")
    assert passage.text.startswith("A booking can be cancelled")
    assert passage.cosine is not None
    assert 0.5 < passage.cosine <= 1
    assert passage.score > 0


@pytest.mark.usefixtures("searched")
def test_question_about_something_else_finds_no_context() -> None:
    result = search("What is the best pizza recipe?", collections=["island"])
    assert (result.no_context, result.quality) == (True, "poor")
    assert result.stats["confidence"] < result.stats["threshold"]


@pytest.mark.usefixtures("searched")
def test_question_the_documents_answer_has_context() -> None:
    result = search("When does the foghorn of the lighthouse sound?", collections=["island"])
    assert not result.no_context
    assert result.error == ""
    assert result.stats["hits"]["keyword"][0] > 0
    assert result.stats["hits"]["semantic"] == [result.stats["chunks"]]


@pytest.mark.usefixtures("searched")
def test_each_section_is_found_once_and_the_limit_is_kept() -> None:
    passages = search("lighthouse guests ferry", collections=[], limit=3).passages
    assert len(passages) == 3
    assert len({(each.document_id, each.section) for each in passages}) == 3


@pytest.mark.usefixtures("searched")
def test_second_wording_brings_in_what_the_first_missed() -> None:
    alone = search("zzz", collections=["island"]).passages[0]
    helped = search("zzz", collections=["island"], alternative="folding bicycle price").passages[0]
    assert alone != helped
    assert helped.section == "Take a bicycle"


@pytest.mark.usefixtures("searched")
def test_only_the_named_collections_are_searched(tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("The windmill grinds rye and wheat for the bakery.")
    ingestion.ingest(ingestion.find([tmp_path / "mill.txt"]), collection="mill")
    (passage,) = search("windmill", collections=["mill"]).passages
    assert passage.source == "mill.txt"
    assert all(
        each.source != "mill.txt" for each in search("mill", collections=["island"]).passages
    )
    assert search("windmill", collections=[]).passages[0].source == "mill.txt"


@pytest.mark.usefixtures("searched")
def test_a_collection_apart_is_found_by_its_name_only(tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("The windmill grinds rye and wheat for the bakery.")
    ingestion.ingest(ingestion.find([tmp_path / "mill.txt"]), collection="mill")
    Collection.objects.filter(name="mill").update(only_by_name=True)
    assert search("windmill", collections=["mill"]).passages[0].source == "mill.txt"
    assert all(each.source != "mill.txt" for each in search("windmill", collections=[]).passages)


@pytest.mark.usefixtures("searched")
def test_unknown_collection_is_named_with_those_that_exist() -> None:
    with pytest.raises(UnknownCollection, match=r"no collection 'mars'.*exist: island"):
        search("x", collections=["island", "mars"])


@pytest.mark.usefixtures("searched")
def test_words_alone_are_compared_when_the_model_cannot_be_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(texts: Sequence[str], *, kind: str) -> NoReturn:
        raise EmbeddingUnavailable("The weights are gone.")

    monkeypatch.setattr(LOCAL, "encode", missing)
    result = search("cancelled bookings", collections=["island"])
    assert result.passages[0].section == "Cancel a booking"
    assert result.passages[0].cosine is None
    assert result.error == "Only words were compared: The weights are gone."
    assert result.quality != "excellent"


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize(
    "question", ["", "  ", "\0", "?!", "'; --", "a\\'b & | ! <->", "😀", "x" * 20000]
)
def test_no_question_breaks_the_search(question: str) -> None:
    assert search(question, collections=["island"]).quality in {"poor", "good"}


def test_nothing_ingested_is_no_context_and_no_error() -> None:
    result = search("Anything?", collections=[])
    assert (result.passages, result.no_context, result.quality) == ((), True, "poor")


def test_words_are_stemmed_in_the_language_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Der Leuchtturm hat vier Zimmer für Gäste, und morgens läutet die Glocke. " * 2
    (tmp_path / "turm.txt").write_text(text, encoding="utf-8")
    ingestion.ingest(ingestion.find([tmp_path / "turm.txt"]), collection="turm")
    assert Document.objects.get().config == "german"

    def missing(texts: Sequence[str], *, kind: str) -> NoReturn:
        raise EmbeddingUnavailable

    monkeypatch.setattr(LOCAL, "encode", missing)
    assert search("Wo sind die Glocken?", collections=["turm"]).passages[0].source == "turm.txt"


PAINT = "The paint of the engine is red lead below and green above. " * 12


def manual(paragraphs: int) -> str:
    sentences = (
        f"Part {number} of the engine is greased every {number + 2} weeks with oil from the tin "
        "on the shelf above the bench, and then wiped with the cloth that hangs beside the door."
        for number in range(paragraphs)
    )
    return "# Engine\n\n## Grease\n\n" + "\n\n".join(sentences) + f"\n\n## Paint\n\n{PAINT}"


def test_section_that_was_cut_is_whole_again_and_nothing_stands_there_twice(tmp_path: Path) -> None:
    page = tmp_path / "engine.md"
    page.write_text(manual(20), encoding="utf-8")
    ingestion.ingest(ingestion.find([page]), collection="engine")
    chunks = list(Chunk.objects.order_by("number").values_list("pk", flat=True))
    assert len(chunks) > 3
    text = whole_sections(chunks[:1], 10_000)[chunks[0]]
    assert [text.count(f"Part {number} of") for number in range(20)] == [1] * 20
    assert "red lead" not in text


def test_long_section_goes_on_from_the_passage(tmp_path: Path) -> None:
    page = tmp_path / "engine.md"
    page.write_text(manual(40), encoding="utf-8")
    ingestion.ingest(ingestion.find([page]), collection="engine")
    middle = Chunk.objects.order_by("number")[3]
    text = whole_sections([middle.pk], 3000)[middle.pk]
    assert text.startswith(middle.text[:50])
    assert len(middle.text) < len(text) <= 3000


def texts_of(tmp_path: Path, content: str) -> dict[str, str]:
    """The whole section of each passage of a page, by how the passage begins."""
    page = tmp_path / "page.md"
    page.write_text(content, encoding="utf-8")
    ingestion.ingest(ingestion.find([page]), collection="engine")
    begins = {chunk.pk: chunk.text[:9] for chunk in Chunk.objects.all()}
    return {begins[pk]: text for pk, text in whole_sections(list(begins), 3000).items()}


@pytest.mark.parametrize("level", ["##", "###", "####", "#####"])
def test_a_section_that_only_leads_to_those_below_it_has_them_behind_it(
    tmp_path: Path, level: str
) -> None:
    above = "\n\n".join("#" * depth + f" Part {depth}" for depth in range(1, len(level)))
    ways = [
        f"{number}. {' '.join(f'Turn the key {number}.' for _ in range(60))}" for number in (1, 2)
    ]
    content = (
        f"{above}\n\n{level} Leaving\n\nYou leave in two ways.\n\n"
        f"{level}# By the door\n\nDoor way. {ways[0]}\n\n"
        f"{level}# By the gate\n\nGate way. {ways[1]}\n\n"
        f"{level} Coming\n\nCome back. {ways[1]}"
    )
    texts = texts_of(tmp_path, content)
    leading = texts["You leave"]
    assert leading.startswith("You leave in two ways.\n\n**By the door**\n\nDoor way.")
    assert "Come back." not in leading
    assert "**By the gate**" not in texts["Door way."]


def test_surroundings_of_a_deleted_passage_are_left_out() -> None:
    assert whole_sections([404], 3000) == {}
