"""Test: runs the tests on servers of their own; every argument goes to pytest."""

import subprocess
import sys
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """`manage.py test [pytest's arguments]`."""

    help = "Runs the tests. Takes the arguments of pytest; a running Docent isn't disturbed."

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass everything on, unparsed, and end with pytest's exit status."""
        # A process of its own: pytest has to see modules before they are imported.
        sys.exit(
            subprocess.run([sys.executable, "-m", "pytest", *argv[2:]], check=False).returncode
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do the same when called from code."""
        self.run_from_argv(["manage.py", "test", *args])
