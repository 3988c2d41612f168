"""The queues, as staff see them over HTTP and in admin."""

import os
import socket
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.timezone import now

from agents.names import Role
from agents.steps import events, presence
from agents.steps.step_lease import WORKER

API, PAGE = "/api/admin/queues/", "/admin/queues/"


def member(*, staff: bool = True) -> User:
    return User.objects.create_user("ann", is_staff=staff)


def may_see_turns(user: User) -> User:
    user.user_permissions.add(Permission.objects.get(codename="view_envelope"))
    return user


def test_staff_read_every_queue_with_the_command_that_adds_a_worker(
    client: Client, db: None
) -> None:
    client.force_login(may_see_turns(member()))
    presence.announce([Role.SEARCH.queue])
    body = client.get(API).json()
    queues = {queue["name"]: queue for queue in body["queues"]}
    assert queues["search"] | {"state": "idle", "consumers": 1} == queues["search"]
    assert queues["search"]["add_worker"] == "python3 manage.py workers search"
    assert queues["response"]["state"] == "deserted"
    assert (body["turns"], body["sweepers"]) == (0, 0)


@pytest.mark.parametrize("known", [True, False])
def test_the_queues_are_for_staff(client: Client, db: None, known: bool) -> None:
    if known:
        client.force_login(member(staff=False))
    expected = HTTPStatus.FORBIDDEN if known else HTTPStatus.UNAUTHORIZED
    assert client.get(API).status_code == expected
    assert client.get(PAGE).status_code == HTTPStatus.FOUND


def test_the_page_names_what_is_missing_and_how_to_start_it(client: Client, db: None) -> None:
    client.force_login(may_see_turns(member()))
    presence.announce([role.queue for role in Role if role is not Role.QUALITY])
    page = client.get(PAGE).content.decode()
    assert "Nobody was heard who listens for quality, ingest, sweeper" in page
    assert "python3 manage.py workers --together quality ingest sweeper" in page
    assert "Without a sweeper nothing that gets lost is found again" in page


def test_a_process_that_dies_is_one_card_that_says_since_when(client: Client, db: None) -> None:
    client.force_login(may_see_turns(member()))
    agents = [role.queue for role in Role if role is not Role.MANAGER]
    presence.announce([Role.MANAGER.queue])
    presence.announce([*presence.SERVICES.values()])
    presence.announce(agents)
    _fall_silent(agents)
    shown = client.get(PAGE)
    (outage,) = shown.context["overview"].outages
    assert outage.names == [role.value for role in Role if role in presence.needed_roles()][1:]
    assert outage.since
    assert timedelta() < now() - outage.since < timedelta(minutes=1)
    assert f"Process {os.getpid()} on {socket.gethostname()} has been silent" in page_of(shown)
    assert page_of(shown).count('class="card fault"') == 1
    presence.announce(agents)
    assert page_of(client.get(PAGE)).count('class="card fault"') == 0


def test_who_said_that_it_ends_did_not_fall_silent() -> None:
    events.connection().delete(presence.LAST)
    presence.announce([Role.SEARCH.queue])
    presence.withdraw([Role.SEARCH.queue])
    presence.announce([Role.LANG.queue])
    _fall_silent([Role.LANG.queue])
    assert [silence.queues for silence in presence.silences()] == [[Role.LANG.queue]]


def test_roles_of_closed_routes_are_not_missed(client: Client, db: None) -> None:
    client.force_login(may_see_turns(member()))
    presence.announce([role.queue for role in presence.needed_roles()])
    presence.announce([*presence.SERVICES.values()])
    assert client.get(PAGE).context["overview"].outages == []


def _fall_silent(queues: list[str]) -> None:
    """As a process that was killed: its announcement ends, and nothing took it back."""
    events.connection().delete(f"{presence.KEY_PREFIX}{WORKER}/{queues[0]}")


def page_of(response: Any) -> str:
    return str(response.content.decode())


def test_the_page_is_closed_to_staff_who_may_not_see_turns(client: Client, db: None) -> None:
    client.force_login(member())
    assert client.get(PAGE).status_code == HTTPStatus.FORBIDDEN


def test_admin_leads_to_the_queues(client: Client, db: None) -> None:
    client.force_login(may_see_turns(member()))
    assert f'href="{PAGE}"' in client.get("/admin/").content.decode()
