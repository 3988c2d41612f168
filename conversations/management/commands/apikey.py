"""apikey: makes, lists and revokes the keys of API clients."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from knox.models import AuthToken
from rich.console import Console
from rich.table import Table

from conversations.errors import UnknownAssistant
from conversations.models import Assistant, Grant
from conversations.reach import assistant_named


class Command(BaseCommand):
    """Manages API keys. A key belongs to a user of its name, who owns what is asked with it."""

    help = "Create, list or revoke the keys of API clients."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add create, list and revoke."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a key and show it once")
        create.add_argument("name", help="who the key is for")
        reach = create.add_mutually_exclusive_group()
        reach.add_argument("--staff", action="store_true", help="may also manage documents")
        reach.add_argument(
            "--assistant", default="", metavar="NAME", help="reaches this assistant and no other"
        )
        verbs.add_parser("list", help="who has keys")
        revoke = verbs.add_parser("revoke", help="end all keys of a name")
        revoke.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do one of the three."""
        match options["verb"]:
            case "create":
                assistant = _assistant(options["assistant"])
                self._create(options["name"], staff=options["staff"], assistant=assistant)
            case "list":
                self._list()
            case "revoke":
                self._revoke(options["name"])

    @transaction.atomic
    def _create(self, name: str, *, staff: bool, assistant: Assistant | None) -> None:
        try:
            User(username=name).clean_fields(exclude=["password"])
        except ValidationError as error:
            raise CommandError(
                f"{name[:40]!r} cannot name a key: use at most 150 letters, digits, '@', '.', "
                "'+', '-' and '_'."
            ) from error
        user, new = User.objects.get_or_create(username=name, defaults={"is_staff": staff})
        if new:
            user.set_unusable_password()
            user.save()
        elif user.has_usable_password() or user.is_staff != staff:
            raise CommandError(
                f"{name!r} already exists as another kind of user: choose another name."
            )
        token, key = AuthToken.objects.create(user)  # type: ignore[no-untyped-call]
        if assistant:
            Grant.objects.create(token=token, assistant=assistant)
        self.stdout.write(key)
        self.stderr.write(
            f"This is the key of {name!r}. It is shown only now; send it as\n"
            "Authorization: Bearer <key>"
        )

    def _list(self) -> None:
        table = Table("name", "may", "assistant", "key begins with", "created")
        tokens = AuthToken.objects.select_related("user", "grant__assistant")
        for token in tokens.order_by("user__username", "created"):
            table.add_row(
                token.user.get_username(),
                "chat, documents" if token.user.is_staff else "chat",
                token.grant.assistant.name if hasattr(token, "grant") else "any",
                token.token_key,
                f"{token.created:%Y-%m-%d %H:%M} UTC",
            )
        Console().print(table if table.row_count else "There are no keys.")

    def _revoke(self, name: str) -> None:
        count, _ = AuthToken.objects.filter(user__username=name).delete()
        if not count:
            raise CommandError(f"{name!r} has no key.")
        self.stdout.write(f"Revoked {count} key{'s' if count > 1 else ''} of {name!r}.")


def _assistant(name: str) -> Assistant | None:
    """Return the assistant of this name, none for no name; say which exist when it does not."""
    try:
        return assistant_named(name) if name else None
    except UnknownAssistant as error:
        raise CommandError(str(error)) from error
