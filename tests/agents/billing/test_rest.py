"""REST: what is asked of the billing server, and what its answers, lacks and faults come to."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from agents.billing import rest
from agents.billing.rest import LARGEST_ANSWER, RestBilling
from agents.billing.system import (
    BillingError,
    BrokenSystem,
    Case,
    LateSystem,
    RefusedRefund,
    UnknownCustomer,
    UnusableSystem,
    Wish,
)
from assistant.lab.billing_server import BillingServer, Mode, serving

KEY = "a-secret-key"
WISH = Wish("INV-20251001", Decimal("20.50"), "overcharge", "PLN", "Charged twice.")


Made = Callable[[str], RestBilling]


@pytest.fixture
def made(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Make a system that asks an address, and waits for nobody between attempts."""
    monkeypatch.setattr(rest, "sleep", lambda seconds: None)
    with ExitStack() as stack:

        def make(address: str) -> RestBilling:
            settings.BILLING_API_URL, settings.BILLING_API_KEY = address, KEY
            system = RestBilling()
            stack.callback(system.close)
            return system

        yield make


@pytest.fixture
def server() -> Iterator[BillingServer]:
    """A server that works, and wants the key."""
    with serving(KEY) as server:
        yield server


@pytest.fixture
def billing(server: BillingServer, made: Made) -> RestBilling:
    """The system that asks it."""
    return made(server.address)


def opened(billing: RestBilling, key: str = "k1", seconds: float = 5.0) -> Case:
    """Open the case."""
    return billing.open_case("u123", WISH, key=key, seconds=seconds)


def test_everything_is_asked_for_the_customer_and_read_in_its_shape(
    billing: RestBilling, server: BillingServer
) -> None:
    (subscription,) = billing.subscriptions("u123", seconds=5)
    assert (subscription.plan, str(subscription.price_a_month)) == ("M", "45.00")
    newest, _ = billing.invoices("u123", seconds=5)
    assert (newest.invoice, newest.what, newest.cases) == ("INV-20251001", "M 100 GB, 2025-10", [])
    case = opened(billing)
    assert (case.case, case.amount, case.status) == ("R20001", Decimal("20.50"), "opened")
    assert billing.case("u123", " r20001", seconds=5) == case
    assert billing.invoices("u123", seconds=5)[0].cases == ["R20001, opened"]
    assert billing.policy(seconds=5).cooling_off_days == 14
    assert {asked.authorization for asked in server.ledger} == {f"Bearer {KEY}"}
    wish = server.ledger[2]
    assert (wish.method, wish.path, wish.key) == ("POST", "/refund-cases", "k1")
    assert wish.values == {
        "customer": "u123", "invoice": "INV-20251001", "amount": "20.50", "currency": "PLN",
        "reason": "overcharge", "description": "Charged twice.",
    }  # fmt: skip


def test_a_case_is_opened_once_for_a_key_and_once_for_an_invoice(
    billing: RestBilling, server: BillingServer
) -> None:
    assert opened(billing) == opened(billing)
    with pytest.raises(RefusedRefund, match="has the case R20001 already"):
        opened(billing, "k2")
    assert len(server.books.cases) == 1


@pytest.mark.parametrize("user_id", ["u999", "../u123", "u123&customer=u456", "u123/", "%75123"])
def test_an_odd_user_id_is_nobody_and_never_somebody_else(
    billing: RestBilling, server: BillingServer, user_id: str
) -> None:
    with pytest.raises(UnknownCustomer):
        billing.invoices(user_id, seconds=5)
    assert server.ledger[-1].values == {"customer": user_id}


def test_what_is_anothers_does_not_exist(billing: RestBilling) -> None:
    opened(billing)
    assert billing.case("u456", "R20001", seconds=5) is None
    assert billing.case("u123", "../policy", seconds=5) is None
    with pytest.raises(RefusedRefund, match="no invoice of this number"):
        billing.open_case("u456", WISH, key="k2", seconds=5)


def test_a_wrong_key_is_a_fault_that_does_not_hold_it(
    billing: RestBilling, server: BillingServer
) -> None:
    server.key = "another"
    with pytest.raises(BrokenSystem, match=r"^GET /invoices answered 401\.$") as raised:
        billing.invoices("u123", seconds=5)
    assert KEY not in repr(raised.value) + repr(billing.__dict__)


def test_a_server_that_fails_is_asked_three_times_and_then_is_away(
    billing: RestBilling, server: BillingServer
) -> None:
    server.mode = Mode.FAILING
    with pytest.raises(BrokenSystem, match="GET /invoices answered 503"):
        billing.invoices("u123", seconds=5)
    assert len(server.ledger) == 3


