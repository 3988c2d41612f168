"""Test: runs the tests on servers of their own; every argument goes to pytest."""

import subprocess
import sys
from typing import Any

from django.core.management.base import BaseCommand

from assistant.commandline import GIVEN


class Command(BaseCommand):
    """`manage.py test [pytest's arguments]`."""

    help = (
        "Runs the tests on servers of their own, or with --given on those of DATABASE_URL and "
        "REDIS_URL, in databases of their own. Takes the arguments of pytest."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass everything on, unparsed, and end with pytest's exit status."""
        # A process of its own: pytest has to see modules before they are imported.
        sys.exit(
            subprocess.run(
                [sys.executable, "-m", "pytest", *(word for word in argv[2:] if word != GIVEN)],
                check=False,
            ).returncode
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do the same when called from code."""
        self.run_from_argv(["manage.py", "test", *args])
