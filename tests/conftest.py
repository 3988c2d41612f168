"""Fixtures that every test may use."""

import os
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from celery import current_app
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from agents import envelopes
from agents.models import Envelope
from agents.steps import events, presence
from assistant.environment import broker_url
from conversations.lanes import LANE
from tests.collection import pytest_collection
from tests.parsers import lasting_parsers
from tests.scheduling import Scheduling
from tests.scripted import Scripted, scripted
from tests.servers import copied_database, delete_rows, may_delete_rows, redis_database

__all__ = ["pytest_collection"]

MEMORY: dict[str, Any] = {
    "text": "How do I exclude my own visits?",
    "history": [],
    "summary": "",
    "facts": [],
    "topic": "",
    "current_time": "2026-11-21T12:00:00+00:00",
    "language_preference": None,
    "open_clarification": None,
    "clarification_rounds": 0,
    "last_agent": "",
    "context_flags": {},
    "collections": [],
    "offers": [],
    "user_id": "",
    "owner": "local",
    "key": "",
    "leaving": [],
}

Begin = Callable[..., Envelope]
Make = Callable[[Callable[[], object]], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --every-moment."""
    parser.addoption(
        "--every-moment", action="store_true", help="have processes die at every moment there is"
    )


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Keep together the tests of a Docent that runs."""
    return Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the moments that are not asked for."""
    if not config.getoption("--every-moment"):
        later = [item for item in items if item.get_closest_marker("every_moment")]
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if not item.get_closest_marker("every_moment")]


@pytest.fixture(scope="session", autouse=True)
def own_redis() -> None:
    """Tests that run side by side ring and listen in databases of their own."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    settings.REDIS_URL = redis_database(settings.REDIS_URL, int(worker) + 3)
    current_app.conf.update(broker_url=broker_url(settings.REDIS_URL))


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[None]:
    """Copy one database for each process; a test that commits deletes what it wrote, and no more.

    pytest-django would migrate for each process, and flush every table after each such test.
    """
    name = connection.settings_dict["TEST"]["NAME"] or f"test_{connection.settings_dict['NAME']}"
    with (
        django_db_blocker.unblock(),
        copied_database(name, migrate),
        pytest.MonkeyPatch.context() as patch,
    ):
        use(name)
        if may_delete_rows(connection):
            patch.setattr(
                TransactionTestCase, "_fixture_teardown", lambda case: delete_rows(connection)
            )
        with django_db_blocker.block():
            yield
        disconnect()


@pytest.fixture(scope="module")
def for_all(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Make]:
    """Make rows once for all tests of a module, by a function; what each does to them is undone.

    For modules without a test that commits: rows and tests are in one transaction.
    """
    within = transaction.atomic()

    def make(rows: Callable[[], object]) -> None:
        with django_db_blocker.unblock():
            rows()

    make(within.__enter__)
    yield make
    make(lambda: transaction.set_rollback(True))
    make(lambda: within.__exit__(None, None, None))


def migrate(name: str) -> None:
    """Give a database all tables."""
    use(name)
    call_command("migrate", verbosity=0)
    disconnect()


def use(name: str) -> None:
    """Have Django use another database of the same server."""
    disconnect()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


def disconnect() -> None:
    """Close every connection, those of the pool too."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]


@pytest.fixture(scope="session", autouse=True)
def cheap() -> Iterator[None]:
    """Passwords and requests cost nothing, what parses for an ingest serves the next one, too."""
    settings.MAX_REQUESTS_PER_KEY = settings.MAX_REQUESTS_PER_ADDRESS = 0
    settings.MAX_FAILED_LOGINS = 0
    # Tests announce workers once, and take longer than a beat on a busy machine.
    presence.BEAT_SECONDS = 60.0
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with lasting_parsers():
        yield


@pytest.fixture(autouse=True)
def nobody_listens(own_redis: None) -> None:
    """No worker of another test is announced."""
    for key in events.connection().scan_iter(presence.KEY_PREFIX + "*"):
        events.connection().delete(key)


@pytest.fixture(autouse=True)
def no_lane() -> None:
    """No request is at hand: those of Django's test client leave theirs in this thread."""
    LANE.set(None)


@pytest.fixture
def memory() -> dict[str, Any]:
    """What a turn sees of a conversation that has only just begun."""
    return dict(MEMORY)


@pytest.fixture
def begin(transactional_db: None) -> Begin:
    """Start a turn; keywords replace parts of its memory."""

    def start(**changes: Any) -> Envelope:
        return envelopes.start(MEMORY | changes, conversation_id=uuid4(), message_id=uuid4())

    return start


@pytest.fixture
def models(transactional_db: None) -> Iterator[Scripted]:
    """A scripted model server, for agents that are handed `models.model(role)`."""
    with scripted() as server:
        yield server
