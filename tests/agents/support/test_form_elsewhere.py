"""Form elsewhere: the dialogue without a model before the billing server, also while that fails."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from agents.billing import rest
from agents.billing.models import RefundCase
from agents.billing.rest import RestBilling
from agents.billing.system import billing_system, loaded
from agents.tools import toolbox
from assistant.lab.billing_server import BillingServer, Mode, Refused, serving
from tests.agents.support.talk import Talk
from tests.conftest import Begin

WISH = "I want to request a refund for invoice INV-20251001"
REASON = "Reason: overcharge. Amount: PLN 20.50"


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[BillingServer]:
    """The system that BILLING_SYSTEM names; nobody waits between attempts."""
    for module in (rest, toolbox):
        monkeypatch.setattr(module, "sleep", lambda seconds: None)
    with serving() as server:
        settings.BILLING_SYSTEM = "agents.billing.rest.RestBilling"
        settings.BILLING_API_URL = server.address
        loaded.cache_clear()
        system = billing_system()
        yield server
        loaded.cache_clear()
        assert isinstance(system, RestBilling)
        system.close()


@pytest.fixture
def talk(begin: Begin, server: BillingServer) -> Talk:
    """A customer of that system."""
    return Talk(begin)


def test_a_refund_over_three_messages_is_a_case_there_and_none_here(
    talk: Talk, server: BillingServer
) -> None:
    assert "How much is to be paid back, in PLN?" in talk.say(WISH)
    assert "20.50 PLN of invoice INV-20251001" in talk.say(REASON)
    assert server.books.cases == {}
    assert "Refund case R20001 is open: 20.50 PLN" in talk.say("yes")
    (case,) = server.books.cases.values()
    assert (case["customer"], case["reason"]) == ("u123", "overcharge")
    assert talk.state["billing_case_id"] == "R20001"
    assert "R20001" in talk.say("What became of my refund?")
    assert not RefundCase.objects.exists()


def test_what_the_system_refuses_is_said_in_its_words(
    talk: Talk, server: BillingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Refused(409, "Nothing is refunded while you move house.")

    talk.say(WISH)
    talk.say(REASON)
    monkeypatch.setattr(server.books, "_refuse", refuse)
    assert "Nothing is refunded while you move house." in talk.say("yes")
    assert server.books.cases == {}


@pytest.mark.parametrize("mode", [Mode.FAILING, Mode.WRONG_JSON, Mode.HTML])
def test_while_the_system_fails_the_customer_gets_a_sentence_and_a_number(
    talk: Talk, server: BillingServer, mode: Mode
) -> None:
    server.mode = mode
    said = talk.say(WISH)
    assert "I could not look everything up" in said
    assert "BIL-" in said


def test_when_the_answer_is_lost_the_customer_asks_and_has_one_case(
    talk: Talk, server: BillingServer
) -> None:
    talk.say(WISH)
    talk.say(REASON)
    server.mode = Mode.LOST
    lost = talk.say("yes")
    assert "It is not known whether what you asked for was done" in lost
    assert "look everything up" not in lost
    server.mode = Mode.OK
    assert "R20001" in talk.say("yes")
    assert len(server.books.cases) == 1
