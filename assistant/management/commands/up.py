"""up: runs everything in one terminal."""

import itertools
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import IntegrityError, connection
from rich.console import Console

from assistant.commandline import prepare_database
from assistant.environment import unknown_names
from assistant.health import missing_parts
from assistant.local import shared_servers
from assistant.local.processes import python, supervise
from assistant.management.commands.workers import processes
from assistant.phases import elapsed, tell
from knowledge.collections import OWN_DOCUMENTATION, intake
from knowledge.liveness import environment_of_child
from knowledge.model_calls import description_estimate
from knowledge.models import Collection

ADMIN = "admin"
DOCUMENTATION = settings.BASE_DIR / "docs"
NOTICE_SECONDS = 5.0
LOOK_SECONDS = 0.3
# Workers that are not there by then may never be.
LONG_SECONDS = 120.0
CHECK_SECONDS = 3.0


class Command(BaseCommand):
    """Migrates, fills the first collection, starts workers and web, and says where to look."""

    help = "Run everything in one terminal: servers, migrations, documentation, workers, web."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --host, --port and --describe."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")
        parser.add_argument(
            "--describe",
            action="store_true",
            help="have the model of GEN_MODEL describe Docent's own documentation, unasked",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Bring it up, and down again on Ctrl-C."""
        host, port = options["host"], options["port"]
        _refuse_taken(host, port)
        console = Console()
        for name, alike in unknown_names(
            settings.BASE_DIR / ".env", os.environ, settings.KNOWN_NAMES
        ).items():
            meant = f" Is {alike} meant?" if alike else ""
            console.print(f"[yellow]{name} is no setting of Docent and changes nothing.[/]{meant}")
        if not _is_local(host) and "START_PAGE" not in os.environ:
            os.environ["START_PAGE"] = "staff"
            console.print("Others can reach this address: the chat page is for staff only.")
        prepare_database()
        _make_admin(console)
        describe = options["describe"] or _is_to_describe(console)
        connection.close()

        def announce() -> None:
            tell("The web server and the workers start, and docs/ is taken in.")
            documentation = _Documentation(describe=describe)
            _await(
                {
                    "The web server listens.": lambda: _missing_web(host, port),
                    "The documents are taken in.": documentation.missing,
                    "The workers have loaded what the first question needs.": _missing_workers,
                }
            )
            console.print(f"\n[bold green]Docent is ready: http://{host}:{port}/[/]")
            console.print(f"Documents and conversations: http://{host}:{port}/admin/")
            console.print("Stop everything with Ctrl-C.\n")
            _keep_servers()

        code = supervise(
            processes([]) | {"web": python("serve", "--host", host, "--port", str(port))}, announce
        )
        shared_servers.leave(wait=True)
        sys.exit(code)


def _make_admin(console: Console) -> None:
    if User.objects.filter(is_superuser=True).exists():
        return
    password = secrets.token_urlsafe(9)
    try:
        User.objects.create_superuser(ADMIN, password=password)
    except IntegrityError:
        # Another `up` on this database was faster, and has shown its password.
        return
    console.print(
        f"Made an admin login. It is shown only now:\n"
        f"    user [bold]{ADMIN}[/]  password [bold]{password}[/]"
    )


def _is_to_describe(console: Console) -> bool:
    """Ask on a terminal, before the first start with a model, whether it may be paid for that."""
    if Collection.objects.exists():
        return False
    pages = sorted(DOCUMENTATION.glob("*.md"))
    price = description_estimate((page.stem, page.read_text(encoding="utf-8")) for page in pages)
    if price is None:
        return False
    console.print(f"A model can describe Docent's own documentation: {price}.", soft_wrap=True)
    if not sys.stdin.isatty():
        console.print("It is described by its own words. `up --describe` lets the model do it.")
        return False
    return input("Let it? [y/N] ").strip().lower() == "y"


class _Documentation:
    """The first collection on its way to what `docs/` says, by a process of its own.

    So this one never holds the embedding model. It is left alone when it was deleted in favour of
    others.
    """

    def __init__(self, *, describe: bool) -> None:
        self.process: subprocess.Popen[str] | None = None
        own = Collection.objects.filter(name=OWN_DOCUMENTATION)
        if Collection.objects.exclude(name=OWN_DOCUMENTATION).exists() and not own.exists():
            return
        words = ("ingest", str(DOCUMENTATION), "--collection", OWN_DOCUMENTATION)
        self.process = subprocess.Popen(  # noqa: S603 our own command line
            python(*words, *(["--describe"] if describe else [])),
            env=os.environ | environment_of_child(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def missing(self) -> list[str]:
        """Return how far it is; empty once it is over, which may be said to have failed."""
        if self.process is None:
            return []
        if self.process.poll() is None:
            return [f"{intake([OWN_DOCUMENTATION]) or 'The documents are looked through'}."]
        if self.process.returncode and self.process.stdout:
            tell(f"Docent's own documentation was not taken in. {self.process.stdout.read()}")
        return []


def _keep_servers() -> None:
    """Start the embedded servers again should their keeper be killed; costs next to nothing."""
    while True:
        time.sleep(CHECK_SECONDS)
        shared_servers.join()


def _await(parts: dict[str, Callable[[], list[str]]]) -> None:
    """Return when no part misses anything; say which are there, and what the others miss."""
    last_notice = time.monotonic()
    while parts:
        states = {name: missing() for name, missing in parts.items()}
        connection.close()
        for name in [name for name, problems in states.items() if not problems]:
            tell(name)
            del parts[name]
        if time.monotonic() - last_notice > NOTICE_SECONDS:
            tell(" ".join(itertools.chain(*states.values())))
            last_notice = time.monotonic()
        time.sleep(LOOK_SECONDS)


def _missing_workers() -> list[str]:
    """Return what to say while workers load; after a while what exactly is missing."""
    problems = missing_parts()
    if problems and elapsed() < LONG_SECONDS:
        return ["The workers load what the first question needs."]
    return problems


def _missing_web(host: str, port: int) -> list[str]:
    """Return what to say while the web process has not loaded its pages; empty once it listens."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return ["The web server is loading."]
    return []


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refuse_taken(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error.strerror}. Choose another with --port."
            ) from error
