"""A worker that is told to stop: a real process, with a model that takes its time."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from agents.decision import Decision, Stage
from agents.models import Envelope, Step
from agents.names import Role
from agents.steps import events, presence, step_lease
from agents.steps.records import Conclusion
from agents.steps.shutdown import GRACE_SECONDS
from agents.steps.steps import finish
from assistant.lab.model_server import Call, ModelServer, Response, serving
from tests.agents.claiming import bells, claim, claimed
from tests.conftest import Begin

CHECKOUT = Path(__file__).resolve().parents[3]
START_SECONDS = 60.0


def never(_: Call) -> Response:
    return Response(hang=True)


def soon(_: Call) -> Response:
    return Response("Nobody knows.", seconds=2)


def until(true: Callable[[], object]) -> None:
    """Wait until it is true."""
    end = time.monotonic() + START_SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


@contextmanager
def worker(role: Role, server: ModelServer) -> "Iterator[subprocess.Popen[bytes]]":
    """A worker of this role on the database and the queues of the tests."""
    database = urlsplit(settings.DATABASE_URL)._replace(path=connection.settings_dict["NAME"])
    environment = {
        "DATABASE_URL": database.geturl(),
        "REDIS_URL": settings.REDIS_URL,
        "SCRIPTED_BASE_URL": server.base_url,
        f"{role.name}_MODEL": "fake@scripted",
    }
    with subprocess.Popen(
        [sys.executable, "manage.py", "workers", role], cwd=CHECKOUT, env=os.environ | environment
    ) as process:
        try:
            until(lambda: role not in presence.missing_roles())
            yield process
        finally:
            process.kill()


def turn_at(begin: Begin, role: Role) -> Envelope:
    """A turn whose second step is one for this role."""
    envelope = begin(text="Wie schließe ich meine eigenen Besuche aus?")
    events.connection().delete(Role.MANAGER.queue, role.queue)
    step = claimed(envelope.pk, 1)
    finish(step, Conclusion(decision=Decision(Stage.RESPONSE, (role,))))
    return envelope


def second_step(envelope: Envelope) -> Step:
    return envelope.steps.get(number=2)


def test_what_cannot_be_finished_in_time_is_ready_again_at_once(begin: Begin) -> None:
    with serving(never) as server, worker(Role.TRANSLATION, server) as process:
        envelope = turn_at(begin, Role.TRANSLATION)
        until(lambda: server.ledger)
        process.send_signal(signal.SIGTERM)
        assert process.wait(GRACE_SECONDS + 10) == 0
    assert (second_step(envelope).status, second_step(envelope).attempt) == ("ready", 1)
    assert bells(Role.TRANSLATION) == 1


def test_a_worker_that_leaves_finishes_its_step_and_takes_no_other(begin: Begin) -> None:
    with serving(soon) as server, worker(Role.TRANSLATION, server) as process:
        first = turn_at(begin, Role.TRANSLATION)
        until(lambda: server.ledger)
        process.send_signal(signal.SIGTERM)
        until(lambda: Role.TRANSLATION in presence.missing_roles())
        second = turn_at(begin, Role.TRANSLATION)
        assert process.wait(GRACE_SECONDS + 10) == 0
    assert second_step(first).status == "done"
    assert second_step(second).attempt == 0


def test_handing_back_leaves_alone_what_another_worker_has_taken_over(begin: Begin) -> None:
    envelope = begin()
    step = claimed(envelope.pk, 1)
    with step_lease.LEASES.renewed(step.token):
        envelope.steps.update(lease_token=None, status="ready")
        heir = claim(envelope.pk, 1)
        assert heir
        assert step_lease.hand_back() == 0
    assert envelope.steps.get().lease_token == heir.token


def test_a_step_that_was_handed_back_can_be_done_by_another(begin: Begin) -> None:
    envelope = begin()
    events.connection().delete(Role.MANAGER.queue)
    step = claimed(envelope.pk, 1)
    with step_lease.LEASES.renewed(step.token):
        assert step_lease.hand_back() == 1
    assert bells(Role.MANAGER) == 1
    assert finish(step, Conclusion()) is None
    again = claim(envelope.pk, 1)
    assert again
    assert again.attempt == 2
