"""Other texts to search for, written by a model for the step that searches."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils.timezone import now
from pytest_django import Settings

from agents.contract import REGISTRY
from agents.library import query_expansion
from agents.llm.requests import Choice
from agents.names import Role
from agents.steps import model_context
from agents.steps.records import Claim
from knowledge.models import Document
from knowledge.search import expansion
from tests import factories
from tests.conftest import Begin
from tests.scripted import Response, Scripted, shaped

Search = Callable[[], str]
QUESTION = "Do unused days end?"


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The model is the only one that writes other texts."""
    before = expansion._sources[:]
    expansion._sources[:] = [query_expansion.alternatives]
    yield
    expansion._sources[:] = before


@pytest.fixture
def expanded(models: Scripted, settings: Settings) -> Scripted:
    """A model that writes three wordings and a passage."""
    settings.MODELS = settings.MODELS | {"expansion": Choice("fake@scripted", timeout=5)}
    settings.SEARCH_EXPANSION = "both"
    models.says("expansion", shaped(wordings=["leave", QUESTION, "vacation", "days off", "rest"]))
    models.says("hyde", Response("Unused days lapse in March."))
    factories.collection("handbook")
    return models


@pytest.fixture
def search(expanded: Scripted, begin: Begin) -> Search:
    """Search as the step of a turn does; return what became of expansion."""

    def searched() -> str:
        envelope = begin(canonical_question=QUESTION, collections=["handbook"])
        claim = Claim(
            envelope_id=envelope.pk,
            number=1,
            role=Role.SEARCH,
            attempt=1,
            token=uuid4(),
            payload={"canonical_question": QUESTION, "collections": ["handbook"]},
            process_count=1,
            stream="",
            deadline=now() + timedelta(seconds=20),
            conversation_id=envelope.conversation_id,
        )
        with model_context.model_of(claim) as llm:
            writes = REGISTRY[Role.SEARCH].perform(claim.payload, llm).writes
        return str(writes["search_stats"]["expansion"])

    return searched


def test_the_question_is_searched_for_in_other_words_and_as_a_passage(
    expanded: Scripted, search: Search
) -> None:
    assert search() == "4 more"
    assert expanded.server.prompts() == ["expansion", "hyde"]


def test_models_write_in_the_languages_of_the_documents(expanded: Scripted, search: Search) -> None:
    Document.objects.update(language="de-at")
    search()
    wordings, passage = (call.user for call in expanded.server.ledger)
    assert wordings.endswith("Languages of the documents: German")
    assert passage.endswith("Language: German")


@pytest.mark.parametrize(
    ("wanted", "prompts"), [("off", []), ("expand", ["expansion"]), ("hyde", ["hyde"])]
)
def test_only_what_is_wanted_is_asked_for(
    expanded: Scripted, search: Search, settings: Settings, wanted: str, prompts: list[str]
) -> None:
    settings.SEARCH_EXPANSION = wanted
    search()
    assert expanded.server.prompts() == prompts


def test_the_question_itself_is_no_other_wording(search: Search, settings: Settings) -> None:
    settings.SEARCH_EXPANSION = "expand"
    assert search() == "3 more"


def test_what_one_call_brought_is_used_when_the_other_failed(
    expanded: Scripted, search: Search
) -> None:
    expanded.says("expansion", Response(status=401))
    assert search() == "1 more"


def test_without_a_usable_reply_the_search_says_why(expanded: Scripted, search: Search) -> None:
    expanded.says("expansion", Response(status=401))
    expanded.says("hyde", Response(""))
    note = search()
    assert "the model failed" in note
    assert not note.startswith("0 more")


def test_without_a_model_the_search_says_so(
    expanded: Scripted, search: Search, settings: Settings
) -> None:
    settings.MODELS = settings.MODELS | {"expansion": Choice()}
    assert search() == expansion.NO_MODEL
    assert expanded.server.ledger == []


def test_nobody_is_asked_outside_of_a_turn(expanded: Scripted) -> None:
    with pytest.raises(expansion.NotExpandedError, match=expansion.NO_MODEL):
        query_expansion.alternatives(QUESTION, ["en"])
