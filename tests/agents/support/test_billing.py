"""Billing: what its model is shown and may do, and what is said without one."""

from typing import Any

import pytest
from pytest_django import Settings

from agents.attributes import RefundForm
from agents.billing.models import RefundCase
from agents.billing.refunds import decide
from agents.contract import REGISTRY, Result
from agents.names import ONLY_ON_ROUTE, Role
from agents.steps import presence
from agents.steps.records import Claim
from agents.support.dialogue.replies import answers
from agents.tools import toolbox as toolbox_module
from agents.tools.toolbox import Toolbox
from agents.words import Phrase
from tests.agents.billing.accounts import account
from tests.agents.support.talk import Talk
from tests.agents.tools.bench import asks, model_at, step_of, want
from tests.conftest import Begin
from tests.scripted import Response, Scripted

WISH = want("open_refund_case", invoice="INV-u123", amount="45", reason="overcharge")
FORM = RefundForm(is_asked=True).model_dump(mode="json")
LINE = {"role": "user", "text": "An old word.", "time": "2026-11-20T10:00:00+00:00"}


@pytest.fixture
def claim(begin: Begin) -> Claim:
    """A step of billing for a customer."""
    account("u123")
    return step_of(begin(user_id="u123"), Role.BILLING)


def said(claim: Claim, models: Scripted | None, **payload: Any) -> Result:
    """Return what billing does at the step, with a model or without."""
    with toolbox_module.lend(Toolbox.of(claim)):
        values = {"text": "Proszę o zwrot, INV-u123, overcharge, 45 PLN.", "language": "pl"}
        return REGISTRY[Role.BILLING].perform(values | payload, model_at(claim) if models else None)


def test_the_model_opens_a_case_and_the_conversation_hears_of_it(
    models: Scripted, claim: Claim
) -> None:
    models.says("billing", asks(WISH), Response("Otwarte."))
    done = said(claim, models)
    case = RefundCase.objects.get()
    assert (done.mode, done.writes["response"]) == ("model", "Otwarte.")
    assert done.writes["state_updates"] == {
        "billing_case_id": case.number,
        "context_flags": {"refund_in_progress": True},
        "refund_form": None,
    }
    first, second = models.server.ledger
    assert "Polish" in first.system
    assert "Proszę o zwrot" in first.user
    assert "Proszę o zwrot" not in first.system
    assert case.number in second.body["messages"][-1]["content"]


def test_nothing_is_remembered_where_nothing_was_opened(models: Scripted, claim: Claim) -> None:
    models.says("billing", Response("You have the plan M."))
    assert "state_updates" not in said(claim, models).writes


def test_where_the_model_asks_a_yes_or_a_number_alone_is_its_answer(
    models: Scripted, claim: Claim
) -> None:
    models.says("billing", asks(want("get_invoices")), Response("Is it INV-u123, 45 PLN?"))
    kept = said(claim, models).writes["state_updates"]
    form = RefundForm.model_validate(kept["refund_form"])
    assert kept["context_flags"] == {"refund_in_progress": False}
    assert (form.invoices, form.is_asked) == (["INV-u123"], False)
    assert all(answers(text, form) for text in ("tak", "INV-u123", "40 PLN"))


def test_an_open_form_that_a_model_goes_on_with_takes_no_yes_by_rules(
    models: Scripted, claim: Claim
) -> None:
    models.says("billing", Response("All right."))
    form = RefundForm(invoice="INV-u123", is_asked=True, is_shown=True).model_dump()
    kept = said(claim, models, refund_form=form)
    assert "state_updates" in kept.writes
    left = kept.writes["state_updates"]["refund_form"]
    assert (left["is_shown"], left["turns_beside"]) == (False, 1)


def test_the_model_is_shown_the_last_twelve_messages_and_the_flags(
    models: Scripted, claim: Claim
) -> None:
    models.says("billing", Response("Yes."))
    history = [LINE | {"text": f"Word {number}."} for number in range(20)]
    said(claim, models, history=history, context_flags={"refund_in_progress": True, "old": False})
    (call,) = models.server.ledger
    assert "Word 7." not in call.user
    assert "Word 8." in call.user
    assert "refund_in_progress" in call.user
    assert "old" not in call.user.split("Said before")[0]


def test_without_a_model_the_account_is_shown_in_the_users_language(claim: Claim) -> None:
    done = said(claim, None, text="Was wisst ihr von mir?", language="de")
    assert "M 100 GB, 45.00 PLN im Monat, seit 2025-08-15" in done.writes["response"]
    assert "Rechnung INV-u123 vom 2025-10-01: 45.00 PLN." in done.writes["response"]
    assert not RefundCase.objects.exists()


@pytest.mark.parametrize("language", ["en", "pl"])
@pytest.mark.parametrize("is_approved", [True, False])
def test_who_asks_for_a_case_reads_what_staff_said_of_it(
    begin: Begin, language: str, is_approved: bool
) -> None:
    account("u123")
    talk = Talk(begin, language=language)
    for text in ("INV-u123, 45 PLN", "overcharge", "yes"):
        talk.say(text, refund_form=talk.form or FORM)
    case = RefundCase.objects.get()
    decide(case.pk, approve=is_approved, by=None, comment="You called abroad.")
    told = Phrase.STAFF_SAID.in_language(language, case=case.number, comment="You called abroad.")
    assert told in talk.say(case.number)


def test_a_model_that_fails_in_the_midst_of_a_refund_leaves_off_where_it_was(
    models: Scripted, claim: Claim
) -> None:
    models.says("billing", Response(status=400))
    wish = LINE | {"text": "I want a refund for INV-u123."}
    asked = LINE | {"role": "assistant", "text": "How much, and why?"}
    done = said(
        claim,
        models,
        text="Reason: overcharge. Amount: PLN 40",
        language="en",
        history=[wish, asked],
        last_agent="billing",
    )
    assert "40.00 PLN of invoice INV-u123 back" in done.writes["response"]
    assert done.writes["state_updates"]["refund_form"]["is_shown"]
    assert not RefundCase.objects.exists()


def test_without_a_model_who_is_no_customer_is_told_so(begin: Begin) -> None:
    done = said(step_of(begin(user_id="nobody"), Role.BILLING), None, language="en")
    assert "I find no account of yours here" in done.writes["response"]


def test_a_model_that_fails_after_it_opened_a_case_leaves_the_user_told(
    models: Scripted, claim: Claim
) -> None:
    models.says("billing", asks(WISH), Response(status=400))
    done = said(claim, models, language="en")
    case = RefundCase.objects.get()
    assert done.mode == "extractive"
    assert f"Refund case {case.number} is open: 45.00 PLN" in done.writes["response"]
    assert done.writes["state_updates"]["billing_case_id"] == case.number


@pytest.mark.parametrize(("routes", "missed"), [(["documentation"], 0), (["billing"], 1)])
def test_where_the_route_is_closed_nobody_misses_the_worker(
    settings: Settings, routes: list[str], missed: int
) -> None:
    settings.ROUTES = routes
    assert presence.needed_roles().count(Role.BILLING) == missed
    assert len(presence.missing_roles()) == len(set(Role) - {*ONLY_ON_ROUTE}) + missed
