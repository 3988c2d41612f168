"""Bells: what is sent to a queue, and how a worker that is awake takes them itself."""

import json
import uuid

import pytest

from agents.contract import Result
from agents.decision import Decision, Stage
from agents.models import Envelope
from agents.names import Role
from agents.steps import events, shutdown
from agents.steps.doorbell import ring, take_command
from agents.steps.records import Claim, Conclusion
from agents.steps.steps import finish, perform_one_by_one
from tests.agents.claiming import bells, claimed
from tests.conftest import Begin


def take_bell(role: Role) -> str:
    (message,) = events.send([take_command(role)])
    return str(message)


def turn_at(begin: Begin, role: Role) -> Envelope:
    """A turn whose second step, rung for, is one for this role."""
    envelope = begin()
    step = claimed(envelope.pk, 1)
    finish(step, Conclusion(decision=Decision(Stage.LANG, (role,))))
    return envelope


def test_a_bell_is_a_message_that_celery_understands() -> None:
    envelope_id = uuid.uuid4()
    ring(envelope_id, 7, Role.LANG)
    message = json.loads(take_bell(Role.LANG))
    assert message["headers"]["task"] == Role.LANG.queue
    assert json.loads(message["body"]) == [[str(envelope_id), 7], {}, {}]


def test_a_worker_takes_the_next_bell_itself(begin: Begin) -> None:
    first, second = turn_at(begin, Role.LANG), turn_at(begin, Role.LANG)
    take_bell(Role.LANG)
    perform_one_by_one(Role.LANG, lambda _: Conclusion(Result({"language": "en"})))
    assert bells(Role.LANG) == 0
    for turn in (first, second):
        assert turn.steps.get(number=2).status == "done"


def test_a_worker_that_was_told_to_stop_leaves_the_next_bell(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second = turn_at(begin, Role.LANG), turn_at(begin, Role.LANG)
    take_bell(Role.LANG)
    monkeypatch.setattr(shutdown, "requested", lambda: True)
    perform_one_by_one(Role.LANG, lambda _: Conclusion(Result({"language": "en"})))
    assert bells(Role.LANG) == 1
    assert second.steps.get(number=2).status == "ready"


def test_a_step_that_fails_leaves_the_next_bell_to_another_thread(begin: Begin) -> None:
    _, second = turn_at(begin, Role.LANG), turn_at(begin, Role.LANG)
    take_bell(Role.LANG)

    def work(_: Claim) -> Conclusion:
        raise ValueError("broken")

    perform_one_by_one(Role.LANG, work)
    assert bells(Role.LANG) == 1
    assert second.steps.get(number=2).attempt == 0
