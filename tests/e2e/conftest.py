"""A running Docent for the end-to-end tests: `up`, its real workers, and a collection.

Two of them serve most tests, each those of one process: one that works by rules, and one that asks
models, has switches and can be killed at every moment of `failpoints`. They end with the last of
the end-to-end tests of their process: the other tests would pay for what they do while they wait.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from agents.names import ANALYSTS, INSTANCES, Role
from tests.e2e import commands
from tests.e2e.commands import Commands
from tests.sensible import Sensible, thinking
from tests.servers import migrated_database, redis_database

CHECKOUT = commands.CHECKOUT
PAGES = Path(__file__).parent / "pages"
FAILPOINTS = Path(__file__).parent / "failpoints"
START_SECONDS = 120.0
# Of one key, in the Docent that asks models.
MOST_TURNS = 30
# Roles with a thread of their own there instead of two, so that turns outnumber the threads.
ALONE = {*ANALYSTS, Role.TRANSLATION, Role.EVALUATOR, Role.CLARIFICATION, Role.BILLING}
THREADS = sum(1 if role in ALONE else count for role, count in INSTANCES.items())


@dataclass
class Answer:
    """What an HTTP call returned."""

    status: int
    body: Any


@dataclass
class Docent:
    """One running Docent, reached as its users reach it."""

    port: int
    environment: dict[str, str]
    key: str = ""
    log: Path = field(default_factory=Path)
    commands: Commands | None = None

    def manage(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        if self.commands:
            return self.commands.run(*words)
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Answer:
        """Make one API call; `key` replaces the usual one, empty for none."""
        used = self.key if key is None else key
        headers = {"Content-Type": "application/json"}
        if used:
            headers["Authorization"] = f"Bearer {used}"
        return self.send(method, path, json.dumps(body) if body is not None else None, headers)

    def send(
        self, method: str, path: str, body: str | bytes | None, headers: dict[str, str]
    ) -> Answer:
        """Send a request as it is."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=150)
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        return Answer(response.status, json.loads(text) if text.startswith(("{", "[")) else text)

    def ask(self, message: str, **more: Any) -> dict[str, Any]:
        """Ask in the test collection and return the reply object."""
        said = {"message": message, "collections": ["teapot"], **more}
        answer = self.call("POST", "/api/chat/", said)
        assert answer.status == 200, answer.body
        reply: dict[str, Any] = answer.body
        return reply


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(number: int) -> dict[str, str]:
    """Return an environment with a database without rows and queues that no other Docent knows.

    Tests ask many questions with one key, from one address.
    """
    own = {
        "DATABASE_URL": migrated_database(f"docent_{number}"),
        "REDIS_URL": redis_database(os.environ["REDIS_URL"], number),
    }
    unlimited = {"MAX_REQUESTS_PER_KEY": "0", "MAX_REQUESTS_PER_ADDRESS": "0"}
    return os.environ | own | unlimited | {"MAX_TURNS_PER_KEY": "200"}


@contextmanager
def running(docent: Docent) -> Iterator[Docent]:
    """Run `up` for the time of the block."""
    with docent.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(docent.port)],
            cwd=CHECKOUT,
            env=docent.environment,
            stdout=log,
            stderr=log,
        )
        try:
            await_readiness(docent, process)
            yield docent
        finally:
            process.terminate()
            process.wait(60)


def await_readiness(docent: Docent, process: "subprocess.Popen[bytes]") -> None:
    """Return when /readyz says 200."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if docent.call("GET", "/readyz").status == 200:
                return
        except OSError:
            # It does not listen yet.
            pass
        time.sleep(0.2)
    pytest.fail(f"up did not become ready:\n{docent.log.read_text()}")


@contextmanager
def furnished(number: int, log: Path, **more: str) -> Iterator[Docent]:
    """Run a Docent with the collection `teapot` and a staff key.

    That collection is there before `up`, which then takes in none of its own documentation.
    """
    settings = environment(number) | more
    waiting = Commands(settings)
    docent = Docent(free_port(), settings, log=log, commands=waiting)
    try:
        take_in(docent, PAGES, "teapot")
        docent.key = new_key(docent, "tester")
        with running(docent):
            yield docent
    finally:
        waiting.end()


def take_in(docent: Docent, folder: Path, collection: str, *more: str) -> None:
    """Ingest a folder, here unless `more` says otherwise."""
    done = docent.manage("ingest", str(folder), "--collection", collection, *more)
    assert done.returncode == 0, done.stderr


def new_key(docent: Docent, name: str) -> str:
    """Return a staff key for a user of this name."""
    return docent.manage("apikey", "create", name, "--staff").stdout.strip()


def by_models(server: Sensible) -> dict[str, str]:
    """Return the settings by which every role asks this server, and nothing is served twice."""
    return {
        "SCRIPTED_BASE_URL": server.server.base_url,
        "GEN_MODEL": "fake@scripted",
        "ENRICHMENT_MODEL": "none",
        **{f"CACHE_{kind}_SECONDS": "0" for kind in ("MODEL", "TRANSLATION", "QUALITY", "SEARCH")},
    }


@pytest.fixture(scope="package")
def docent(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docent]:
    """Docent with the collection `teapot` and a staff key."""
    log = tmp_path_factory.mktemp("docent") / "up.log"
    with furnished(1, log) as started:
        yield started


@pytest.fixture(scope="package")
def server() -> Iterator[Sensible]:
    """The model server that `thinker` asks."""
    with thinking() as models:
        yield models


@dataclass
class Stack:
    """The Docent that asks models, and what a test may do to it while it runs."""

    docent: Docent
    deaths: Path
    switches: Path

    @contextmanager
    def switched(self, **values: Any) -> Iterator[Docent]:
        """Have these settings for the time of the block."""
        self.switch(values)
        yield self.docent
        self.switch({})

    def switch(self, values: dict[str, Any]) -> None:
        """Have these settings, and no others than those it was started with."""
        whole = self.switches.with_suffix(".new")
        whole.write_text(json.dumps(values))
        whole.rename(self.switches)  # whoever looks finds the one or the other


@pytest.fixture(scope="package")
def stack(
    django_db_setup: None, server: Sensible, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Docent with a model for every role, whose processes die where they are told to."""
    folder = tmp_path_factory.mktemp("thinking")
    deaths, switches = folder / "deaths", folder / "switches"
    deaths.touch()
    switches.write_text("{}")
    more = {
        "FAILPOINTS": str(deaths),
        "SWITCHES": str(switches),
        "PYTHONPATH": str(FAILPOINTS),
        "ROUTES": "documentation,billing,fallback",
        "ENRICHMENT_MODEL": "fake@scripted",
        "TURN_DEADLINE_SECONDS": "600",
        "RESPONSE_TIMEOUT": "300",
        "MAX_TURNS_PER_KEY": str(MOST_TURNS),
        **{role.concurrency_setting: "1" for role in ALONE},
    }
    with furnished(14, folder / "up.log", **by_models(server) | more) as started:
        yield Stack(started, deaths, switches)


@pytest.fixture(scope="package")
def thinker(stack: Stack) -> Docent:
    """The same, for tests that switch nothing and kill nobody."""
    return stack.docent
