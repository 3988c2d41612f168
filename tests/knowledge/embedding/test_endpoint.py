"""Endpoints: what is sent, what is believed of the answer, and what the operator is told."""

import json
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Response

from knowledge.embedding import Embedder, endpoint, registry
from knowledge.embedding.embedder import (
    EndpointError,
    KeyRefused,
    Malformed,
    ModelMissing,
    Overloaded,
    Refused,
    TooSlow,
    Unreachable,
    WrongDimensions,
)
from knowledge.errors import EmbeddingUnavailable
from knowledge.providers import HOSTED, Provider
from tests.knowledge.endpoint import Server

DIMENSIONS = 384
Change = Callable[[dict[str, Any]], None]


def vector(text: str) -> list[float]:
    return [float(len(text)), 3.0, *[0.0] * (DIMENSIONS - 2)]


def lengths(vectors: np.ndarray) -> list[int]:
    """Of the texts, as their vectors tell."""
    return [round(float(each[0] / each[1] * 3)) for each in vectors]


@pytest.fixture(autouse=True)
def begin_anew() -> Iterator[None]:
    yield
    registry.forget()


@pytest.fixture
def server(httpserver: HTTPServer, settings: Settings) -> Server:
    """A server of one's own, as the provider `own`."""
    address = httpserver.url_for("/v1")
    settings.PROVIDERS = {
        "own": Provider("own", address, "secret-key-of-ours"),
        "openai": Provider("openai", HOSTED["openai"]),
    }
    settings.EMBEDDING_WINDOW = 512
    registry.forget()
    return Server(httpserver, vector)


@pytest.fixture
def embedder(server: Server) -> Embedder:
    return registry.named("some-model@own")


def test_every_text_gets_its_unit_vector_as_floats_of_the_named_model(
    server: Server, embedder: Embedder
) -> None:
    vectors = embedder.encode(["aa", "bbbb", "c"])
    assert lengths(vectors) == [2, 4, 1]
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert server.bodies == [
        {"model": "some-model", "input": ["aa", "bbbb", "c"], "encoding_format": "float"}
    ]
    assert embedder.dimensions == DIMENSIONS


def test_no_call_holds_more_texts_or_characters_than_servers_take(
    server: Server, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "CHARACTERS_PER_CALL", 50)
    texts = [f"text {number}" for number in range(100, 140)] + ["x" * 60, "y" * 20, "z" * 31]
    assert lengths(embedder.encode(texts)) == [len(text) for text in texts]
    assert server.texts == texts
    sizes = [(len(body["input"]), sum(map(len, body["input"]))) for body in server.bodies]
    assert all(count <= 32 and (characters <= 50 or count == 1) for count, characters in sizes)


def test_forty_texts_are_asked_in_two_calls(server: Server, embedder: Embedder) -> None:
    embedder.encode([f"text {number}" for number in range(40)])
    assert [len(body["input"]) for body in server.bodies] == [32, 8]


def test_a_text_that_came_before_is_not_asked_again(server: Server, embedder: Embedder) -> None:
    embedder.encode(["a", "bb", "a"])
    embedder.encode(["bb", "ccc"])
    assert server.texts == ["a", "bb", "ccc"]


def test_vectors_are_put_in_order_by_their_index(server: Server, embedder: Embedder) -> None:
    server.change = lambda answer: answer["data"].reverse()
    assert lengths(embedder.encode(["a", "bb", "ccc"])) == [1, 2, 3]


def test_vectors_without_an_index_keep_the_order_they_came_in(
    server: Server, embedder: Embedder
) -> None:
    def forget_indexes(answer: dict[str, Any]) -> None:
        answer.pop("usage")
        for item in answer["data"]:
            item.pop("index")

    server.change = forget_indexes
    assert lengths(embedder.encode(["a", "bb", "ccc"])) == [1, 2, 3]


def twice_as_long(answer: dict[str, Any]) -> None:
    for item in answer["data"]:
        item["embedding"] *= 2


def test_questions_and_passages_are_worded_as_the_model_wants(server: Server) -> None:
    embedder = registry.named("nomic-embed-text:latest@own")
    assert embedder.dimensions == 768
    server.change = twice_as_long
    embedder.encode(["ferry"], kind="question")
    embedder.encode(["ferry"])
    assert server.texts == ["search_query: ferry", "search_document: ferry"]


def test_a_text_longer_than_the_window_is_cut_and_an_empty_one_is_not_sent_empty(
    server: Server, embedder: Embedder
) -> None:
    embedder.encode(["visits " * 1000, "  "])
    long, empty = server.texts
    assert len(long.split()) == embedder.window == 409
    assert empty.strip()


