"""Reply kills: workers killed a moment after a model replied, and which calls are counted.

For every prompt that a turn or an ingest asks a model by, and for every moment: a worker of its own
asks a model server on this machine, which kills it so long after the last byte of the reply.
"""

import io
import os
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db.models import QuerySet
from django.utils.timezone import now
from rich.console import Console
from rich.table import Table

from agents import envelopes
from agents.llm.journal import document_subject
from agents.llm.outcomes import UNHEARD
from agents.models import Envelope, ModelCall
from agents.steps import events
from assistant.lab.model_server import Call, ModelServer, Response, serving
from assistant.lab.rehearsal import COLLECTION, WITHOUT_CACHES, working
from assistant.lab.scripted_replies import sensible, text_of
from assistant.local.processes import Child
from assistant.management.commands.workers import processes
from knowledge import ingestion
from knowledge.changes import digest
from knowledge.ingestion.jobs import OPEN, enqueue
from knowledge.models import Document, Ingest

MILLISECONDS = (0, 50, 200)
# So long a reply takes, so that who is to be killed is at work when it ends.
REPLY_SECONDS = 0.2
PATIENCE_SECONDS = 180.0
ENRICHMENT, CLARIFICATION = "enrichment", "clarification"
# In the order in which a turn comes to them.
PROMPTS = (
    "translation",
    "essence",
    "guardrails",
    "router",
    "memory",
    "expansion",
    "hyde",
    "evaluator",
    "response",
    "quality",
    CLARIFICATION,
    ENRICHMENT,
)
ENVIRONMENT = {
    "GEN_MODEL": "fake@rehearsal",
    "SECOND_MODEL": "",
    "ENRICHMENT_MODEL": "fake@rehearsal",
    "ROUTES": "documentation,fallback",
    "SEARCH_EXPANSION": "both",
    "TURN_DEADLINE_SECONDS": "600",
    **WITHOUT_CACHES,
}
# A follow-up in another language than the documents', and an older message that leaves in its
# turn: so every role has something to ask.
EARLIER = (
    ("user", "What does a budget limit?"),
    ("assistant", "A budget limits what is spent on models in a day."),
)
QUESTION = "Und wie lege ich dafür einen Betrag pro Schlüssel fest, und was passiert danach?"
# What is said where a question back is wanted, over the sensible values.
UNCLEAR: dict[str, dict[str, Any]] = {
    "essence": {"unclear": "missing_context"},
    CLARIFICATION: {"message": "Which amount do you mean?"},
}
PAGE = "# Ferry {}\n\nThe ferry {} leaves at noon and takes bicycles.\n"


@dataclass(frozen=True)
class Kill:
    """What became of the calls of one prompt when a worker was killed after its first reply."""

    prompt: str
    milliseconds: int  # from the last byte of the reply to the kill
    asked: int  # calls at the server
    counted: int  # calls in usage
    lost: int  # of them, those that are counted as possibly paid
    ended: bool  # whether the turn or the ingest came to its end


@dataclass
class Killing:
    """The model server's script: sensible replies, and a kill after the first one to a prompt."""

    prompt: str = ""
    milliseconds: int = 0
    kill: Callable[[], None] = lambda: None
    fired: threading.Event = field(default_factory=threading.Event)

    def arm(self, prompt: str, milliseconds: int) -> None:
        """Kill so long after the next reply to this prompt."""
        self.prompt, self.milliseconds = prompt, milliseconds
        self.fired.clear()

    def reply(self, call: Call) -> Response:
        """Return what is said to a call."""
        values = sensible(call)
        if isinstance(values, dict) and self.prompt == CLARIFICATION:
            values |= UNCLEAR.get(call.prompt, {})
        response = Response(text_of(values), seconds=REPLY_SECONDS)
        if call.prompt == self.prompt and not self.fired.is_set():
            self.fired.set()
            response.then = self._fire
        return response

    def _fire(self) -> None:
        if self.milliseconds:
            threading.Timer(self.milliseconds / 1000, self.kill).start()
        else:
            self.kill()


def measure(
    prompts: Sequence[str],
    milliseconds: Sequence[int],
    times: int,
    progress: Callable[[str], Any],
) -> list[Kill]:
    """Return a row for each prompt, moment and repetition. Raises NoWorkers."""
    kills = []
    script = Killing()
    with serving(script.reply) as server, _workers(script, server):
        for prompt in prompts:
            for moment in milliseconds:
                for _ in range(times):
                    progress(f"{prompt}, killed after {moment} ms")
                    script.arm(prompt, moment)
                    server.ledger.clear()
                    act = _ingest if prompt == ENRICHMENT else _turn
                    ended, calls = act(prompt)
                    kills.append(_kill(script, server, calls, ended))
    return kills


