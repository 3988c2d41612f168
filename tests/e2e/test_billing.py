"""Billing, end to end: refunds over three messages, pivots, and one case whatever is killed.

Each with a scripted model and, by switching off all models, without any.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from assistant.lab.model_server import Call
from tests.agents.tools.bench import asks, want
from tests.e2e.conftest import Docent, Stack
from tests.e2e.test_crashes import endings
from tests.scripted import Response
from tests.sensible import Sensible

CUSTOMER = """
WITH customer AS (INSERT INTO billing_customer (user_id, name) VALUES (%(user)s, '') RETURNING id),
plan AS (SELECT id FROM billing_plan WHERE code = 'M'),
subscription AS (INSERT INTO billing_subscription (customer_id, plan_id, status, started)
    SELECT customer.id, plan.id, 'active', '2025-08-15' FROM customer, plan RETURNING id)
INSERT INTO billing_invoice (number, subscription_id, amount, issued, what)
    SELECT %(invoice)s, subscription.id, 120, '2025-10-01', '' FROM subscription
"""
CASES = """
SELECT refund.amount::text, refund.reason FROM billing_refundcase AS refund
JOIN billing_invoice AS invoice ON invoice.id = invoice_id WHERE number = %s
"""
MOMENTS = ("before_calls", "after_use", "before_commit_of_effect", "after_call")
AFTER_EFFECT = ("before_commit_of_effect", "before_finish", "after_commit")


@pytest.fixture(autouse=True)
def billed(server: Sensible) -> None:
    """Every test begins with sensible replies, by which everything is billing's."""
    server.reset()
    server.says("router", {"route": "billing", "confidence": 0.9})


@pytest.fixture(scope="module")
def plans(stack: Stack) -> Docent:
    """Docent with the plans of the demonstration set."""
    done = stack.docent.manage("load_demo_billing")
    assert done.returncode == 0, done.stderr
    return stack.docent


@dataclass
class Customer:
    """A customer of their own with one invoice of 120 PLN, in one conversation."""

    docent: Docent
    user_id: str = field(default_factory=lambda: f"u-{uuid4().hex[:12]}")
    invoice: str = ""

    def __post_init__(self) -> None:
        self.invoice = f"INV-{uuid4().int % 10**10:010}"
        self._query(CUSTOMER, {"user": self.user_id, "invoice": self.invoice})

    def say(self, message: str, **more: Any) -> dict[str, Any]:
        """Say something in the conversation; return the reply."""
        said = {"session_id": f"s-{self.user_id}", "user_id": self.user_id, **more}
        reply = self.docent.ask(message, **said)
        assert reply["status"] == "completed", reply
        return reply

    def cases(self) -> list[tuple[str, str]]:
        """Return amount and reason of each case for the invoice."""
        return self._query(CASES, [self.invoice])

    def _query(self, sql: str, values: Any) -> list[Any]:
        with psycopg.connect(self.docent.environment["DATABASE_URL"]) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def customer(plans: Docent) -> Customer:
    return Customer(plans)


@pytest.fixture
def without_models(stack: Stack) -> Iterator[None]:
    """No role has a model."""
    with stack.switched(MODELS={}):
        yield


def opening(invoice: str, amount: str = "100") -> Response:
    """Return a reply of a model that opens a case."""
    wish = want("open_refund_case", invoice=invoice, amount=amount, reason="overcharge")
    return asks(wish)


def case_in(text: str) -> str:
    """Return the one case that a text names."""
    (case,) = set(re.findall(r"R\d{5,}", text))
    return str(case)


def assert_opened(customer: Customer, reply: dict[str, Any], amount: str) -> None:
    """The case is there, the reply tells it, and the conversation keeps it."""
    assert customer.cases() == [(amount, "overcharge")]
    assert (reply["route"], reply["last_agent"]) == ("billing", "billing")
    assert "open_refund_case" in reply["used_tools"]
    excerpt = reply["state_excerpt"]
    assert excerpt["billing_case_id"] == case_in(reply["reply"])
    assert excerpt["context_flags"] == {"refund_in_progress": True}
    assert excerpt["refund_form"] is None


@pytest.mark.usefixtures("without_models")
@pytest.mark.parametrize(
    ("messages", "amount", "language"),
    [
        (
            ["I want to request a refund for invoice {}", "Reason: overcharge. Amount: PLN 100",
             "yes"],
            "100.00", "en",
        ),
        (
            ["Chcę refund za fakturę {}", "Powód: overcharge, kwota 45 PLN", "tak"],
            "45.00", "pl",
        ),
    ],
    ids=["English", "Polish and English"],
)  # fmt: skip
def test_a_refund_over_three_messages_without_a_model(
    customer: Customer, server: Sensible, messages: list[str], amount: str, language: str
) -> None:
    wish, details, consent = messages
    asked = customer.say(wish.format(customer.invoice))
    assert asked["state_excerpt"]["refund_form"]["invoice"] == customer.invoice
    assert asked["state_excerpt"]["context_flags"] == {"refund_in_progress": True}
    assert len(asked["suggested_actions"]) == 6
    shown = customer.say(details)
    assert f"{amount} PLN" in shown["reply"]
    assert customer.cases() == []
    opened = customer.say(consent)
    assert_opened(customer, opened, amount)
    assert {each["language"] for each in (asked, shown, opened)} == {language}
    assert {each["mode"] for each in (asked, shown, opened)} == {"extractive"}
    assert not server.server.ledger


