"""A worker dies while a conversation is handed over: staff have it once, with one sentence."""

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from tests.e2e.conftest import Docent, Stack
from tests.e2e.test_crash_matrix import answered
from tests.sensible import Sensible

ROLE_MOMENTS = [
    ("after_claim", "fallback"),
    ("during_work", "fallback"),
    ("before_finish", "fallback"),
    ("before_commit", "fallback"),
    ("after_commit", "fallback"),
    ("before_finish", "manager"),
]
# Around the commit that ends the turn, stores the sentence and gives the conversation to staff.
MOMENTS_OF_END = [("before_commit_of_end", "manager"), ("after_commit_of_end", "manager")]
HANDED_OVER = """
SELECT why, assigned_id IS NULL, returned IS NULL AND closed IS NULL, talk.status
FROM conversations_handover JOIN conversations_conversation AS talk ON talk.id = conversation_id
WHERE talk.session = %s
"""


@pytest.fixture
def docent(stack: Stack) -> Iterator[Docent]:
    """Docent with staff, whose processes can be killed at named moments."""
    with stack.switched(HANDOVER=True) as switched:
        yield switched


@pytest.mark.parametrize(
    ("moment", "role"),
    [
        *MOMENTS_OF_END,
        *(pytest.param(*each, marks=pytest.mark.every_moment) for each in ROLE_MOMENTS),
    ],
)
def test_who_asks_for_a_person_is_handed_over_once(
    docent: Docent, stack: Stack, server: Sensible, moment: str, role: str
) -> None:
    session = f"desk-{uuid4()}"
    line = f"{moment} {role}"
    reply = answered(
        docent, stack.deaths, line, message="Can I talk to a human, please?", session_id=session
    )
    assert reply["status"] == "with_staff"
    with psycopg.connect(docent.environment["DATABASE_URL"]) as connection:
        handed_over = connection.execute(HANDED_OVER, [session]).fetchall()
    assert handed_over == [("person", True, True, "with_staff")]
    assert authors(docent, session) == ["user", "assistant"]
    asked = server.server.prompts()
    assert_silent(docent, session)
    assert server.server.prompts() == asked


def assert_silent(docent: Docent, session: str) -> None:
    """What is said now goes to staff, and nothing answers it."""
    before = authors(docent, session)
    reply = docent.ask("Are you there?", session_id=session)
    assert (reply["status"], reply["reply"]) == ("with_staff", "")
    assert authors(docent, session) == [*before, "user"]


def authors(docent: Docent, session: str) -> list[str]:
    """Who said something in the conversation, in order."""
    told = docent.call("GET", f"/api/conversations/{session}/messages/")
    assert told.status == 200, told.body
    return [message["author"] for message in told.body["messages"]]
