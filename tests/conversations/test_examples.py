"""The examples: each answers from its own pages, declines what is not its business, no more."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from agents import manager
from agents.models import Envelope
from agents.names import Role
from agents.steps import presence
from agents.steps.steps import perform_one_by_one, run_agent
from conversations.errors import ForeignCollection
from conversations.models import Assistant
from conversations.services import Asker, ask
from tests.agents.turning import ready

EXAMPLES: Path = settings.BASE_DIR / "assistant" / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir())


@pytest.fixture
def examples(transactional_db: None) -> None:
    """All examples, taken in as an operator would."""
    for name in NAMES:
        call_command("assistants", "import", str(EXAMPLES / name))


def answered(text: str, assistant: str) -> Envelope:
    """Ask, and do the turn to its end in this process."""
    presence.announce([role.queue for role in Role])
    envelope = ask(text, Asker(None), assistant=assistant)
    while step := next(iter(ready(envelope)), None):
        role = Role(step.role)
        perform_one_by_one(role, manager.route if role is Role.MANAGER else run_agent)
    envelope.refresh_from_db()
    return envelope


ASKED = {
    "telecom": ("What does roaming cost in zone 2?", "Roaming abroad"),
    "sms": ("What does error code 311 mean?", "Error codes and limits"),
    "medical": ("How do I clean the cuff?", "Set up and care"),
    "finance": ("How do I block a lost card?", "Cards"),
}
# None of their business, or of anybody's here; the second pair is declined by the documents.
DECLINED = {
    "telecom": ("Which team won the football cup last night?", set()),
    "sms": ("Write me a poem about autumn leaves.", set()),
    "medical": ("Is 140 over 90 normal at my age?", {"No diagnosis and no treatment"}),
    "finance": (
        "Are government bonds a safe choice for my pension?",
        {"No advice on investments and taxes"},
    ),
}


def cited(envelope: Envelope) -> set[str]:
    citations: list[dict[str, Any]] = envelope.payload.get("citations_used") or []
    return {citation["title"] for citation in citations}


def test_the_examples_do_what_they_say(examples: None) -> None:
    assert set(NAMES) == set(ASKED) == set(DECLINED)
    for name in NAMES:
        question, page = ASKED[name]
        answer = answered(question, name)
        assert cited(answer) == {page}, answer.payload["response"]
        question, said_by = DECLINED[name]
        declined = answered(question, name)
        assert cited(declined) <= said_by, declined.payload["response"]
        other = next(each for each in NAMES if each != name)
        foreign = answered(ASKED[other][0], name)
        assert ASKED[other][1] not in cited(foreign), foreign.payload["response"]
        with pytest.raises(ForeignCollection):
            ask("Hello?", Asker(None), assistant=name, collections=[f"{other}-example"])


def test_a_greeting_is_the_examples_own_and_who_asks_for_nobody_finds_none(
    examples: None,
) -> None:
    assert answered("Hello!", "sms").payload["response"].startswith("Hi. I know the documentation")
    assert not cited(answered(ASKED["finance"][0], ""))
    assert Assistant.objects.count() == len(NAMES)
