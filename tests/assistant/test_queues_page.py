"""The queues, as staff see them over HTTP and in admin."""

from http import HTTPStatus

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.names import Role
from agents.steps import presence

API, PAGE = "/api/admin/queues/", "/admin/queues/"


def member(*, staff: bool = True) -> User:
    return User.objects.create_user("ann", is_staff=staff)


def may_see_turns(user: User) -> User:
    user.user_permissions.add(Permission.objects.get(codename="view_envelope"))
    return user


def test_staff_read_every_queue_with_the_command_that_adds_a_worker(
    client: Client, db: None
) -> None:
    client.force_login(member())
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
    assert "No worker listens for <strong>quality</strong>" in page
    assert "python3 manage.py workers quality" in page
    assert "No sweeper runs" in page
    assert "No worker listens for <strong>search</strong>" not in page


def test_the_page_is_closed_to_staff_who_may_not_see_turns(client: Client, db: None) -> None:
    client.force_login(member())
    assert client.get(PAGE).status_code == HTTPStatus.FORBIDDEN


def test_admin_leads_to_the_queues(client: Client, db: None) -> None:
    client.force_login(may_see_turns(member()))
    assert f'href="{PAGE}"' in client.get("/admin/").content.decode()
