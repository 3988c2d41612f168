"""A browser, its conversation, a worker of all queues, and a web server that streams."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import openai
import pytest
import uvicorn
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from knox.models import AuthToken

from agents import manager
from agents.models import Step
from agents.names import Role
from agents.steps import presence, steps
from assistant.asgi import application
from assistant.connections import BoundedProtocol
from conversations.models import Assistant, Conversation, Grant
from conversations.page import SESSION_KEY
from tests import factories
from tests.e2e.conftest import free_port

Event = dict[str, Any]
SESSION = "web-of-this-browser"
# What the conversation of this browser is called in its address.
NAME = SESSION.removeprefix("web-")
PAGE = f"/c/{NAME}/"
# How the script of the page asks.
SCRIPTED = {"Accept": "application/json"}


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


def shown(client: Client) -> str:
    """The page of the conversation `talk`."""
    response = client.get(PAGE)
    assert response.status_code == HTTPStatus.OK
    return response.content.decode()


@contextmanager
def served(app: Any = application, **more: Any) -> Iterator[int]:
    """Run a web server, as `serve` does, at a port: Django's own for tests streams nothing."""
    port = free_port()
    options: dict[str, Any] = {"http": BoundedProtocol, "log_level": "warning", "lifespan": "off"}
    config = uvicorn.Config(app, port=port, **options | more)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield port
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a web server."""
    with served() as port:
        yield port


class Followed:
    """A connection that follows a turn, or what else is told at an address."""

    def __init__(self, port: int, headers: dict[str, str], address: str) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=20)
        self.connection.request("GET", address, headers=headers)
        self.response: HTTPResponse = self.connection.getresponse()

    def next(self) -> Event:
        """The next event, with its id; beats of the heart are passed over."""
        event: Event = {}
        while line := self.response.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name in {"id", "event"}:
                event[name] = value
            elif name == "data":
                event["data"] = json.loads(value)
            elif line == "\n" and "event" in event:
                return event
        return event

    def rest(self) -> list[Event]:
        """All events until the server ends the stream."""
        return list(iter(self.next, {}))

    def close(self) -> None:
        """Go away."""
        self.response.close()
        self.connection.close()


@pytest.fixture
def clerk(db: None) -> User:
    """Who owns an API key."""
    return User.objects.create_user("clerk")


OpenAIFor = Callable[..., openai.OpenAI]


@pytest.fixture
def openai_for(port: int) -> Iterator[OpenAIFor]:
    """Make clients of OpenAI's API for a user, with a key that may be bound to an assistant."""
    with ExitStack() as opened:

        def make(
            user: User, bound: Assistant | None = None, collections: Sequence[str] = ()
        ) -> openai.OpenAI:
            token, secret = AuthToken.objects.create(user)  # type: ignore[no-untyped-call]
            Grant.objects.create(token=token, assistant=bound, collections=list(collections))
            address = f"http://127.0.0.1:{port}/v1"
            client = openai.OpenAI(base_url=address, api_key=secret, max_retries=0, timeout=30)
            return opened.enter_context(client)

        yield make
