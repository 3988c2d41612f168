"""A server that knows little of OpenAI's API answers whole turns, by two settings alone."""

from collections.abc import Iterator

import pytest

from assistant.lab.model_server import ModelServer, serving
from tests.e2e.conftest import PAGES, Docent, furnished, take_in
from tests.strict import KNOWN, strict

# It needs a Docent of its own.
pytestmark = pytest.mark.every_moment


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    """The server."""
    with serving(strict) as server:
        yield server


@pytest.fixture(scope="module")
def docent(
    django_db_setup: None, server: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Docent]:
    """Docent, told of it by nothing but its address and a model's name."""
    log = tmp_path_factory.mktemp("strict") / "up.log"
    with furnished(15, log, ACME_BASE_URL=server.base_url, GEN_MODEL="qwen3@acme") as started:
        yield started


def test_every_role_thinks_and_the_answer_is_cited(docent: Docent, server: ModelServer) -> None:
    reply = docent.ask("How do I descalle the heater, and how often?")
    assert (reply["status"], reply["mode"]) == ("completed", "model")
    assert {each["citation_status"] for each in reply["citations"]} == {"verified"}
    steps = docent.call("GET", f"/api/turns/{reply['turn_id']}/trace/").body["steps"]
    assert not [step["role"] for step in steps if step["degraded"]]
    calls = [call for step in steps for call in step["model_calls"]]
    assert {(call["outcome"], call["input_tokens"]) for call in calls} == {("ok", None)}
    assert len(calls) >= 5


def test_what_it_refused_once_it_is_not_sent_again(docent: Docent, server: ModelServer) -> None:
    docent.ask("How do I descale the heater?")
    server.ledger.clear()
    docent.ask("Where does the water go when I press the button?")
    assert server.ledger
    assert all(set(asked.body) == KNOWN for asked in server.ledger)


def test_documents_are_described_by_it(docent: Docent, server: ModelServer) -> None:
    take_in(docent, PAGES, "teapot", "--describe")
    documents = docent.call("GET", "/api/documents/?collection=teapot").body["results"]
    assert {each["summary"] for each in documents} == {"They talked about the Teapot."}
