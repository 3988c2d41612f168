"""forget: deletes what was said by a user or in a conversation, and prints a receipt."""

import json
import uuid
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.erasure import Receipt, forget, forget_user
from conversations.models import Conversation


class Command(BaseCommand):
    """`manage.py forget --user ID` or `--conversation ID`."""

    help = (
        "Delete what was held for a user, or one conversation, with turns and traces, and print a "
        "receipt as JSON. Refund cases stay, and what calls of models cost."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --user, --owner and --conversation."""
        chosen = parser.add_mutually_exclusive_group(required=True)
        chosen.add_argument("--user", metavar="ID", help="as clients of the API send it as user_id")
        chosen.add_argument("--conversation", metavar="ID", type=uuid.UUID, help="its UUID")
        parser.add_argument("--owner", metavar="NAME", help="only what keys of this name asked")

    def handle(self, *args: Any, **options: Any) -> None:
        """Forget it."""
        rows = Conversation.objects.all()
        if options["owner"]:
            rows = rows.filter(owner__username=options["owner"])
        if options["user"] == "":
            raise CommandError("--user takes an id: those without one cannot be told apart.")
        if options["user"]:
            count = rows.filter(user_id=options["user"]).count()
            receipt = forget_user(options["user"], rows, most=count)
        else:
            found = rows.filter(pk=options["conversation"]).first()
            if found is None:
                raise CommandError("There is no such conversation.")
            receipt = Receipt(dict(forget(found)))
        self.stdout.write(json.dumps(asdict(receipt), default=str, indent=2))
