"""Billing server: a small billing system over HTTP, to try `RestBilling` with and to test it.

`python3 -m assistant.lab.billing_server` runs it and needs nothing but Python. Its customers u123
and u456 are those of `load_demo_billing`; cases are kept in memory and numbered from R20001. The
API is described in docs/support.md; `PUT /mode` has the server misbehave.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Values = dict[str, Any]

CURRENCY = "PLN"
PLANS = {"M": ("M 100 GB", "45.00"), "L": ("L Unlimited", "65.00")}
# Of each customer: the plan, its first day, and the invoices by number.
CUSTOMERS = {
    "u123": ("M", "2025-08-15", {"INV-20251001": "2025-10-01", "INV-20250901": "2025-09-01"}),
    "u456": ("L", "2025-06-01", {"INV-20251002": "2025-10-02", "INV-20250902": "2025-09-02"}),
}
REASONS = ("overcharge", "service_outage", "within_cooling_off", "other")
COOLING_OFF_DAYS = 14
FIRST_CASE = 20001
DAYS = 7  # in which a case is decided
SLOW_SECONDS = 2.0
HTML = b"<!doctype html><html><body><h1>Sign in</h1></body></html>"


class Mode(StrEnum):
    """How the server behaves."""

    OK = "ok"
    SLOW = "slow"  # answers after two seconds
    FAILING = "failing"  # answers 503 and does nothing
    HANGING = "hanging"  # takes the request, and does and answers nothing
    LOST = "lost"  # opens a case and breaks the connection before it says so
    WRONG_JSON = "wrong-json"  # does it, and answers with JSON of another shape
    HTML = "html"  # answers with a page, as a proxy does


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, detail: str, code: str = "") -> None:
        super().__init__(detail)
        self.status, self.body = status, {"code": code, "detail": detail}


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    values: Values  # of the address, and of the body
    key: str = ""  # Idempotency-Key
    authorization: str = ""


@dataclass
class Books:
    """The cases that were opened, by Idempotency-Key, and what there is to know of customers."""

    cases: dict[str, Values] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Any:
        """Return the body of the answer. Raises Refused."""
        parts = {
            "GET /subscriptions": self.subscriptions,
            "GET /invoices": self.invoices,
            "GET /refund-cases": self.cases_of,
            "POST /refund-cases": self.open_case,
            "GET /refund-policy": self.policy,
        }
        part = parts.get(f"{asked.method} {asked.path}")
        if part is None:
            raise Refused(404, "There is nothing at this address.")
        return part(asked)

    def subscriptions(self, asked: Asked) -> list[Values]:
        """Return what the customer subscribed to."""
        code, started, _ = _customer(asked)
        name, price = PLANS[code]
        until = date.fromisoformat(started) + timedelta(days=COOLING_OFF_DAYS)
        return [
            {
                "plan": code,
                "name": name,
                "price_a_month": price,
                "currency": CURRENCY,
                "status": "active",
                "started": started,
                "cooling_off_until": until.isoformat(),
            }
        ]

    def invoices(self, asked: Asked) -> list[Values]:
        """Return the customer's invoices, the newest first."""
        code, _, issued = _customer(asked)
        name, price = PLANS[code]
        return [
            {
                "invoice": number,
                "issued": day,
                "amount": price,
                "currency": CURRENCY,
                "for": f"{name}, {day[:7]}",
                "cases": [f"{each['case']}, {each['status']}" for each in self._about(number)],
            }
            for number, day in issued.items()
        ]

    def cases_of(self, asked: Asked) -> list[Values]:
        """Return the case of this number, if it is the customer's."""
        _customer(asked)
        wanted = asked.values["customer"], asked.values.get("number", "").strip().upper()
        return [each for each in self.cases.values() if (each["customer"], each["case"]) == wanted]

    def open_case(self, asked: Asked) -> Values:
        """Open a case, once for a key."""
        if not asked.key:
            raise Refused(400, "Send an Idempotency-Key.")
        code, _, issued = _customer(asked)
        with self._lock:
            if earlier := self.cases.get(asked.key):
                return earlier
            self._refuse(asked.values, issued, PLANS[code][1])
            due = datetime.now(UTC).date() + timedelta(days=DAYS)
            made = {
                "customer": asked.values["customer"],
                "case": f"R{FIRST_CASE + len(self.cases)}",
                "status": "opened",
                "invoice": asked.values["invoice"],
                "amount": asked.values["amount"],
                "currency": CURRENCY,
                "reason": asked.values["reason"],
                "decided_by": due.isoformat(),
                "next_steps": "The billing department looks at it and writes to you.",
            }
            return self.cases.setdefault(asked.key, made)

    def policy(self, asked: Asked) -> Values:
        """Return the rules."""
        return {
            "most_of_one_case": "1000.00",
            "reasons": REASONS,
            "cooling_off_days": COOLING_OFF_DAYS,
            "decided_in_business_days": 5,
            "paid_back_days_after_approval": "7-10",
            "not_refundable": ["Activation fees"],
            "notes": ["An invoice is refunded once."],
        }

    def _about(self, invoice: str) -> list[Values]:
        return [each for each in self.cases.values() if each["invoice"] == invoice]

    def _refuse(self, wish: Values, issued: dict[str, str], price: str) -> None:
        """Raise Refused for what may not be refunded."""
        number = wish.get("invoice")
        if number not in issued:
            raise Refused(422, "You have no invoice of this number.")
        if earlier := self._about(number):
            raise Refused(409, f"The invoice {number} has the case {earlier[0]['case']} already.")
        if not _is_amount(wish.get("amount"), price):
            raise Refused(422, f"The invoice {number} is of {price} {CURRENCY}, no more.")
        if wish.get("currency") not in {"", None, CURRENCY}:
            raise Refused(422, f"The invoice {number} is in {CURRENCY}.")
        if wish.get("reason") not in REASONS:
            raise Refused(422, "This is no reason for a refund.")


