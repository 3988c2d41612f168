"""REST: the system of billing behind a small HTTP API, and an example for a class of one's own.

The API is described in docs/support.md; `python3 -m assistant.lab.billing_server` speaks it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from http import HTTPStatus
from typing import TypeVar

import httpx2
from django.conf import settings
from pydantic import BaseModel, TypeAdapter, ValidationError

from agents.billing.system import (
    BillingSystem,
    BrokenSystem,
    Case,
    Invoice,
    LateSystem,
    Policy,
    RefusedRefund,
    Subscription,
    UnknownCustomer,
    UnusableSystem,
    Wish,
)

ATTEMPTS = 3
PAUSE_SECONDS = 0.2  # before the second attempt; twice as long before the third
# Whoever waits is told a moment before they would give up, and no thread stays behind.
OF_THE_TIME = 0.9
LARGEST_ANSWER = 1_000_000  # bytes
LONGEST_SENTENCE = 500  # characters
PROBLEMS = 3
UNKNOWN_CUSTOMER = "unknown_customer"

SUBSCRIPTIONS = TypeAdapter(list[Subscription])
INVOICES = TypeAdapter(list[Invoice])
CASES = TypeAdapter(list[Case])
CASE = TypeAdapter(Case)
POLICY = TypeAdapter(Policy)
T = TypeVar("T")
sleep: Callable[[float], None] = time.sleep


class Refusal(BaseModel):
    """What an answer says that refuses something."""

    code: str = ""
    detail: str = ""


class SystemAway(BrokenSystem):
    """The system did not answer, or answered that it cannot now; it may the next time."""


class RestBilling(BillingSystem):
    """A system behind BILLING_API_URL, asked with BILLING_API_KEY.

    Whatever is asked is asked again, up to three times, when the connection fails or the server
    does (429 and 5xx): opening a case, too, as it carries an Idempotency-Key.
    """

    def __init__(self) -> None:
        if not settings.BILLING_API_URL:
            raise UnusableSystem(
                "RestBilling needs BILLING_API_URL, an address like https://billing.example/api"
            )

    def subscriptions(self, user_id: str, *, seconds: float) -> Sequence[Subscription]:
        """GET /subscriptions."""
        return self._get(SUBSCRIPTIONS, "/subscriptions", seconds, customer=user_id)

    def invoices(self, user_id: str, *, seconds: float) -> Sequence[Invoice]:
        """GET /invoices."""
        return self._get(INVOICES, "/invoices", seconds, customer=user_id)

    def open_case(self, user_id: str, wish: Wish, *, key: str, seconds: float) -> Case:
        """POST /refund-cases."""
        body = {"customer": user_id, **asdict(wish), "amount": str(wish.amount)}
        request = self._client.build_request(
            "POST", "/refund-cases", json=body, headers={"Idempotency-Key": key}
        )
        return self._ask(CASE, request, seconds)

    def case(self, user_id: str, number: str, *, seconds: float) -> Case | None:
        """GET /refund-cases."""
        found = self._get(CASES, "/refund-cases", seconds, customer=user_id, number=number)
        return found[0] if found else None

    def policy(self, *, seconds: float) -> Policy:
        """GET /refund-policy."""
        return self._get(POLICY, "/refund-policy", seconds)

    def close(self) -> None:
        """End the connections that are kept for the next request."""
        self._client.close()

    @cached_property
    def _client(self) -> httpx2.Client:
        headers = {"Accept": "application/json"}
        if settings.BILLING_API_KEY:
            headers["Authorization"] = f"Bearer {settings.BILLING_API_KEY}"
        return httpx2.Client(base_url=settings.BILLING_API_URL, headers=headers)

    def _get(self, shape: TypeAdapter[T], path: str, seconds: float, **values: str) -> T:
        return self._ask(shape, self._client.build_request("GET", path, params=values), seconds)

    def _ask(self, shape: TypeAdapter[T], request: httpx2.Request, seconds: float) -> T:
        """Return the answer in its shape, after as many attempts as there is time for."""
        until = time.monotonic() + seconds * OF_THE_TIME
        attempt = 1
        while True:
            try:
                return self._answer(shape, request, until)
            except SystemAway:
                pause = PAUSE_SECONDS * attempt
                if attempt == ATTEMPTS or time.monotonic() + pause >= until:
                    raise
            sleep(pause)
            attempt += 1

    def _answer(self, shape: TypeAdapter[T], request: httpx2.Request, until: float) -> T:
        what = f"{request.method} {request.url.path}"
        request.extensions["timeout"] = httpx2.Timeout(_left(until, what)).as_dict()
        try:
            response = self._client.send(request, stream=True)
            try:
                body = _read(response, until, what)
            finally:
                response.close()
        except httpx2.TimeoutException as error:
            raise LateSystem(f"{what} was not answered in time.") from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise SystemAway(f"{what}: {type(error).__name__}: {error}") from error
        if response.is_success:
            return _shaped(shape, body, f"{what} answered {response.status_code} with")
        raise _failure(response, body, what)


def _left(until: float, what: str) -> float:
    """Return the seconds that are left. Raises LateSystem."""
    left = until - time.monotonic()
    if left <= 0:
        raise LateSystem(f"{what} was not answered in time.")
    return left


def _read(response: httpx2.Response, until: float, what: str) -> bytes:
    """Return the body. Raises LateSystem for one that drips, and BrokenSystem for one too large."""
    body = bytearray()
    for piece in response.iter_bytes():
        _left(until, what)
        body += piece
        if len(body) > LARGEST_ANSWER:
            raise BrokenSystem(f"{what} answered with more than {LARGEST_ANSWER:,} bytes.")
    return bytes(body)


def _failure(response: httpx2.Response, body: bytes, what: str) -> Exception:
    """Return what an answer without success means.

    A 404 alone says nothing of customers: nothing is found at a wrong address either.
    """
    status, said = response.status_code, _refusal(body)
    if status == HTTPStatus.NOT_FOUND and said.code == UNKNOWN_CUSTOMER:
        return UnknownCustomer()
    if status in {HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY} and said.detail:
        return RefusedRefund(said.detail)
    is_away = response.is_server_error or status == HTTPStatus.TOO_MANY_REQUESTS
    return (SystemAway if is_away else BrokenSystem)(f"{what} answered {status}.")


def _refusal(body: bytes) -> Refusal:
    """Return what a refusal says; nothing where it is none of the API's."""
    try:
        said = Refusal.model_validate_json(body)
    except ValidationError:
        return Refusal()
    return Refusal(code=said.code, detail=" ".join(said.detail.split())[:LONGEST_SENTENCE])


def _shaped(shape: TypeAdapter[T], body: bytes, what: str) -> T:
    """Return what an answer holds. Raises BrokenSystem for what is not documented.

    Values are left out of the message: they are a customer's.
    """
    try:
        return shape.validate_json(body)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'the body'}: {each['msg']}"
            for each in error.errors(include_input=False)[:PROBLEMS]
        )
        raise BrokenSystem(f"{what} what it should not: {problems}.") from None
