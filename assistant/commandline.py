"""Commandline: gives a command the servers it needs, then hands over to Django."""

import os
from pathlib import Path

from django.core.management import execute_from_command_line
from dotenv import load_dotenv

from assistant import embedded, migration

CHECKOUT = Path(__file__).resolve().parent.parent
WITHOUT_SERVERS = frozenset(
    {"help", "version", "check", "contracts", "routes", "collectstatic", "compilemessages",
     "diffsettings", "findstatic", "makemessages", "spectacular", "startapp", "startproject"}
)  # fmt: skip
ON_A_MIGRATED_DATABASE = frozenset(
    {"apikey", "changepassword", "chat", "createsuperuser", "ingest", "serve", "trace", "workers"}
)
ON_SCRATCH_SERVERS = frozenset({"test", "bench"})


def run(argv: list[str]) -> None:
    """Run the command. Raises SetupError if its servers can't run; Django's errors exit."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")
    load_dotenv(CHECKOUT / ".env")
    command = argv[1] if len(argv) > 1 else "help"
    if command.startswith("-") or command in WITHOUT_SERVERS or {"-h", "--help"} & {*argv}:
        execute_from_command_line(argv)
    elif command in ON_SCRATCH_SERVERS and not embedded.is_scratch():
        # What is measured shall cost what it costs; what is tested needn't survive.
        with embedded.scratch(durable=command == "bench"):
            execute_from_command_line(argv)
    else:
        embedded.join()
        if command in ON_A_MIGRATED_DATABASE:
            migration.prepare()
        execute_from_command_line(argv)