def _customer(asked: Asked) -> tuple[str, str, dict[str, str]]:
    """Return plan, first day and invoices of whom it is about. Raises Refused."""
    found = CUSTOMERS.get(str(asked.values.get("customer", "")))
    if found is None:
        raise Refused(404, "There is no such customer.", "unknown_customer")
    return found


def _is_amount(text: Any, most: str) -> bool:
    try:
        return 0 < Decimal(str(text)) <= Decimal(most)
    except InvalidOperation:
        return False


class BillingServer(ThreadingHTTPServer):
    """The server, on this machine. Whoever asks sends the key, if there is one."""

    daemon_threads = True

    def __init__(self, port: int = 0, key: str = "", *, is_loud: bool = False) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.key, self.is_loud = key, is_loud
        self.books = Books()
        self.mode = Mode.OK
        self.ledger: list[Asked] = []
        self.stopped = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of who went away before the answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """What BILLING_API_URL is set to."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Reads a request, and answers it as the mode of the server says."""

    server: BillingServer
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answer."""
        self._serve()

    do_POST = do_PUT = do_GET

    def _serve(self) -> None:
        asked = self._asked()
        if (asked.method, asked.path) == ("PUT", "/mode"):
            self._switch(asked)
            return
        self.server.ledger.append(asked)
        mode = self.server.mode
        if mode is Mode.HANGING:
            self.server.stopped.wait()
        elif mode is Mode.FAILING:
            self._send(503, {"detail": "Down for maintenance."})
        elif mode is Mode.HTML:
            self._send(200, HTML)
        else:
            time.sleep(SLOW_SECONDS if mode is Mode.SLOW else 0)
            self._answer(asked, mode)

    def _asked(self) -> Asked:
        address = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"{}")
        return Asked(
            self.command,
            address.path,
            dict(parse_qsl(address.query)) | (body if isinstance(body, dict) else {}),
            self.headers.get("Idempotency-Key", ""),
            self.headers.get("Authorization", ""),
        )

    def _switch(self, asked: Asked) -> None:
        try:
            self.server.mode = Mode(asked.values.get("mode", ""))
            self._send(200, {"mode": self.server.mode})
        except ValueError:
            self._send(422, {"detail": f"mode is one of: {', '.join(Mode)}"})

    def _answer(self, asked: Asked, mode: Mode) -> None:
        try:
            if self.server.key and asked.authorization != f"Bearer {self.server.key}":
                raise Refused(401, "The key is wrong.")  # noqa: TRY301 sent like the others
            status, body = 200, self.server.books.answer(asked)
        except Refused as refusal:
            status, body = refusal.status, refusal.body
        if mode is Mode.LOST and asked.method == "POST":
            self.close_connection = True
        else:
            self._send(status, {"unexpected": True} if mode is Mode.WRONG_JSON else body)

    def _send(self, status: int, body: Any) -> None:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        kind = "text/html" if isinstance(body, bytes) else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *values: Any) -> None:  # noqa: A002 the name it has
        """Print what was asked and the status, for who watches."""
        if self.server.is_loud:
            print(f"{self.server.mode}: {format % values}", flush=True)  # noqa: T201 its output


@contextmanager
def serving(key: str = "") -> Iterator[BillingServer]:
    """Run a server on a free port for the time of the block."""
    server = BillingServer(key=key)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    """Run a server until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8700)
    parser.add_argument("--key", default="", help="who asks has to send it (none)")
    parser.add_argument("--mode", type=Mode, choices=[*Mode], default=Mode.OK)
    options = parser.parse_args()
    try:
        server = BillingServer(options.port, options.key, is_loud=True)
    except OSError as error:
        sys.exit(f"Port {options.port} cannot be used: {error.strerror}. Choose another: --port.")
    server.mode = options.mode
    print(f"BILLING_API_URL={server.address}, customers {', '.join(CUSTOMERS)}")  # noqa: T201
    print(f"PUT /mode makes it {', '.join(Mode)}. Ctrl-C stops it.")  # noqa: T201
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.stopped.set()


if __name__ == "__main__":
    main()
