"""Command line: gives a command the servers and the tables it needs, then hands over to Django."""

import hashlib
import os
from contextlib import nullcontext

import django
from django.conf import settings
from django.core.management import call_command, execute_from_command_line
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from dotenv import load_dotenv
from redis import RedisError

from assistant.environment import WITHOUT_ENV_FILE
from assistant.errors import SetupError
from assistant.local import paths, shared_servers
from assistant.local.paths import CHECKOUT
from assistant.phases import phase
from knowledge.liveness import follow_parent

WITHOUT_SERVERS = frozenset(
    {"help", "version", "check", "contracts", "routes", "collectstatic", "compilemessages",
     "diffsettings", "findstatic", "makemessages", "prompts", "spectacular", "startapp",
     "startproject"}
)  # fmt: skip
ON_A_MIGRATED_DATABASE = frozenset(
    {"apikey", "calibrate", "changepassword", "chat", "createsuperuser", "delete", "evaluate",
     "export", "forget", "import", "ingest", "load_demo_billing", "mcp", "models", "reindex",
     "replay", "serve", "trace", "workers"}
)  # fmt: skip
ON_SCRATCH_SERVERS = frozenset({"bench", "chaos", "test"})
# The kinds of `evaluate` that have their questions answered with models and settings of their own.
REHEARSED = frozenset({"api", "faults", "injection", "tools"})
# Instead of scratch servers: those that DATABASE_URL and REDIS_URL name.
GIVEN = "--given"
# A file of the state folder: which migrations the embedded database has had.
NOTE = "migrated"
# Of other packages a database may well know migrations that an update of theirs has squashed.
OURS = frozenset({"agents", "billing", "conversations", "knowledge"})


class Unmigrated(SetupError):
    """The database isn't prepared for this version. Run: python3 manage.py migrate"""


class Foreign(SetupError):
    """Another version of Docent made the database, and no migrations lead from it to this one."""


def run(argv: list[str]) -> None:
    """Run the command. Raises SetupError if its servers can't be used; Django's errors exit."""
    follow_parent()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")
    if argv[1:2] == ["test"]:
        # What a deployment has set is not what is tested, nor in the processes that tests start.
        os.environ[WITHOUT_ENV_FILE] = "1"
    if WITHOUT_ENV_FILE not in os.environ:
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
    elif _needs_scratch(argv, command) and not shared_servers.is_scratch() and GIVEN not in argv:
        # What is measured shall cost what it costs; what is tested needn't survive.
        with shared_servers.scratch(durable=command != "test"):
            execute_from_command_line(argv)
    else:
        shared_servers.join()
        _load()
        if command in ON_A_MIGRATED_DATABASE:
            migrate_if_needed()
        execute_from_command_line(argv)


def _load() -> None:
    """Load Docent; the first time its modules are compiled, which takes long enough to be told."""
    is_first = not os.environ.get("DATABASE_URL") and not (paths.state_folder() / NOTE).exists()
    with phase("Loading Docent for the first time") if is_first else nullcontext():
        django.setup()


def _needs_scratch(argv: list[str], command: str) -> bool:
    rehearsed = command == "evaluate" and not REHEARSED.isdisjoint(argv[2:3])
    return rehearsed or command in ON_SCRATCH_SERVERS


def migrate_if_needed() -> None:
    """Migrate the embedded database if it needs it; raise Unmigrated when a configured one does.

    Costs a look at a file with the embedded database, a query with another.
    """
    if os.environ.get("DATABASE_URL"):
        _refuse_unmigrated()
        return
    note = settings.STATE_DIR / NOTE
    if not note.exists() or note.read_text() != _fingerprint():
        prepare_database()


def prepare_database() -> None:
    """Migrate, whatever database it is, and say how long that took."""
    with phase("Preparing the database"):
        call_command("migrate", verbosity=0, interactive=False)
    if settings.IS_EMBEDDED:
        (settings.STATE_DIR / NOTE).write_text(_fingerprint())


def refuse_foreign(loader: MigrationLoader) -> None:
    """Raise Foreign when the database has had migrations of ours that are not here."""
    applied = {name for name in loader.applied_migrations if name[0] in OURS}
    unknown = sorted(".".join(name) for name in applied - loader.disk_migrations.keys())
    if not unknown:
        return
    others = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    if os.environ.get("DATABASE_URL"):
        empty = "name an empty database in DATABASE_URL"
    else:
        empty = f"delete the folder {settings.STATE_DIR}"
    raise Foreign(
        "Another version of Docent made this database, by migrations that this one does not have: "
        f"{unknown[0]}{others}. Nothing in it was changed. To keep collections, `export` them with "
        f"the version that made it. Then stop Docent, {empty}, start again and `import` them."
    )


def _fingerprint() -> str:
    """Changes with our migrations, and with the versions of what brings others."""
    migrations = sorted(path.name for path in settings.BASE_DIR.glob("*/migrations/*.py"))
    pins = (settings.BASE_DIR / "pyproject.toml").read_text()
    return hashlib.sha256("\n".join([*migrations, pins]).encode()).hexdigest()


def _refuse_unmigrated() -> None:
    executor = MigrationExecutor(connection)
    refuse_foreign(executor.loader)
    unmigrated = executor.migration_plan(executor.loader.graph.leaf_nodes())
    connection.close()
    if unmigrated:
        raise Unmigrated
