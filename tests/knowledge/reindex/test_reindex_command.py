"""The command `reindex`: what it says it takes, does, drops and refuses."""

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from knowledge import embedding, reindex
from knowledge.models import Chunk, Collection
from knowledge.search import vector_indexes
from tests.knowledge.endpoint import Server
from tests.knowledge.words import DIMENSIONS, OTHER, model_of, vectors

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("one_document_counts"),
]


def run(*words: str) -> Any:
    out = StringIO()
    call_command("reindex", *words, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_vectors_in_use_are_never_dropped_and_others_go_with_their_indexes(
    collection: Collection,
) -> None:
    with pytest.raises(reindex.InUse, match="searched by the vectors of all-MiniLM-L6-v2"):
        reindex.drop(collection, embedding.MODEL)
    reindex.reindex(collection, OTHER)
    reindex.back(collection)
    count = sum(vectors(OTHER))
    assert run("island", "--drop", OTHER) == {"removed": count}
    assert vectors(OTHER) == [0, 0, 0]
    assert not any(
        vector_indexes.is_valid(vector_indexes.name(kind, OTHER))
        for kind in vector_indexes.INDEX_KINDS
    )
    reindex.reindex(collection, OTHER)
    run("island", "--drop", embedding.MODEL)
    assert all(
        vector_indexes.is_valid(vector_indexes.name(kind, embedding.MODEL))
        for kind in vector_indexes.INDEX_KINDS
    )


def test_a_dry_run_says_what_it_takes_and_changes_nothing(
    collection: Collection, server: Server
) -> None:
    plan = run("island", "--embedding-model", OTHER, "--dry-run")["plan"]
    assert plan["chunks"] == plan["missing"] == Chunk.objects.count()
    assert plan["documents"] == 4
    assert plan["dimensions"] == DIMENSIONS
    assert plan["tokens"] > 0
    assert plan["dollars"] is None
    assert vectors(OTHER) == [0, 0, 0]
    assert model_of(collection) == embedding.MODEL


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        (embedding.MODEL, 0.0),
        ("nomic-embed-text@ollama", 0.0),
        ("text-embedding-3-small@openai", pytest.approx(0.02, rel=0.9)),
        ("some-model@openai", None),
        ("some-model@acme", None),
    ],
)
def test_cost_is_what_is_known_of_the_price(model: str, dollars: float | None) -> None:
    assert reindex.price(model, 1_000_000) == dollars


def test_the_command_says_what_happened_and_how_to_go_back(collection: Collection) -> None:
    out = StringIO()
    call_command("reindex", "island", "--embedding-model", OTHER, stdout=out)
    said = " ".join(out.getvalue().split())
    assert "cost, about" in said
    assert "unknown" in said
    assert "it holds" in said
    assert "`reindex island --back` goes back" in said
    assert model_of(collection) == OTHER
    assert run("island", "--back")["after"] == embedding.MODEL


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", "--embedding-model", OTHER), "There is no collection 'nowhere'"),
        (("island", "--embedding-model", "x@nobody"), "There is no provider 'nobody'"),
        (("island", "--back"), "no vectors of another model"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(
    collection: Collection, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError, match=re.escape(said)):
        run(*words)
