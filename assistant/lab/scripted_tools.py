"""Scripted tools: what a model does with the tools of billing, well and badly, as data.

Every line is one customer's message. The billing system is the test server, which may fail as well.
"""

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agents.llm.requests import ToolCall
from agents.names import Role
from agents.tools.tool import TOOLS, Arguments, Caller, tool
from assistant.lab.billing_server import Mode
from assistant.lab.model_server import Call, Response

USER_ID = "u123"
WISH = "Please refund 45.00 PLN of my invoice INV-20251001, it is an overcharge."
CASE = re.compile(r"\bR2\d{4}\b")
DONE, NOT_DONE = "Your case {case} is open.", "I could not do that for you."
LONG = 200_000
# So long a tool takes that is only here to hang, and the time it has.
HANG_SECONDS, HANG_TIMEOUT = 600.0, 2.0
SHORT_TURN = 8  # seconds


def want(name: str, number: int = 1, /, **arguments: Any) -> ToolCall:
    """Return a call that a model wants."""
    return ToolCall(f"call_{number}", name, json.dumps(arguments))


def asks(*calls: ToolCall, text: str = "") -> Response:
    """Return a reply that wants these tools called."""
    wanted = [
        {
            "index": place,
            "id": each.id,
            "type": "function",
            "function": {"name": each.name, "arguments": each.arguments},
        }
        for place, each in enumerate(calls)
    ]
    return Response(text, finish="tool_calls", tool_calls=wanted)


def answer(call: Call) -> Response:
    """Say what came of it: the number of a case that a tool told, or that it could not be done."""
    messages = call.body["messages"]
    told = "\n".join(str(each["content"]) for each in messages if each["role"] == "tool")
    case = CASE.search(told)
    return Response(DONE.format(case=case[0]) if case else NOT_DONE)


Says = Callable[[int], Response | None]  # in a round, from 0; None: it answers


@dataclass(frozen=True)
class Line:
    """One way to use tools, and what has to come of it."""

    name: str
    says: Says
    outcomes: Mapping[str, int] = field(default_factory=dict)  # how many of its calls came to what
    cases: int = 0  # at the billing system, afterwards
    reads: str = NOT_DONE  # what the customer's text has to match
    mode: Mode = Mode.OK  # of the billing system
    is_stubborn: bool = False  # goes on calling tools when it is told to answer
    deadline: int = 0  # seconds of the turn; 0: as the settings say
    tokens: int = 0  # that the model may write; 0: as the settings say
    status: str = "completed"

    def reply(self, call: Call, number: int) -> Response:
        """Return what the model says to its call of this number, from 0."""
        if call.body.get("tool_choice") == "none" and not self.is_stubborn:
            return answer(call)
        return self.says(number) or answer(call)


def once(*replies: Response) -> Says:
    """Say these, one after another, then answer."""
    return lambda number: replies[number] if number < len(replies) else None


def forever(*calls: ToolCall) -> Says:
    """Want the same in every round."""
    return lambda number: asks(*calls)


def many(count: int, make: Callable[[int], ToolCall]) -> Response:
    """Want so many calls in one reply."""
    return asks(*(make(place) for place in range(count)))


REFUND = want("open_refund_case", invoice="INV-20251001", amount="45.00", reason="overcharge")
REFUND_AGAIN = want(
    "open_refund_case", 2, invoice="INV-20251001", amount="45.0", reason="other", description="Now."
)
INVOICES, PLAN = want("get_invoices", 1), want("get_subscription", 2)
OPEN = CASE.pattern
FAILING = "could not look everything up.*error number"
UNKNOWN = "not known whether.*error number"


def words(length: int) -> str:
    """Return a text of so many characters that does not repeat itself."""
    return " ".join(map(str, range(length)))[:length]


def refund(**changes: Any) -> ToolCall:
    """Want the refund with other arguments."""
    return want("open_refund_case", **(json.loads(REFUND.arguments) | changes))


