"""Failpoints: lets a test kill a worker at a named moment. Python imports this by its name.

The file named by FAILPOINTS holds a line per death that is to come: `moment role`. A process that
reaches the moment named first, at work for that role, crosses the line out and kills itself.
"""

import fcntl
import importlib.abc
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

working = threading.local()  # the role whose step this thread does


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


def before(moment: str, role: Callable[..., str], act: Callable[..., Any]) -> Callable[..., Any]:
    """Return `act` with a moment before it."""

    def acting(*args: Any, **options: Any) -> Any:
        reached(moment, role(*args, **options))
        return act(*args, **options)

    return acting


def after(moment: str, role: Callable[..., str], act: Callable[..., Any]) -> Callable[..., Any]:
    """Return `act` with a moment after it, when it brought something."""

    def acting(*args: Any, **options: Any) -> Any:
        result = act(*args, **options)
        if result:
            reached(moment, role(*args, **options))
        return result

    return acting


def at_work(*_: Any, **__: Any) -> str:
    """Return the role at work in this thread."""
    return getattr(working, "role", "")


def of_steps(steps: Any) -> None:
    """Put moments around claim and finish."""
    taking = steps.claim

    def claim(envelope_id: Any, number: int) -> Any:
        reached("before_claim", "any")
        held = taking(envelope_id, number)
        working.role = str(held.role) if held else ""
        if held:
            reached("after_claim", working.role)
        return held

    taking_ready = steps.claim_ready

    def claim_ready(role: Any, most: int) -> Any:
        reached("before_claim", "any")
        held = taking_ready(role, most)
        working.role = str(role)
        if held:
            reached("after_claim", working.role)
        return held

    steps.claim = claim
    steps.claim_ready = claim_ready
    steps.run_agent = before("during_work", lambda held: str(held.role), steps.run_agent)
    steps.finish = before("before_finish", lambda held, *_: str(held.role), steps.finish)
    steps.send = before("after_finish", at_work, steps.send)


def of_journal(journal: Any) -> None:
    """Put a moment after a reply was stored."""
    journal.answered = after("after_journal", at_work, journal.answered)


PATCHES = {"agents.steps": of_steps, "agents.llm.journal": of_journal}


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
