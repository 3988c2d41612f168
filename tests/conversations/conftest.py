"""A browser, its conversation, and a worker of all queues."""

import threading
import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client

from agents import manager
from agents.models import Step
from agents.names import Role
from agents.steps import presence, steps
from conversations.models import Conversation
from conversations.page import SESSION_KEY
from tests import factories

SESSION = "web-of-this-browser"


@pytest.fixture(autouse=True)
def open_page(settings: LazySettings) -> None:
    """Let anybody ask."""
    settings.START_PAGE = "open"


@pytest.fixture
def listening() -> None:
    """Say that each queue has a worker."""
    presence.announce([role.queue for role in Role])


@pytest.fixture
def working(transactional_db: None, listening: None) -> Iterator[None]:
    """A worker of all queues, as a thread: it takes steps from the database alone."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            for step in Step.objects.filter(status=Step.Status.READY):
                role = Role(step.role)
                steps.perform_one_by_one(
                    role, manager.route if role is Role.MANAGER else steps.run_agent
                )
            time.sleep(0.01)
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    yield
    done.set()
    worker.join()


@pytest.fixture
def talk(client: Client, db: None) -> Conversation:
    """A conversation of the browser `client`."""
    return _conversation_of(client)


def _conversation_of(client: Client) -> Conversation:
    session = client.session
    session[SESSION_KEY] = [SESSION]
    session.save()
    return factories.conversation(SESSION)
