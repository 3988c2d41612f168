"""mcp: the Model Context Protocol over standard streams, for an editor that starts it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from rest_framework.exceptions import AuthenticationFailed

from conversations.authentication import KeyAuthentication, identity
from conversations.errors import ConversationError
from conversations.mcp_server import serve_streams
from conversations.mcp_tools import Visitor
from conversations.reach import chosen_collections
from conversations.services import Asker
from conversations.terminal import workers
from knowledge.collections import Reach, collections_named
from knowledge.errors import UnknownCollection
from knowledge.identifiers import Scope


class Command(BaseCommand):
    """Serves the client that started it, until that closes standard input."""

    help = "Speak the Model Context Protocol over standard streams, for editors that start it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --collection and --key."""
        parser.add_argument(
            "--collection", action="append", default=[], help="look into this one (repeatable)"
        )
        parser.add_argument("--key", default="", help="do what this API key may, and no more")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; what is wrong before that is said on standard error."""
        try:
            visitor = holder(options["key"]) if options["key"] else Visitor(Asker(None), Reach())
            visitor = narrowed(visitor, options["collection"])
        except (AuthenticationFailed, ConversationError, UnknownCollection) as error:
            raise CommandError(str(error)) from error
        connection.close()
        with workers():
            anyio.run(serve_streams, visitor)


def holder(secret: str) -> Visitor:
    """Return who holds a key. Raises AuthenticationFailed."""
    user, key = KeyAuthentication().authenticate_credentials(secret.encode())
    if Scope.CHAT not in key.grant.scopes:
        raise AuthenticationFailed("This needs a key with the scope chat.")
    asker = Asker(user, key=identity(key), bound=key.grant.bounds)
    return Visitor(asker, key.grant.reach, key)


def narrowed(visitor: Visitor, names: Sequence[str]) -> Visitor:
    """Return the visitor as one who reaches these collections alone; all for none.

    Raises ForeignCollection, or UnknownCollection naming what there is to who has no key.
    """
    if not names:
        return visitor
    bound = visitor.asker.bound
    if visitor.key is None:
        collections_named(names)
    chosen_collections(visitor.key.grant.assistant if visitor.key else None, names, bound)
    own = tuple(sorted(set(names)))
    asker = replace(visitor.asker, bound=replace(bound, collections=own))
    return replace(visitor, asker=asker, reach=replace(visitor.reach, collections=own))
