"""apikey: makes, lists and revokes the keys of API clients."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from knox.models import AuthToken
from rich.console import Console
from rich.table import Table


class Command(BaseCommand):
    """Manages API keys. A key belongs to a user of its name, who owns what is asked with it."""

    help = "Create, list or revoke the keys of API clients."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add create, list and revoke."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a key and show it once")
        create.add_argument("name", help="who the key is for")
        create.add_argument("--staff", action="store_true", help="may also manage documents")
        verbs.add_parser("list", help="who has keys")
        revoke = verbs.add_parser("revoke", help="end all keys of a name")
        revoke.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do one of the three."""
        match options["verb"]:
            case "create":
                self._create(options["name"], staff=options["staff"])
            case "list":
                self._list()
            case "revoke":
                self._revoke(options["name"])

    def _create(self, name: str, *, staff: bool) -> None:
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
        _, key = AuthToken.objects.create(user)  # type: ignore[no-untyped-call]
        self.stdout.write(key)
        self.stderr.write(
            f"This is the key of {name!r}. It is shown only now; send it as\n"
            "Authorization: Bearer <key>"
        )

    def _list(self) -> None:
        table = Table("name", "may", "key begins with", "created")
        for token in AuthToken.objects.select_related("user").order_by("user__username", "created"):
            table.add_row(
                token.user.get_username(),
                "chat, documents" if token.user.is_staff else "chat",
                token.token_key,
                f"{token.created:%Y-%m-%d %H:%M} UTC",
            )
        Console().print(table if table.row_count else "There are no keys.")

    def _revoke(self, name: str) -> None:
        count, _ = AuthToken.objects.filter(user__username=name).delete()
        if not count:
            raise CommandError(f"{name!r} has no key.")
        self.stdout.write(f"Revoked {count} key{'s' if count > 1 else ''} of {name!r}.")
