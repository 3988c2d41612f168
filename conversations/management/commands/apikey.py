"""apikey: makes, lists and revokes the keys of API clients."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.timezone import now
from knox.models import AuthToken
from rich.console import Console
from rich.table import Table

from conversations.errors import UnknownAssistant
from conversations.grants import (
    QUESTIONS,
    QUESTIONS_OF_A_VISITOR,
    SCOPES,
    grants,
    issue,
    standing,
)
from conversations.models import Assistant
from conversations.reach import assistant_named
from conversations.widget import line_to_paste
from knowledge.identifiers import Scope

UNREACHED = (
    "But browsers load nothing from {} into pages of https: set PUBLIC_URL to the address at which "
    "visitors find Docent by https."
)


def _add_site_arguments(create: ArgumentParser) -> None:
    create.add_argument(
        "--site",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="a public key for a chat on the pages of this site, such as "
        "https://www.example.org, and good for nothing else (repeatable)",
    )
    create.add_argument(
        "--questions",
        type=int,
        default=QUESTIONS,
        metavar="N",
        help="in a minute, on all pages of its sites; 0: no limit (default: %(default)s)",
    )
    create.add_argument(
        "--questions-of-a-visitor",
        type=int,
        default=QUESTIONS_OF_A_VISITOR,
        metavar="N",
        help="in a minute, of one address; 0: no limit (default: %(default)s)",
    )


class Command(BaseCommand):
    """Manages API keys. A key belongs to a user of its name, who owns what is asked with it."""

    help = "Create, list or revoke the keys of API clients."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add create, list and revoke."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a key and show it once")
        create.add_argument("name", help="who the key is for")
        scopes = create.add_mutually_exclusive_group()
        scopes.add_argument(
            "--scope",
            action="append",
            default=[],
            choices=SCOPES,
            help="what it may do (repeatable); chat unless told",
        )
        scopes.add_argument("--staff", action="store_true", help="may do all of these")
        create.add_argument(
            "--collection",
            action="append",
            default=[],
            metavar="NAME",
            help="reaches this collection and no other (repeatable)",
        )
        create.add_argument(
            "--assistant", default="", metavar="NAME", help="reaches this assistant and no other"
        )
        _add_site_arguments(create)
        create.add_argument(
            "--expires", type=int, metavar="DAYS", help="ends after so many days; never unless told"
        )
        verbs.add_parser("list", help="who has keys")
        line = verbs.add_parser("line", help="show again what brings a chat to the pages of a site")
        line.add_argument("name")
        revoke = verbs.add_parser("revoke", help="end all keys of a name, or one of them")
        revoke.add_argument("name")
        revoke.add_argument("--key", default="", metavar="BEGINNING", help="only this one")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do one of the four."""
        match options["verb"]:
            case "create":
                self._create(options)
            case "list":
                self._list()
            case "line":
                self._lines(options["name"])
            case "revoke":
                self._revoke(options["name"], options["key"])

    def _create(self, options: dict[str, Any]) -> None:
        scopes = SCOPES if options["staff"] else options["scope"]
        try:
            grant, key = issue(
                options["name"],
                scopes=scopes or (Scope.CHAT,),
                collections=options["collection"],
                assistant=_assistant(options["assistant"]),
                days=options["expires"],
                sites=options["site"],
                questions=options["questions"],
                questions_of_a_visitor=options["questions_of_a_visitor"],
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        if grant.sites:
            self.stdout.write(line_to_paste(grant))
            self.stderr.write(f"Paste this line into the pages of {', '.join(grant.sites)}.")
            if not settings.IS_HTTPS and any(site.startswith("https:") for site in grant.sites):
                self.stderr.write(UNREACHED.format(settings.PUBLIC_URL))
            return
        self.stdout.write(key)
        self.stderr.write(
            f"This is the key of {options['name']!r}. It is shown only now; send it as\n"
            "Authorization: Bearer <key>"
        )

    def _list(self) -> None:
        table = Table("name", "may", "reaches", "key begins with", "created", "expires", "last use")
        for grant in grants():
            token, said = grant.token, standing(grant)
            table.add_row(
                token.user.get_username(),
                said["may"],
                said["reaches"],
                token.token_key,
                _time(token.created),
                "expired" if token.expiry and token.expiry <= now() else _time(token.expiry),
                _time(grant.last_used),
            )
        Console().print(table if table.row_count else "There are no keys.")

    def _lines(self, name: str) -> None:
        for_sites = [grant for grant in grants().filter(token__user__username=name) if grant.sites]
        if not for_sites:
            raise CommandError(f"{name!r} has no key for a site.")
        for grant in for_sites:
            self.stdout.write(line_to_paste(grant))

    def _revoke(self, name: str, beginning: str) -> None:
        keys = AuthToken.objects.filter(user__username=name, token_key__startswith=beginning)
        count = keys.count()
        if not count:
            begun = f" that begins with {beginning!r}" if beginning else ""
            raise CommandError(f"{name!r} has no key{begun}.")
        keys.delete()
        self.stdout.write(f"Revoked {count} key{'s' if count > 1 else ''} of {name!r}.")


def _time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "never"


def _assistant(name: str) -> Assistant | None:
    """Return the assistant of this name, none for no name; say which exist when it does not."""
    try:
        return assistant_named(name) if name else None
    except UnknownAssistant as error:
        raise CommandError(str(error)) from error