@pytest.mark.parametrize(
    ("messages", "replies"),
    [
        (
            ["I want to request a refund for invoice {}", "Reason: overcharge. Amount: PLN 100",
             "yes"],
            ["Why, and how much?", "Shall I open a case?", "Case {} is open."],
        ),
        (
            ["Chcę refund za fakturę {}", "Powód: overcharge, kwota 100 PLN", "tak"],
            ["Dlaczego i ile?", "Czy otworzyć sprawę?", "Sprawa {} jest otwarta."],
        ),
    ],
    ids=["English", "Polish and English"],
)  # fmt: skip
def test_a_refund_over_three_messages_with_a_model(
    customer: Customer, server: Sensible, messages: list[str], replies: list[str]
) -> None:
    ask, confirm, tell = replies

    def told(asked: Call) -> Response:
        return Response(tell.format(case_in(asked.body["messages"][-1]["content"])))

    server.says("billing", Response(ask), Response(confirm), opening(customer.invoice), told)
    for message in messages[:2]:
        customer.say(message.format(customer.invoice))
        assert customer.cases() == []
    opened = customer.say(messages[2])
    assert opened["mode"] == "model"
    assert_opened(customer, opened, "100.00")


PIVOT = [
    ("How do I descale the heater?", "documentation"),
    ("How much do I owe?", "billing"),
    ("How do I install the WordPress plugin?", "documentation"),
]


def assert_pivots(customer: Customer, before: Callable[[str], None]) -> None:
    """The conversation goes to billing and back, and each answer is the right agent's."""
    for message, route in PIVOT:
        before(route)
        reply = customer.say(message)
        by = "billing" if route == "billing" else "quality"
        assert (reply["route"], reply["last_agent"]) == (route, by)
        assert reply["state_excerpt"]["last_agent"] == by
        assert bool(reply["citations"]) == (route == "documentation")


@pytest.mark.usefixtures("without_models")
def test_a_conversation_goes_to_billing_and_back_without_a_model(customer: Customer) -> None:
    assert_pivots(customer, lambda _: None)


def test_a_conversation_goes_to_billing_and_back_with_a_model(
    customer: Customer, server: Sensible
) -> None:
    server.says("billing", asks(want("get_subscription")), Response("You have the plan M."))
    assert_pivots(
        customer, lambda route: server.says("router", {"route": route, "confidence": 0.9})
    )


@pytest.mark.parametrize("by_model", [True, False])
def test_the_same_message_twice_with_one_key_opens_one_case(
    customer: Customer, server: Sensible, stack: Stack, *, by_model: bool
) -> None:
    server.says("billing", opening(customer.invoice), Response("It is open."))
    message = f"Refund 100 PLN of {customer.invoice}, overcharge"
    stack.switch({} if by_model else {"MODELS": {}})
    if not by_model:
        customer.say(message)
        message = "yes"
    body = {"message": message, "session_id": f"s-{customer.user_id}"}
    body["user_id"] = customer.user_id
    turns = {send(customer.docent, body)["turn_id"] for _ in range(2)}
    stack.switch({})
    assert len(turns) == 1
    assert customer.cases() == [("100.00", "overcharge")]


def send(docent: Docent, body: dict[str, str]) -> dict[str, Any]:
    """Send a message with its Idempotency-Key."""
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {docent.key}",
        "Idempotency-Key": body["user_id"],
    }
    answer = docent.send("POST", "/api/chat/", json.dumps(body), headers)
    assert answer.status == 200, answer.body
    reply: dict[str, Any] = answer.body
    return reply


def killed(customer: Customer, stack: Stack, message: str, moment: str) -> dict[str, Any]:
    """Say something while the worker of billing dies; return the reply once the turn has ended."""
    stack.deaths.write_text(f"{moment} billing")
    said = {"session_id": f"s-{customer.user_id}", "user_id": customer.user_id, "wait": False}
    begun = customer.docent.call("POST", "/api/chat/", {"message": message, **said})
    assert begun.status == 202, begun.body
    (reply,) = endings(customer.docent, [begun.body["turn_id"]])
    assert stack.deaths.read_text() == "", f"nobody came to {moment}"
    return reply


def on_every_change(moments: Sequence[str], *always: str) -> list[Any]:
    """Return the moments, of which all but some are tried with `--every-moment` alone."""
    return [
        pytest.param(moment, marks=[] if moment in always else pytest.mark.every_moment)
        for moment in moments
    ]


@pytest.mark.parametrize("moment", on_every_change(MOMENTS, "after_use", "before_commit_of_effect"))
def test_a_worker_killed_around_the_tool_that_a_model_called_opens_one_case(
    customer: Customer, server: Sensible, stack: Stack, moment: str
) -> None:
    server.says("billing", opening(customer.invoice), Response("It is open."))
    reply = killed(customer, stack, f"Refund 100 PLN of {customer.invoice}", moment)
    assert (reply["status"], reply["reply"]) == ("completed", "It is open.")
    assert customer.cases() == [("100.00", "overcharge")]
    assert reply["used_tools"] == ["open_refund_case"]
    assert server.server.prompts().count("billing") == 2


@pytest.mark.usefixtures("without_models")
@pytest.mark.parametrize("moment", on_every_change(AFTER_EFFECT, "before_finish"))
def test_a_worker_killed_around_the_case_that_a_yes_opens_opens_one(
    customer: Customer, stack: Stack, moment: str
) -> None:
    customer.say(f"I want a refund for {customer.invoice}: overcharge, 100 PLN")
    reply = killed(customer, stack, "yes", moment)
    assert reply["status"] == "completed"
    assert_opened(customer, reply, "100.00")
