"""serve: runs the web process alone, for deployments that start each process by itself."""

import resource
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from assistant.connections import BoundedProtocol


class Command(BaseCommand):
    """Runs the web server in this process."""

    help = "Run the web process alone; `up` runs it with everything else."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --host and --port."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until told to stop."""
        # Every client takes a file, and each that waits another; many shells allow 1,024.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        uvicorn.run(
            "assistant.asgi:application",
            host=options["host"],
            port=options["port"],
            http=BoundedProtocol,
            # As everything else is logged; whoever asks is a line at INFO.
            log_config=None,
            log_level=settings.LOG_LEVEL,
            lifespan="off",
            timeout_graceful_shutdown=5,
            forwarded_allow_ips=settings.TRUSTED_PROXIES,
        )