def test_an_overloaded_server_is_asked_again_after_the_time_it_names(
    server: Server, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("openai._base_client.time.sleep", waited.append)
    server.before = [
        Response("{}", 429, {"Retry-After": "7"}),
        Response("{}", 503),
    ]
    assert lengths(embedder.encode(["aaa"])) == [3]
    assert waited[0] == 7
    assert 0 < waited[1] <= 2
    assert len(server.bodies) == 3


def test_a_question_does_not_wait_for_an_overloaded_server(
    server: Server, embedder: Embedder
) -> None:
    server.before = [Response("{}", 429, {"Retry-After": "7"})]
    with pytest.raises(Overloaded):
        embedder.encode(["aaa"], kind="question")
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "expected", "said"),
    [
        (401, KeyRefused, "check OWN_API_KEY"),
        (403, KeyRefused, "check OWN_API_KEY"),
        (404, ModelMissing, "check the model's name"),
        (400, Refused, "context length"),
        (429, Overloaded, "more than it allows"),
        (500, Unreachable, "fails"),
    ],
)
def test_a_refusal_names_model_address_and_remedy_and_never_the_key(
    server: Server, embedder: Embedder, status: int, expected: type[EndpointError], said: str
) -> None:
    message = {"error": {"message": "context length, secret-key-of-ours"}}
    server.before = [Response(json.dumps(message), status, content_type="application/json")]
    with pytest.raises(expected, match=said) as caught:
        embedder.encode(["text"], kind="question")
    assert isinstance(caught.value, EmbeddingUnavailable)
    assert "some-model@own at http://" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_only_what_passes_is_worth_another_attempt() -> None:
    kinds = EndpointError.__subclasses__()
    assert {kind for kind in kinds if kind.passes} == {Overloaded, Unreachable, TooSlow}


def test_a_server_that_is_too_slow_is_given_up(
    server: Server, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(endpoint.SECONDS, "question", 0.05)
    server.change = lambda answer: sleep(0.5)
    with pytest.raises(TooSlow, match="did not answer in time"):
        embedder.encode(["text"], kind="question")


def test_a_server_that_is_away_is_named(settings: Settings, server: Server) -> None:
    settings.PROVIDERS["own"] = Provider("own", "http://127.0.0.1:9/v1")
    with pytest.raises(Unreachable, match=r"some-model@own at http://127\.0\.0\.1:9/v1 cannot"):
        registry.named("some-model@own").encode(["text"], kind="question")


def test_a_provider_that_wants_a_key_is_not_asked_without_one(server: Server) -> None:
    with pytest.raises(KeyRefused, match="set OPENAI_API_KEY"):
        registry.named("text-embedding-3-small").encode(["text"])


def drop_one(answer: dict[str, Any]) -> None:
    answer["data"].pop()


def number_twice(answer: dict[str, Any]) -> None:
    answer["data"][0]["index"] = 1


def say_nothing(answer: dict[str, Any]) -> None:
    answer.clear()
    answer["error"] = "model is loading"


def write_base64(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"] = "AACAPwAAAEA="


def hold_no_number(answer: dict[str, Any]) -> None:
    answer["data"][0]["embedding"][5] = float("nan")


def hold_zeros(answer: dict[str, Any]) -> None:
    answer["data"][1]["embedding"] = [0.0] * DIMENSIONS


def differ_in_length(answer: dict[str, Any]) -> None:
    answer["data"][1]["embedding"].append(1.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (drop_one, "2 texts with 1 vectors"),
        (number_twice, "numbered"),
        (say_nothing, "model is loading"),
        (write_base64, "something else than vectors"),
        (hold_no_number, "no number"),
        (hold_zeros, "zeros"),
        (differ_in_length, "differ in length"),
    ],
)
def test_an_answer_that_is_no_set_of_vectors_is_refused(
    server: Server, embedder: Embedder, change: Change, said: str
) -> None:
    server.change = change
    with pytest.raises(Malformed, match=said):
        embedder.encode(["a", "bb"])


@pytest.mark.parametrize("count", [100, 5000])
def test_vectors_that_could_not_be_stored_are_refused(
    server: Server, embedder: Embedder, count: int
) -> None:
    def resize(answer: dict[str, Any]) -> None:
        answer["data"][0]["embedding"] = [1.0] * count

    server.change = resize
    with pytest.raises(WrongDimensions, match="384 to 4,096 can be stored"):
        embedder.encode(["a"])


def test_a_model_that_suddenly_answers_with_other_dimensions_is_refused(
    server: Server, embedder: Embedder
) -> None:
    embedder.encode(["a"])
    server.change = lambda answer: answer["data"][0]["embedding"].append(1.0)
    with pytest.raises(WrongDimensions, match="385 dimensions instead of 384"):
        embedder.encode(["bb"])
    assert embedder.dimensions == DIMENSIONS


def test_a_model_nobody_knows_is_asked_for_its_dimensions(
    server: Server, embedder: Embedder
) -> None:
    assert embedder.encode([]).shape == (0, DIMENSIONS)
    assert len(server.bodies) == 1
