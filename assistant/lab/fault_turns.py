"""Fault turns: a turn for each fault, several at a time, each with a provider of its own.

The steps are done in threads of this process, with leases, bells and deadlines as everywhere. Which
model a step asks is told by the owner of its turn, so that no breaker, no dialect and no lateness
leads from one fault to another.
"""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import redis
from django.conf import settings
from django.db import Error, connection
from django.test import override_settings

from agents import envelopes
from agents.llm import breaker
from agents.llm.requests import Choice
from agents.manager import route
from agents.models import Envelope
from agents.names import Role
from agents.steps import events, presence, sweeper
from agents.steps.records import Claim, Conclusion
from agents.steps.steps import Work, perform_in_batches, perform_one_by_one, run_agent
from assistant.lab.fault_verdicts import Row, row_of
from assistant.lab.judged_data import exclusive_folder, make_apart
from assistant.lab.model_server import Call, ModelServer, Response, serving
from assistant.lab.scripted_faults import PAGES, Fault, Question
from knowledge import ingestion
from knowledge.errors import KnowledgeError
from knowledge.providers import Provider

COLLECTION = "faults"
# Turns at a time: they wait for the server most of their time.
LANES = 12
LISTEN_SECONDS = 0.2
SWEEP_SECONDS = 1.0
# A turn is ended by the sweeper when its deadline has passed; for what comes on top of that.
GRACE_SECONDS = 60.0
STOP_SECONDS = 5.0
UNCACHED = {
    "CACHE_MODEL_SECONDS": 0,
    "CACHE_TRANSLATION_SECONDS": 0,
    "CACHE_QUALITY_SECONDS": 0,
    "CACHE_SEARCH_SECONDS": 0,
}
# Of the turn whose step is done in this thread.
_provider: ContextVar[str] = ContextVar("provider", default="")

Watch = Callable[[int, int], None]


class Occupied(KnowledgeError):
    """Workers listen that would do the steps of the turns to be measured."""


class ModelsOfTheTurn(Mapping[str, Choice]):
    """The model settings of every asker, with the provider of the turn that is worked on."""

    def __init__(self, choices: Mapping[str, Choice]) -> None:
        self.choices = dict(choices)

    def __getitem__(self, asker: str) -> Choice:
        """Return the settings of one asker."""
        provider = _provider.get()
        model = f"fake@{provider}" if provider else ""
        return replace(self.choices[asker], model=model, second="")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the askers."""
        return iter(self.choices)

    def __len__(self) -> int:
        """Return how many askers there are."""
        return len(self.choices)


@dataclass
class FaultyServer:
    """What the server says: to each provider what its fault says."""

    faults: Mapping[str, Fault]  # by the provider
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)  # by provider and prompt

    def reply(self, call: Call) -> Response:
        """Return what is done with a call."""
        provider = provider_of(call)
        before = self.sent[provider, call.prompt]
        self.sent[provider, call.prompt] += 1
        return self.faults[provider].reply(call, before)


def provider_of(call: Call) -> str:
    """Return whose address was asked."""
    return call.path.split("/")[1]


def measure(faults: Sequence[Fault], watch: Watch) -> list[Row]:
    """Ask a question for each fault and return what came of it, in their order.

    What takes most of the machine is asked by itself, after the others. Raises Occupied.
    """
    if presence.consumers():
        raise Occupied("Workers are running that would do these turns; stop them first.")
    take_in(PAGES)
    by_provider = {fault.provider: fault for fault in faults}
    rows: dict[str, Row] = {}
    for provider in by_provider:
        breaker.forget(provider)
    with (
        serving(FaultyServer(by_provider).reply) as server,
        settings_for(faults, server),
        working(2 * LANES),
    ):
        # The first turn waits for what is loaded on first use.
        ask(faults[0].question, "")
        together = [fault for fault in faults if not fault.alone]
        apart = [fault for fault in faults if fault.alone]
        for some, lanes in ((together, LANES), (apart, 1)):
            for row in asked_side_by_side(some, server, lanes):
                rows[row.fault] = row
                watch(len(rows), len(faults))
    return [rows[fault.name] for fault in faults]


def take_in(pages: Mapping[str, str]) -> None:
    """Make these pages all that the collection holds; no user's question meets it."""
    make_apart(COLLECTION)
    with exclusive_folder(COLLECTION) as folder:
        folder.mkdir(exist_ok=True)
        for name, page in pages.items():
            (folder / name).write_text(page, encoding="utf-8")
        ingestion.ingest(ingestion.find([folder]), collection=COLLECTION)


