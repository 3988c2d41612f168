"""Rehearsal: the real workers, asking a model server of this process, with nothing cached."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.management import call_command
from rich.console import Console

from agents.steps import presence
from assistant.lab.model_server import ModelServer, Script, serving
from assistant.local.processes import Child, end
from assistant.management.commands.workers import processes

COLLECTION = "docent"
START_SECONDS = 120.0
CACHES = ("MODEL", "TRANSLATION", "QUALITY", "SEARCH")
# What the workers of a rehearsal are started with.
ENVIRONMENT = {
    "GEN_MODEL": "fake@rehearsal",
    "SECOND_MODEL": "",
    "ENRICHMENT_MODEL": "none",
    "ROUTES": "documentation,fallback",
}


@contextmanager
def rehearsing(script: Script, *, cached: bool = False) -> Iterator[ModelServer]:
    """Run the compact layout on Docent's own documentation for the time of the block.

    Raises TimeoutError when the workers don't come up.
    """
    call_command("ingest", str(settings.BASE_DIR / "docs"), collection=COLLECTION, verbosity=0)
    console = Console(stderr=True)
    # Who begins a turn says which routes are open.
    settings.ROUTES = ENVIRONMENT["ROUTES"].split(",")
    with serving(script) as server:
        off = {} if cached else {f"CACHE_{kind}_SECONDS": "0" for kind in CACHES}
        os.environ.update(ENVIRONMENT | off, REHEARSAL_BASE_URL=server.base_url)
        children = [Child(name, line, "cyan") for name, line in processes([]).items()]
        for child in children:
            child.begin(console)
        try:
            _await()
            yield server
        finally:
            end(child.process for child in children if child.process)


def _await() -> None:
    until = time.monotonic() + START_SECONDS
    while missing := presence.missing_roles():
        if time.monotonic() > until:
            raise TimeoutError(f"no worker came up for: {', '.join(missing)}")
        time.sleep(0.2)
