"""Commandline: gives a command the servers it needs, then hands over to Django."""

import os
from pathlib import Path

from django.core.management import execute_from_command_line
from django.db import OperationalError
from dotenv import load_dotenv
from redis import RedisError

from assistant import embedded, migration
from assistant.errors import SetupError
from knowledge.mortality import follow_parent

CHECKOUT = Path(__file__).resolve().parent.parent
WITHOUT_SERVERS = frozenset(
    {"help", "version", "check", "contracts", "routes", "collectstatic", "compilemessages",
     "diffsettings", "findstatic", "makemessages", "prompts", "spectacular", "startapp",
     "startproject"}
)  # fmt: skip
ON_A_MIGRATED_DATABASE = frozenset(
    {"apikey", "calibrate", "changepassword", "chat", "createsuperuser", "delete", "evaluate",
     "export", "import", "ingest", "models", "reindex", "replay", "serve", "trace", "workers"}
)  # fmt: skip
ON_SCRATCH_SERVERS = frozenset({"bench", "chaos", "test"})
# The only kind of `evaluate` that asks questions.
REHEARSED = ["evaluate", "injection"]
# Instead of those: the servers that DATABASE_URL and REDIS_URL name.
GIVEN = "--given"


def run(argv: list[str]) -> None:
    """Run the command. Raises SetupError if its servers can't be used; Django's errors exit."""
    follow_parent()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")
    load_dotenv(CHECKOUT / ".env")
    if any("\udc80" <= character <= "\udcff" for word in argv for character in word):
        raise SetupError("The command line holds bytes that are no text in UTF-8.")
    try:
        _run(argv, argv[1] if len(argv) > 1 else "help")
    except OperationalError as error:
        raise SetupError(f"PostgreSQL can't be used: {error}") from error
    except RedisError as error:
        raise SetupError(f"Redis can't be used: {error}") from error


def _run(argv: list[str], command: str) -> None:
    if command.startswith("-") or command in WITHOUT_SERVERS or {"-h", "--help"} & {*argv}:
        execute_from_command_line(argv)
    elif _wants_scratch(argv, command) and not embedded.is_scratch() and GIVEN not in argv:
        # What is measured shall cost what it costs; what is tested needn't survive.
        with embedded.scratch(durable=command != "test"):
            execute_from_command_line(argv)
    else:
        embedded.join()
        if command in ON_A_MIGRATED_DATABASE:
            migration.prepare()
        execute_from_command_line(argv)


def _wants_scratch(argv: list[str], command: str) -> bool:
    return command in ON_SCRATCH_SERVERS or argv[1:3] == REHEARSED
