"""test: runs the tests on servers of their own; every argument goes to pytest.

All of them, or those of folders, run side by side: as many at once as there are cores, and two
more, since the end-to-end tests mostly wait. Files, single tests and `-k` run in one process, and
so does everything with an option that needs one. `-n` of the caller decides over both.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from assistant.commandline import GIVEN

# Each has one of Redis's numbered databases; the rest of the sixteen are the end-to-end tests'.
MOST_AT_ONCE = 8
# The caller has chosen, wants few tests, or something that one process alone can do.
ALONE = ("-n", "--numprocesses", "--dist", "-k", "-s", "--capture=no", "--pdb", "--trace", "--co",
         "--collect-only", "--lf", "--ff", "--sw", "--fixtures", "--markers", "-h", "--help",
         "-V", "--version")  # fmt: skip


class Command(BaseCommand):
    """`manage.py test [pytest's arguments]`."""

    help = (
        "Runs the tests on servers of their own, or with --given on those of DATABASE_URL and "
        "REDIS_URL, in databases of their own. Takes the arguments of pytest."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass everything on, unparsed, and end with pytest's exit status."""
        words = [word for word in argv[2:] if word != GIVEN]
        # A process of its own: pytest has to see modules before they are imported.
        command = [sys.executable, "-m", "pytest", *side_by_side(words), *words]
        sys.exit(subprocess.run(command, env=environment(), check=False).returncode)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do the same when called from code."""
        self.run_from_argv(["manage.py", "test", *args])


def environment() -> dict[str, str]:
    """Return an environment in which compiled modules are kept where this process keeps them.

    Otherwise each of the processes would compile all modules, and the tests with their asserts.
    """
    if not sys.pycache_prefix:
        return {**os.environ}
    others = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return others | {"PYTHONPYCACHEPREFIX": sys.pycache_prefix}


def side_by_side(words: list[str]) -> list[str]:
    """Return the options that divide the tests among processes; none where that doesn't pay."""
    if any(_is_option(word, ALONE) for word in words) or _names_a_file(words):
        return []
    at_once = min((os.cpu_count() or 1) + 2, MOST_AT_ONCE)
    return ["-n", str(at_once), "-p", "tests.progress"]


def _is_option(word: str, options: Iterable[str]) -> bool:
    """Whether it is one of these, also with its value: `-n4`, `--dist=load`."""
    long = word.partition("=")[0]
    return word in options or (word[:2] if word[1:2] != "-" else long) in options


def _names_a_file(words: list[str]) -> bool:
    return any(Path(word.partition("::")[0]).is_file() for word in words)
