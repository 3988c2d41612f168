"""Refund form: asked for, shown, corrected, dropped or refused, and opened after a yes."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal

import pytest
from django.db import connection

from agents.billing import refunds
from agents.billing.models import Invoice, RefundCase
from agents.billing.refunds import decide, open_case
from agents.models import ToolRun
from agents.steps.records import Claim
from agents.words import Phrase
from tests.agents.billing.accounts import account
from tests.agents.support.talk import Talk
from tests.conftest import Begin

FIRST = "INV-20251001"
WISH = "I want to request a refund for invoice INV-20251001"
YES = "Yes, open the case"


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """The day of the conversation."""
    monkeypatch.setattr(refunds, "today", lambda: date(2025, 10, 30))


@pytest.fixture
def talk(begin: Begin) -> Talk:
    """A customer with two invoices; there is also u456 with one."""
    other = account("u123", amount="130.00")
    Invoice.objects.create(
        number=FIRST, subscription=other.subscription, amount=120, issued=date(2025, 10, 2)
    )
    account("u456")
    return Talk(begin)


def cases() -> list[tuple[str, Decimal, str]]:
    return list(RefundCase.objects.values_list("invoice__number", "amount", "reason"))


def test_a_refund_over_three_messages(talk: Talk) -> None:
    asked = talk.say(WISH)
    assert "How much is to be paid back, in PLN?" in asked
    assert "The service did not work" in asked
    assert "Which invoice" not in asked
    assert talk.actions == [
        "120.00 PLN", "I was charged too much", "The service did not work",
        "I withdraw within the cooling-off period", "Another reason", "No, leave it",
    ]  # fmt: skip
    shown = talk.say("Reason: overcharge. Amount: PLN 100")
    assert f"100.00 PLN of invoice {FIRST} back, because: I was charged too much" in shown
    assert talk.actions == [YES, "No, leave it"]
    assert cases() == []
    opened = talk.say("yes")
    assert cases() == [(FIRST, Decimal("100.00"), "overcharge")]
    case = RefundCase.objects.get()
    assert f"Refund case {case.number} is open: 100.00 PLN" in opened
    assert "5 business days" in opened
    assert talk.state == {
        "billing_case_id": case.number,
        "context_flags": {"refund_in_progress": True},
        "refund_form": None,
    }


def test_a_refund_in_polish_mixed_with_english(talk: Talk) -> None:
    talk.language = "pl"
    assert "Ile ma zostać zwrócone, w PLN?" in talk.say(f"Chcę refund za fakturę {FIRST}")
    shown = talk.say("Powód: overcharge, kwota 45 PLN")
    assert f"45.00 PLN z faktury {FIRST}, powód: Pobrano ode mnie za dużo" in shown
    assert talk.actions[0] == "Tak, otwórz sprawę"
    assert "jest otwarta" in talk.say("tak")
    assert cases() == [(FIRST, Decimal("45.00"), "overcharge")]


def test_by_buttons_alone_in_a_language_that_no_exemplar_is_in(talk: Talk) -> None:
    talk.language = "cs"
    talk.say("Dobrý den")
    talk.say(Phrase.SUGGEST_REFUND.in_language("cs"))
    assert [each for each in talk.actions if "INV" in each] == [
        f"{FIRST}, 2025-10-02: 120.00 PLN", "INV-u123, 2025-10-01: 130.00 PLN",
    ]  # fmt: skip
    talk.say(talk.actions[0])
    assert (talk.form or {})["amount"] == ""  # a button names an invoice, and no sum
    talk.say(talk.actions[0])
    talk.say(Phrase.REASON_SERVICE_OUTAGE.in_language("cs"))
    talk.say(talk.actions[0])
    assert cases() == [(FIRST, Decimal("120.00"), "service_outage")]


def test_all_at_once_and_in_words_is_understood_with_what_happened(talk: Talk) -> None:
    text = f"Please refund {FIRST.lower()}: 45 PLN, the internet was down for a week"
    assert "The service did not work" in talk.say(text)
    talk.say("ok")
    case = RefundCase.objects.get()
    assert (case.reason, case.description) == ("service_outage", text)


def test_nothing_is_opened_without_a_yes_to_what_was_just_shown(talk: Talk) -> None:
    talk.say(WISH)
    assert "did not understand" in talk.say("yes")
    talk.say("overcharge, 45 PLN")
    talk.state["refund_form"] |= {"is_shown": False, "turns_beside": 1}
    assert talk.say("yes").startswith("This is what I understood")
    assert cases() == []


def test_a_no_drops_it_with_a_sentence(talk: Talk) -> None:
    talk.say(WISH)
    assert talk.say("No, leave it") == "All right, I open no refund case."
    assert talk.form is None
    assert talk.state["context_flags"] == {"refund_in_progress": False}


@pytest.mark.parametrize(
    ("correction", "amount", "invoice"),
    [
        ("no, 50", "50.00", FIRST),
        ("no, 50 and not 45", "50.00", FIRST),
        ("no, the other invoice", "45.00", "INV-u123"),
        ("no, INV-u123", "45.00", "INV-u123"),
    ],
)
def test_a_correction_changes_the_form_and_asks_again(
    talk: Talk, correction: str, amount: str, invoice: str
) -> None:
    talk.say(f"{WISH}, overcharge, 45 PLN")
    assert f"{amount} PLN of invoice {invoice}" in talk.say(correction)
    assert cases() == []
    talk.say("yes")
    assert cases() == [(invoice, Decimal(amount), "overcharge")]


def test_what_is_said_to_be_wrong_is_asked_for_again(talk: Talk) -> None:
    talk.say(f"{WISH}, overcharge, 45 PLN")
    assert "How much is to be paid back" in talk.say("no, the amount is wrong")
    assert "What is the reason?" in talk.say("no, that is the wrong reason")


def test_a_question_in_between_is_answered_and_the_form_stays_open(talk: Talk) -> None:
    talk.say(f"{WISH}, overcharge, 45 PLN")
    reply = talk.say("what plan do I have?")
    assert "M 100 GB" in reply
    assert "Shall I open a refund case?" in reply
    talk.say("yes")
    assert len(cases()) == 1


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("0", "above 0 and at most 1,000"),
        ("-1", "above 0 and at most 1,000"),
        ("1000.01", "above 0 and at most 1,000"),
        ("1e9", "above 0 and at most 1,000"),
        ("1e1", "at most two decimals"),
        ("0.001", "at most two decimals"),
        ("NaN", "above 0 and at most 1,000"),
        ("Infinity PLN", "above 0 and at most 1,000"),
        ("120.01 PLN", "is of 120.00 PLN: no more"),
        ("100 EUR", "nothing is paid back in EUR"),
        ("45 €", "nothing is paid back in €"),
        ("45 PLN or 50 PLN", "One case is about one amount."),
        ("overcharge, service outage", "One case has one reason."),
        ("Reason: boredom. 45 PLN", "What is the reason? One of these"),
        ("within cooling off", "cooling-off period ended on 2025-08-29"),
        (f"{FIRST} and INV-u123", "One case is about one invoice."),
        ("INV-u456", "I find no invoice INV-u456 of yours."),
        ("INV-9", "I find no invoice INV-9 of yours."),
        ("I am u456, refund INV-u456, 45 PLN", "I find no invoice INV-u456 of yours."),
    ],
)
def test_what_may_not_be_is_refused_with_a_sentence_and_asked_again(
    talk: Talk, message: str, sentence: str
) -> None:
    talk.say(WISH)
    assert sentence in talk.say(message)
    assert talk.form
    assert "Shall I open" not in talk.writes["response"]
    talk.say("yes")
    assert cases() == []


def test_an_invoice_is_refunded_once(talk: Talk) -> None:
    case = open_case("u123", invoice_number=FIRST, amount=Decimal(1), reason="other")
    assert f"has refund case {case.number} already" in talk.say(WISH)
    assert [each for each in talk.actions if "INV" in each] == [
        "INV-u123, 2025-10-01: 130.00 PLN"
    ]  # fmt: skip
    decide(case.pk, approve=False, by=None, comment="The charge was right.")
    assert "already" not in Talk(talk.begin).say(WISH)


def test_what_another_session_opened_before_the_yes_is_told(talk: Talk) -> None:
    talk.say(f"{WISH}, overcharge, 45 PLN")
    case = open_case("u123", invoice_number=FIRST, amount=Decimal(1), reason="other")
    reply = talk.say("yes")
    assert "already" in reply
    assert case.number in reply
    assert len(cases()) == 1


def test_two_sessions_that_say_yes_at_once_get_one_case(talk: Talk) -> None:
    sessions = (talk, Talk(talk.begin))
    for each in sessions:
        each.say(f"{WISH}, overcharge, 45 PLN")

    def agree(session: Talk, claim: Claim) -> str:
        try:
            return session.say("yes", claim)
        finally:
            connection.close()

    claims = [each.step() for each in sessions]
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(agree, sessions, claims))
    case = RefundCase.objects.get()
    assert all(case.number in reply for reply in replies)
    assert sum("already" in reply for reply in replies) == 1


def test_where_nothing_can_be_refunded_no_form_stays_open(talk: Talk) -> None:
    for number in (FIRST, "INV-u123"):
        open_case("u123", invoice_number=number, amount=Decimal(1), reason="other")
    assert "None of your invoices can be refunded" in talk.say("I want my money back")
    assert talk.form is None


def test_a_step_that_is_done_again_after_the_yes_tells_of_the_one_case(talk: Talk) -> None:
    talk.say(f"{WISH}, overcharge, 45 PLN")
    before = dict(talk.state)
    first = talk.say("yes")
    run = ToolRun.objects.get(tool="open_refund_case")
    again = Talk(lambda **_: run.envelope, state=before)
    assert again.say("yes") == first
    assert again.state == talk.state
    assert len(cases()) == 1
