"""serve: runs the web process alone, for deployments that start each process by itself."""

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    """Becomes the web server."""

    help = "Run the web process alone; `up` runs it with everything else."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --host and --port."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace this process by the server."""
        command = web(options["host"], options["port"])
        os.execv(command[0], command)  # noqa: S606 our own command line


def web(host: str, port: int) -> list[str]:
    """Return the command line of the web process."""
    return [
        *(sys.executable, "-m", "uvicorn", "assistant.asgi:application"),
        *("--host", host, "--port", str(port), "--log-level", "warning"),
        *("--lifespan", "off", "--timeout-graceful-shutdown", "5"),
    ]
