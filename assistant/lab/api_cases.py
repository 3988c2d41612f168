"""API cases: requests made up from the schema, right ones and wrong ones, against a running Docent.

Schemathesis makes them up and judges the answers: none may be 5xx, have a status or a shape that
the schema does not name, take what it forbids or refuse what it allows.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tomli_w
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from rich.table import Table

from agents.models import Envelope
from assistant.lab.rehearsal import free_port, working
from assistant.local.processes import python
from assistant.management.commands.workers import processes
from conversations.grants import SCOPES, issue
from conversations.models import Conversation, Handover
from conversations.services import Asker, ask, wait
from knowledge.errors import KnowledgeError
from knowledge.models import Document, Ingest

COLLECTION, OTHER = "docent", "elsewhere"
# Key → its scopes and the collections it is bound to. `foreign` is somebody else's.
KEYS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "all scopes": (SCOPES, ()),
    "chat": (("chat",), ()),
    "documents": (("documents",), ()),
    "admin": (("admin",), ()),
    "foreign": (("chat", "documents"), (OTHER,)),
}
UNKNOWN, NONE = "unknown", "none"
OWNER = "owner"
START_SECONDS = 60.0
# Code of a finding → the column that counts it; others stand under "others".
FINDINGS = {
    "ST101": "5xx",
    "ST103": "undocumented",
    "ST105": "undocumented",
    "ST108": "other shape",
    "ST201": "wrong taken",
    "ST203": "wrong taken",
    "ST202": "right refused",
}
COLUMNS = (*dict.fromkeys(FINDINGS.values()), "others")
# What no schema can say: that the last message is the user's, that what is said is not blank, that
# the first day is not after the last, that there is something to be read. Schemathesis also takes a
# Last-Event-ID of 0 for a right one, which its pattern forbids.
RIGHT_IN_FORM_ALONE = [
    "answer_handover",
    "create_chat_completion",
    "create_document",
    "read_turn_events",
    "read_usage",
]
ACCEPTED = ["2xx", "401", "403", "404", "409", "429"]
CONFIG: dict[str, Any] = {
    "continue-on-failure": True,
    "request-timeout": 60,
    # Some streams are open until their client leaves.
    "max-stream-events": 2,
    "generation": {"allow-x00": False, "no-shrink": True, "database": "none"},
    "operations": [
        {
            "include-operation-id": RIGHT_IN_FORM_ALONE,
            "checks": {"positive_data_acceptance": {"expected-statuses": [*ACCEPTED, "400"]}},
        }
    ],
}
# What is asked here is more than anybody may.
ENVIRONMENT = {
    "MAX_TURNS_PER_KEY": "1000",
    "MAX_REQUESTS_PER_KEY": "0",
    "MAX_REQUESTS_PER_ADDRESS": "0",
}
# So often a name of what is there is tried, and not one that is made up.
KNOWN = 0.5


class NoSchemathesis(KnowledgeError):
    """Schemathesis is not installed. Run: python3 -m assistant.installation test"""


@contextmanager
def serving() -> Iterator[int]:
    """Run workers and web for the time of the block, on Docent's own documentation.

    Yields the port. Raises NoSchemathesis and NoWorkers.
    """
    if find_spec("schemathesis") is None:
        raise NoSchemathesis
    os.environ.update(ENVIRONMENT)
    call_command("migrate", verbosity=0)
    for collection in (COLLECTION, OTHER):
        call_command("ingest", str(settings.BASE_DIR / "docs"), collection=collection)
    port = free_port()
    with working(processes([]) | {"web": python("serve", "--port", str(port))}):
        _await_web(port)
        yield port


def _await_web(port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


def keys() -> dict[str, str]:
    """Return a key of each kind by its name, one that nobody issued, and an empty one for none.

    Those of different scopes are one owner's, who may answer in the inbox, too.
    """
    own = {
        name: issue(name if name == "foreign" else OWNER, scopes=scopes, collections=collections)[1]
        for name, (scopes, collections) in KEYS.items()
    }
    owner = User.objects.get(username=OWNER)
    owner.user_permissions.set(Permission.objects.filter(content_type__model="handover"))
    return own | {UNKNOWN: "0" * 64, NONE: ""}


def known() -> dict[str, list[Any]]:
    """Return names of what the owner has, by the parameter that takes them; makes what is missing.

    Only what no case deletes, and documents, of which there are many.
    """
    owner = User.objects.get(username=OWNER)
    asked = ask("How do I set a model?", Asker(owner), session="visitor-17")
    wait(asked)
    passed_on = ask("How do I add a folder of documents?", Asker(owner), session="visitor-18")
    wait(passed_on)
    talk = Conversation.objects.get(session="visitor-18")
    handover = Handover.objects.create(conversation=talk, why=Handover.Why.PERSON)
    Conversation.objects.filter(pk=talk.pk).update(status=Conversation.Status.WITH_STAFF)
    return {
        "path.turn_id": [str(pk) for pk in Envelope.objects.values_list("pk", flat=True)],
        "path.name": ["visitor-17", "visitor-18", "docent/all", COLLECTION],
        "path.id": [*Document.objects.values_list("pk", flat=True)],
        "path.ingest_id": [str(pk) for pk in Ingest.objects.values_list("pk", flat=True)],
        "path.handover_id": [handover.pk],
        "path.number": [1],
    }


def try_key(
    port: int, key: str, names: dict[str, list[Any]], folder: Path, *, cases: int, seed: int
) -> dict[str, Any]:
    """Try at most so many made-up cases per operation with a key; those of the rules come on top.

    Return the report of Schemathesis; what it found is in `found.txt` of the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schemathesis.toml").write_text(tomli_w.dumps(_config(names)))
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
        *("run", f"http://127.0.0.1:{port}/api/schema/?format=json", "--no-color"),
        *("--max-examples", str(cases), "--seed", str(seed)),
        *("--report", "json", "--report-json-path", "report.json"),
        *(("-H", f"Authorization: Bearer {key}") if key else ()),
    ]
    with (folder / "found.txt").open("w") as found:
        subprocess.run(command, cwd=folder, stdout=found, stderr=found, check=False)  # noqa: S603 a program of ours
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def _config(names: dict[str, list[Any]]) -> dict[str, Any]:
    named = {parameter.replace(".", "-"): values for parameter, values in names.items() if values}
    return CONFIG | {
        "dictionaries": {name: {"values": values} for name, values in named.items()},
        "parameters": {
            parameter: {"dictionary": parameter.replace(".", "-"), "probability": KNOWN}
            for parameter, values in names.items()
            if values
        },
    }


def figures(name: str, report: dict[str, Any]) -> dict[str, Any]:
    """Return what was found with a key: cases, operations, and findings of each column."""
    found: Counter[str] = Counter()
    for failure in report["failures"]:
        found[FINDINGS.get(failure["code"], COLUMNS[-1])] += failure["count"]
    return {
        "key": name,
        "operations": report["operations"]["tested"],
        "cases": report["test_cases"]["generated"],
        **{column: found[column] for column in COLUMNS},
    }


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the findings for people."""
    drawn = Table(title="Cases made up from the schema")
    for column in ("key", "operations", "cases", *COLUMNS):
        drawn.add_column(column, justify="left" if column == "key" else "right")
    for row in rows:
        drawn.add_row(
            *(f"{value:,}" if isinstance(value, int) else value for value in row.values())
        )
    return drawn