LINES = (
    Line("works", once(asks(INVOICES), asks(REFUND)), {"ok": 2}, 1, OPEN),
    # What is called is not there, or not called rightly.
    Line("a tool that does not exist", once(asks(want("delete_account"))), {"hallucination": 1}),
    Line("the same for ever", forever(want("delete_account")), {"hallucination": 3}),
    Line("a tool of another role", once(asks(want("read_minutes"))), {"hallucination": 1}),
    Line("wrong types", once(asks(refund(amount=[45], invoice=7))), {"validation": 1}),
    Line("wrong types, then right ones", once(asks(refund(amount="a lot")), asks(REFUND)),
         {"validation": 1, "ok": 1}, 1, OPEN),
    Line("arguments that are no JSON", once(asks(ToolCall("1", "open_refund_case", "{amount: 45"))),
         {"validation": 1}),
    Line("an amount of 1000.01", once(asks(refund(amount="1000.01"))), {"validation": 1}),
    Line("another user's id as argument", once(asks(want("get_invoices", user_id="u456"))),
         {"validation": 1}),
    Line("another user's invoice", once(asks(refund(invoice="INV-20251002"))), {"validation": 1}),
    Line("200 kB of arguments", once(asks(refund(description="x" * LONG)))),
    Line("200 kB of arguments, read to the end", once(asks(refund(description=words(LONG)))),
         {"validation": 1}, tokens=LONG),
    # It calls too often, or too much.
    Line("the same call for ever", forever(INVOICES), {"ok": 4}),
    Line("a new call for ever", lambda number: asks(want("turn_page", page=number)), {"ok": 10}),
    Line("calls for ever, also when told to answer", forever(INVOICES), {"ok": 4}, reads=".",
         is_stubborn=True),
    Line("two calls at once", once(asks(INVOICES, PLAN)), {"ok": 2}),
    Line("the same refund twice at once", once(asks(REFUND, REFUND_AGAIN)), {"ok": 2}, 1, OPEN),
    Line("the same refund for ever", forever(REFUND), {"ok": 4}, 1, OPEN),
    Line("twenty calls at once", once(many(20, lambda place: want("turn_page", place, page=place))),
         {"ok": 8, "validation": 12}),
    Line("twenty refunds at once", once(many(20, lambda place: refund(amount=f"{45 - place}.00"))),
         {"ok": 8, "validation": 12}, 1, OPEN),
    Line("twenty equal refunds at once", once(many(20, lambda _: REFUND)),
         {"ok": 8, "validation": 12}, 1, OPEN),
    # It fails itself, when something is done already.
    Line("500 after a refund", lambda number: Response(status=500) if number else asks(REFUND),
         {"ok": 1}, 1, OPEN),
    Line("silence after a refund", lambda number: Response("") if number else asks(REFUND),
         {"ok": 1}, 1, OPEN, is_stubborn=True),
    # The tool fails.
    Line("a tool that hangs", once(asks(want("hold"))), {"timeout": 1}),
    Line("the system hangs", once(asks(INVOICES)), {"timeout": 1}, 0, FAILING, Mode.HANGING),
    Line("the system hangs at a refund", once(asks(REFUND)), {"timeout": 1}, 0, UNKNOWN,
         Mode.HANGING),
    Line("the system hangs, asked for ever", forever(INVOICES), {"timeout": 3}, 0, FAILING,
         Mode.HANGING),
    Line("the system hangs, twenty calls", once(many(20, lambda _: INVOICES)),
         {"timeout": 8, "validation": 12}, 0, FAILING, Mode.HANGING),
    Line("the system is slow", once(asks(INVOICES), asks(REFUND)), {"ok": 2}, 1, OPEN, Mode.SLOW),
    Line("the system fails", once(asks(INVOICES)), {"execution": 1}, 0, FAILING, Mode.FAILING),
    Line("the system sends other JSON", once(asks(INVOICES)), {"execution": 1}, 0, FAILING,
         Mode.WRONG_JSON),
    Line("the system sends a page", once(asks(INVOICES)), {"execution": 1}, 0, FAILING, Mode.HTML),
    Line("its answer to a refund is lost", once(asks(REFUND), asks(REFUND)),
         {"execution": 2}, 1, UNKNOWN, Mode.LOST),
    # The last: what is still under way when its turn has ended is counted, too.
    Line("the system hangs, 8 s a turn", forever(INVOICES), {"timeout": 1}, 0, "longer than it may",
         Mode.HANGING, deadline=SHORT_TURN, status="expired"),
)  # fmt: skip
BY_NAME = {line.name: line for line in LINES}


class Page(Arguments):
    """Which page."""

    page: int


class Nothing(Arguments):
    """Nothing."""


@contextmanager
def laid_out() -> Iterator[None]:
    """Have a tool that always has news, one that hangs, and one of another role beside the real."""
    before, ended, pages = dict(TOOLS), threading.Event(), itertools.count(1)

    @tool(roles=[Role.BILLING])
    def turn_page(arguments: Page, caller: Caller) -> int:
        """Read the next page."""
        return next(pages)

    @tool(roles=[Role.BILLING], timeout=HANG_TIMEOUT)
    def hold(arguments: Nothing, caller: Caller) -> None:
        """Hold the line."""
        ended.wait(HANG_SECONDS)

    @tool(roles=[Role.RESPONSE])
    def read_minutes(arguments: Nothing, caller: Caller) -> str:
        """Read the minutes of the board."""
        return "Nobody's business."

    try:
        yield
    finally:
        ended.set()
        TOOLS.clear()
        TOOLS.update(before)