@contextmanager
def _workers(script: Killing, server: ModelServer) -> Iterator[None]:
    """Run the compact layout; the agents' process is the one that is killed, and begun again."""
    # Described by no model: this is no part of what is measured.
    call_command(
        "ingest",
        str(settings.BASE_DIR / "docs"),
        collection=COLLECTION,
        verbosity=0,
        stdout=io.StringIO(),
    )
    settings.ROUTES = ENVIRONMENT["ROUTES"].split(",")
    os.environ.update(ENVIRONMENT, REHEARSAL_BASE_URL=server.base_url)
    console = Console(stderr=True, quiet=True)
    ending = threading.Event()
    with working(processes([])) as children:
        (agents,) = (child for child in children if child.name == "agents")
        script.kill = lambda: _kill_process(agents)
        keeper = threading.Thread(target=_keep, args=(agents, ending, console), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ending.set()
            keeper.join()


def _kill_process(child: Child) -> None:
    if child.process:
        os.kill(child.process.pid, signal.SIGKILL)


def _keep(child: Child, ending: threading.Event, console: Console) -> None:
    while not ending.wait(0.2):
        if child.process and child.process.poll() is not None:
            child.begin(console)


def _turn(prompt: str) -> tuple[bool, QuerySet[ModelCall]]:
    """Ask the question; return whether it was answered, and the calls of its turn."""
    at = now().isoformat()
    earlier = [{"role": role, "text": text, "time": at} for role, text in EARLIER]
    memory = {
        "text": QUESTION,
        "collections": [COLLECTION],
        "owner": "bench",
        "history": earlier,
        "leaving": earlier,
    }
    turn = envelopes.start(memory, conversation_id=uuid.uuid4(), message_id=uuid.uuid4())
    for event in events.follow(turn.target_list, seconds=PATIENCE_SECONDS):
        if event and event[1] == "workflow_complete":
            break
    turn = Envelope.objects.get(pk=turn.pk)
    return turn.ended and not turn.error_id, turn.model_calls.filter(prompt=prompt)


def _ingest(prompt: str) -> tuple[bool, QuerySet[ModelCall]]:
    """Have a page taken in that is not known yet; return whether it was, and its calls."""
    name = uuid.uuid4().hex[:8]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{name}.md").write_text(PAGE.format(name, name), encoding="utf-8")
        job = ingestion.plan("ferries", paths=[Path(folder)], keep_missing=True)
        enqueue(job)
        until = time.monotonic() + PATIENCE_SECONDS
        while job.status in OPEN and time.monotonic() < until:
            time.sleep(REPLY_SECONDS)
            job.refresh_from_db()
    texts = Document.objects.filter(collection__name="ferries", title=f"Ferry {name}")
    subjects = [document_subject(digest(text)) for text in texts.values_list("content", flat=True)]
    done = job.status == Ingest.Status.DONE and bool(subjects)
    return done, ModelCall.objects.filter(subject__in=subjects, prompt=prompt)


def _kill(script: Killing, server: ModelServer, calls: QuerySet[ModelCall], ended: bool) -> Kill:
    return Kill(
        script.prompt,
        script.milliseconds,
        asked=server.prompts().count(script.prompt),
        counted=calls.count(),
        lost=calls.filter(outcome__in=UNHEARD).count(),
        ended=ended,
    )


def holds(kills: Sequence[Kill]) -> bool:
    """Tell whether all were asked and came to their end, and every call is counted."""
    return all(kill.ended and 0 < kill.asked <= kill.counted for kill in kills)


def as_json(kills: Sequence[Kill]) -> list[dict[str, Any]]:
    """Return the rows as JSON values."""
    return [asdict(kill) for kill in kills]


def table(kills: Sequence[Kill]) -> Table:
    """Return a line for each prompt, a column for each moment: calls made / counted / lost."""
    moments = sorted({kill.milliseconds for kill in kills})
    shown = Table("prompt", *(f"{moment} ms" for moment in moments))
    shown.title = "calls at the server / in usage / of them possibly paid"
    for prompt in dict.fromkeys(kill.prompt for kill in kills):
        cells = [
            _cell([kill for kill in kills if (kill.prompt, kill.milliseconds) == (prompt, moment)])
            for moment in moments
        ]
        shown.add_row(prompt, *cells)
    return shown


def _cell(kills: Sequence[Kill]) -> str:
    sums = (sum(getattr(kill, name) for kill in kills) for name in ("asked", "counted", "lost"))
    return " / ".join(map(str, sums))