@contextmanager
def settings_for(faults: Sequence[Fault], server: ModelServer) -> Iterator[None]:
    """Let every turn ask the provider of its fault; nothing is answered from a cache."""
    root = f"http://127.0.0.1:{server.port}"
    providers = {
        fault.provider: Provider(fault.provider, fault.address or f"{root}/{fault.provider}/v1")
        for fault in faults
    }
    with override_settings(
        PROVIDERS=settings.PROVIDERS | providers,
        MODELS=ModelsOfTheTurn(settings.MODELS),
        **UNCACHED,
    ):
        yield


def asked_side_by_side(faults: Sequence[Fault], server: ModelServer, lanes: int) -> Iterator[Row]:
    """Yield what came of each fault, as soon as its turn has ended."""
    with ThreadPoolExecutor(lanes) as pool:
        futures = [pool.submit(_measured, fault, server) for fault in faults]
        for future in as_completed(futures):
            yield future.result()


def _measured(fault: Fault, server: ModelServer) -> Row:
    begin = time.monotonic()
    try:
        envelope = ask(fault.question, fault.provider)
        seconds = time.monotonic() - begin
        calls = [call for call in list(server.ledger) if provider_of(call) == fault.provider]
        return row_of(fault, envelope, calls, seconds)
    finally:
        connection.close()


def ask(question: Question, provider: str) -> Envelope:
    """Ask and return the turn once it has ended. Raises TimeoutError.

    Without a provider no model is asked.
    """
    envelope = envelopes.start(
        {"text": question.text, "collections": [COLLECTION], "owner": provider},
        conversation_id=uuid.uuid4(),
        message_id=uuid.uuid4(),
    )
    # Of the pool's connections the steps need every one.
    connection.close()
    patience = settings.TURN_DEADLINE_SECONDS + GRACE_SECONDS
    for event in events.follow(envelope.target_list, seconds=patience):
        if event and event[1] == "workflow_complete":
            envelope.refresh_from_db()
            return envelope
    raise TimeoutError(f"the turn of {provider or 'no fault'} did not end")


@contextmanager
def working(agents: int) -> Iterator[None]:
    """Do what every role is rung for during the block, in so many threads, and sweep."""
    ended = threading.Event()
    others = [role for role in Role if role is not Role.MANAGER]
    threads = [
        threading.Thread(target=_listen, args=([Role.MANAGER], ended), daemon=True),
        *(
            threading.Thread(target=_listen, args=(others, ended), daemon=True)
            for _ in range(agents)
        ),
        threading.Thread(target=_sweep, args=(ended,), daemon=True),
    ]
    with ExitStack() as stack:
        for thread in threads:
            stack.callback(thread.join, STOP_SECONDS / len(threads))
        stack.callback(ended.set)
        for thread in threads:
            thread.start()
        yield


def _listen(roles: Sequence[Role], ended: threading.Event) -> None:
    queues = {role.queue: role for role in roles}
    while not ended.is_set():
        try:
            if bell := events.connection().brpop(list(queues), LISTEN_SECONDS):
                _perform(queues[str(bell[0])])
        except (Error, redis.RedisError):
            time.sleep(LISTEN_SECONDS)
        finally:
            connection.close()


def _perform(role: Role) -> None:
    if role is Role.MANAGER:
        perform_in_batches(role, bound(route))
    else:
        perform_one_by_one(role, bound(run_agent))


def bound(work: Work) -> Work:
    """Return the work, done with the provider of the turn whose step it is."""

    def perform(claim: Claim) -> Conclusion:
        token = _provider.set(claim.payload.get("owner", ""))
        try:
            return work(claim)
        finally:
            _provider.reset(token)

    return perform


def _sweep(ended: threading.Event) -> None:
    """End what is overdue and ring for what went unheard, as the sweeper does."""
    while not ended.wait(SWEEP_SECONDS):
        try:
            sweeper.sweep()
        except Error:
            pass
        finally:
            connection.close()