def test_a_server_that_comes_back_is_asked_again_with_the_same_key(
    billing: RestBilling, server: BillingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.mode = Mode.LOST

    def mend(seconds: float) -> None:
        server.mode = Mode.OK

    monkeypatch.setattr(rest, "sleep", mend)
    assert opened(billing).case == "R20001"
    assert [asked.key for asked in server.ledger] == ["k1", "k1"]
    assert len(server.books.cases) == 1


def test_that_nobody_is_there_is_a_fault(made: Made) -> None:
    with pytest.raises(BrokenSystem, match="GET /subscriptions: ConnectError"):
        made("http://127.0.0.1:9").subscriptions("u123", seconds=5)


@pytest.mark.parametrize("mode", [Mode.HANGING, Mode.SLOW])
def test_who_does_not_answer_in_time_is_late_and_not_asked_again(
    billing: RestBilling, server: BillingServer, mode: Mode
) -> None:
    server.mode = mode
    with pytest.raises(LateSystem, match="was not answered in time"):
        billing.invoices("u123", seconds=0.5)
    assert len(server.ledger) == 1


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        (Mode.WRONG_JSON, "^GET /invoices answered 200 with what it should not: the body: Input"),
        (Mode.HTML, "^GET /invoices answered 200 with what it should not: the body: Invalid JSON"),
    ],
)
def test_an_answer_of_another_shape_is_a_fault_that_says_what_is_wrong(
    billing: RestBilling, server: BillingServer, mode: Mode, says: str
) -> None:
    server.mode = mode
    with pytest.raises(BrokenSystem, match=says):
        billing.invoices("u123", seconds=5)
    assert len(server.ledger) == 1


Handler = Callable[[Request], Response]
Answering = Callable[[Handler], RestBilling]


@pytest.fixture
def answering(httpserver: HTTPServer, made: Made) -> Answering:
    """Make a system whose server answers everything in one way."""

    def make(answer: Handler) -> RestBilling:
        httpserver.expect_request("/refund-cases").respond_with_handler(answer)
        httpserver.expect_request("/invoices").respond_with_handler(answer)
        return made(httpserver.url_for("/"))

    return make


def said(status: int, body: Any) -> Handler:
    """Answer so."""
    return lambda request: Response(json.dumps(body), status, content_type="application/json")


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (409, {"detail": "It is\n too late."}, RefusedRefund, r"^It is too late\.$"),
        (422, {"detail": "x" * 2000}, RefusedRefund, "^x{500}$"),
        (422, {"detail": [{"loc": ["amount"]}]}, BrokenSystem, "answered 422"),
        (422, ["no"], BrokenSystem, "answered 422"),
        (404, {"detail": "Not Found"}, BrokenSystem, "answered 404"),
        (404, {"code": "unknown_customer"}, UnknownCustomer, "^$"),
        (302, {}, BrokenSystem, "answered 302"),
        (429, {}, BrokenSystem, "answered 429"),
        (200, {"case": "R1", "status": "lost"}, BrokenSystem, "status: Input should be 'opened'"),
    ],
)
def test_what_is_no_success_is_a_refusal_an_unknown_customer_or_a_fault(
    answering: Answering,
    status: int,
    body: Any,
    error: type[BillingError],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        opened(answering(said(status, body)))


def test_faults_hold_nothing_that_was_said_of_a_customer(answering: Answering) -> None:
    rows = [{"invoice": "I-1", "issued": "hunter2", "amount": "hunter2", "currency": "hunter2"}]
    billing = answering(said(200, rows))
    with pytest.raises(BrokenSystem, match=r"0\.issued: .*0\.amount: ") as raised:
        billing.invoices("u123", seconds=5)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_an_answer_without_end_is_not_read_to_its_end(answering: Answering) -> None:
    def flood(request: Request) -> Response:
        return Response(b" " * 65536 for _ in range(LARGEST_ANSWER // 65536 + 2))

    billing = answering(flood)
    with pytest.raises(BrokenSystem, match="more than 1,000,000 bytes"):
        billing.invoices("u123", seconds=5)


def test_an_answer_that_drips_is_late_as_well(answering: Answering) -> None:
    def drip(request: Request) -> Response:
        def pieces() -> Iterator[bytes]:
            for _ in range(20):
                time.sleep(0.1)
                yield b" "

        return Response(pieces())

    billing = answering(drip)
    with pytest.raises(LateSystem):
        billing.invoices("u123", seconds=0.5)


def test_without_an_address_it_cannot_be_used(settings: Settings) -> None:
    settings.BILLING_API_URL = ""
    with pytest.raises(UnusableSystem, match="needs BILLING_API_URL"):
        RestBilling()
