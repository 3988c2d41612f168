"""Failpoints: lets a test kill a worker at a named moment. Python imports this by its name.

The file named by FAILPOINTS holds a line per death that is to come: `moment role`. A process that
reaches the moment named first, at work for that role, crosses the line out and kills itself. So
lines that are left at the end name moments that nobody came to.

The file named by SWITCHES holds settings as JSON, so that a Docent that runs can have others.
"""

import fcntl
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

INGEST = "ingest"
SWITCHED = (
    "CACHE_SEARCH_SECONDS",
    "HANDOVER",
    "HISTORY_MESSAGES",
    "MODELS",
    "ROUTES",
    "SEARCH_EXPANSION",
)
working = threading.local()  # the role whose step or job this thread does

Act = Callable[..., Any]


def due(moment: str, role: str) -> bool:
    """Return whether the next death is to come at this moment."""
    lines = Path(os.environ["FAILPOINTS"]).read_text(encoding="utf-8").splitlines()
    return bool(lines) and lines[0].split() == [moment, role]


def reached(moment: str, role: str) -> None:
    """Die if this is the moment that is named first."""
    with open(os.environ["FAILPOINTS"], "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = file.read().splitlines()
        if not lines or lines[0].split() != [moment, role]:
            return
        file.seek(0)
        file.truncate()
        file.write("\n".join(lines[1:]))
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def at_work() -> str:
    """Return the role at work in this thread."""
    return getattr(working, "role", "")


def wrap(owner: Any, name: str, wrapped: Callable[[Act], Act]) -> None:
    """Put something around a function of a module or class; one that is gone is an error."""
    setattr(owner, name, wrapped(getattr(owner, name)))


def before(moment: str) -> Callable[[Act], Act]:
    """Put a moment before an act."""

    def wrapped(act: Act) -> Act:
        def acting(*args: Any, **options: Any) -> Any:
            reached(moment, at_work())
            return act(*args, **options)

        return acting

    return wrapped


def after(moment: str, when: Callable[[Any], bool] = lambda _: True) -> Callable[[Act], Act]:
    """Put a moment after an act, when what it brought is such."""

    def wrapped(act: Act) -> Act:
        def acting(*args: Any, **options: Any) -> Any:
            result = act(*args, **options)
            if when(result):
                reached(moment, at_work())
            return result

        return acting

    return wrapped


def for_role(act: Act) -> Act:
    """Note for whom this thread works: the role is the first argument."""

    def acting(role: Any, *args: Any) -> Any:
        working.role = str(role)
        return act(role, *args)

    return acting


def uncommitted(moment: str) -> Callable[[Act], Act]:
    """Put a moment between a statement and its commit."""

    def wrapped(act: Act) -> Act:
        def acting(*args: Any) -> Any:
            if not due(moment, at_work()):
                return act(*args)
            transaction = importlib.import_module("django.db.transaction")
            with transaction.atomic():
                result = act(*args)
                if result:
                    reached(moment, at_work())
            return result

        return acting

    return wrapped


def of_steps(steps: Any) -> None:
    """Put moments into the life of a step, up to its commit and before its bells."""
    for name in ("perform_one_by_one", "perform_in_batches"):
        wrap(steps, name, for_role)
    wrap(steps, "claim_ready", after("after_claim", when=bool))
    wrap(steps, "claim_ready", before("before_claim"))
    wrap(steps, "run_agent", before("during_work"))
    wrap(steps, "finish", before("before_finish"))
    wrap(steps, "_finish_all", before("before_finish_of_several"))
    wrap(steps, "record", uncommitted("before_commit"))
    wrap(steps, "record_all", uncommitted("before_commit_of_several"))
    wrap(steps, "record_all", after("after_commit_of_several", when=bool))
    wrap(steps, "send", before("after_commit"))


def of_manager(manager: Any) -> None:
    """Put a moment before the decision."""
    wrap(manager, "route", before("during_work"))


def of_envelopes(envelopes: Any) -> None:
    """Put moments around the commit of a turn's end, which stores the answer, too."""
    wrap(envelopes, "conclude", after("before_commit_of_end"))
    wrap(envelopes, "_on_commit", lambda act: lambda tell: act(before("after_commit_of_end")(tell)))


def of_journal(journal: Any) -> None:
    """Put a moment after a reply was stored."""
    wrap(journal, "store_reply", after("after_journal"))


def of_flight(flight: Any) -> None:
    """Have the threads of tools work for the role that had them called."""

    def beginning(act: Act) -> Act:
        def acting(self: Any, tool: str, use: Act, seconds: float) -> None:
            role = at_work()

            def using() -> Any:
                working.role = role
                return use()

            act(self, tool, using, seconds)

        return acting

    wrap(flight.Flight, "__init__", beginning)


def of_tool_call(tool_call: Any) -> None:
    """Put moments after a tool was used, and after what it did was written down."""
    wrap(tool_call.Attempt, "_use", after("after_use"))
    wrap(tool_call.Attempt, "__call__", after("after_call"))


def of_tool_journal(tool_journal: Any) -> None:
    """Put moments around looking for earlier calls, and just before an effect's commit."""
    wrap(tool_journal, "find", before("before_calls"))
    wrap(tool_journal, "require_step", after("before_commit_of_effect"))


def of_events(events: Any) -> None:
    """Put a moment after watchers were told a piece of the answer."""

    def telling(act: Act) -> Act:
        def acting(stream: str, event: str, **data: Any) -> None:
            act(stream, event, **data)
            if event == "token":
                reached("after_telling", at_work())

        return acting

    wrap(events, "publish", telling)


def of_recent(recent: Any) -> None:
    """Put a moment after a search kept what it found."""
    wrap(recent, "put", after("after_keeping"))


def of_holding(holding: Any) -> None:
    """Put moments around taking a job."""

    def taking(act: Act) -> Act:
        def acting(job: Any) -> Any:
            working.role = INGEST
            return act(job)

        return acting

    wrap(holding, "claim", after("after_claim", when=bool))
    wrap(holding, "claim", before("before_claim"))
    wrap(holding, "claim", taking)


def of_reading(process: Any) -> None:
    """Put a moment while the parser has a file: it was sent, and nothing was heard of it."""
    hear = process.Child.receive_answer

    def asking(act: Act) -> Act:
        def acting(child: Any, *asked: Any) -> Any:
            working.role = INGEST  # the thread that loads
            child.receive_answer = before("during_work")(partial(hear, child))
            return act(child, *asked)

        return acting

    wrap(process.Child, "ask", asking)


def of_describing(describing: Any) -> None:
    """Have the threads that ask models of documents work for the job."""

    def asking(act: Act) -> Act:
        def acting(*args: Any) -> Any:
            working.role = INGEST
            return act(*args)

        return acting

    wrap(describing.Describer, "work", asking)


def of_encoding(encoding: Any) -> None:
    """Put a moment after vectors were made, when nobody has stored them yet."""
    wrap(encoding.Encoder, "ask_model", after("after_encoding"))


def of_pages(pages: Any) -> None:
    """Put a moment after a document and its item were written, before both are committed."""
    wrap(pages.Work, "save", after("before_commit"))


def of_pipeline(pipeline: Any) -> None:
    """Put a moment after a document's commit, before anybody is told of it."""
    wrap(pipeline.Pipeline, "write", after("after_commit"))


def of_completion(completion: Any) -> None:
    """Put moments after all items, after removals, and around the commit that ends the job."""

    def ending(act: Act) -> Act:
        def acting(*args: Any, **values: Any) -> Any:
            transaction = importlib.import_module("django.db.transaction")
            transaction.on_commit(lambda: reached("after_finish", INGEST))
            return act(*args, **values)

        return acting

    wrap(completion, "complete", before("before_finish"))
    wrap(completion, "remove_gone", after("after_removal"))
    wrap(completion, "end", after("before_commit_of_end"))
    wrap(completion, "end", ending)


def of_conf(conf: Any) -> None:
    """Have settings looked up among the switches first."""
    settings = conf.LazySettings
    started_with = settings.__getattr__

    def switched(name: str) -> property:
        def look(self: Any) -> Any:
            values = json.loads(Path(os.environ["SWITCHES"]).read_text(encoding="utf-8"))
            return values[name] if name in values else started_with(self, name)

        return property(look)

    for name in SWITCHED:
        setattr(settings, name, switched(name))


PATCHES: dict[str, Callable[[Any], None]] = {
    "django.conf": of_conf,
    "agents.steps.steps": of_steps,
    "agents.manager": of_manager,
    "agents.envelopes": of_envelopes,
    "agents.llm.journal": of_journal,
    "agents.tools.flight": of_flight,
    "agents.tools.tool_call": of_tool_call,
    "agents.tools.tool_journal": of_tool_journal,
    "agents.steps.events": of_events,
    "knowledge.search.cache": of_recent,
    "knowledge.ingestion.job_lease": of_holding,
    "knowledge.sandbox.reader": of_reading,
    "knowledge.ingestion.describer": of_describing,
    "knowledge.ingestion.job_vectors": of_encoding,
    "knowledge.ingestion.decisions": of_pages,
    "knowledge.ingestion.pipeline": of_pipeline,
    "knowledge.ingestion.completion": of_completion,
}


class Patching(importlib.abc.MetaPathFinder):
    """Finds the modules that have moments, and puts them in once they are loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's own spec, with a loader that patches."""
        if name not in PATCHES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                PATCHES[name](module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "FAILPOINTS" in os.environ:
    sys.meta_path.insert(0, Patching())
