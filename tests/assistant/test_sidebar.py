"""The sidebar: every page has its place, and a person sees those they may open."""

from http import HTTPStatus

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from assistant.sidebar import SECTIONS, Place

PLACES = [place for places in SECTIONS.values() for place in places]


@pytest.fixture
def clerk(client: Client, db: None) -> User:
    """Somebody of staff who may do nothing yet, and has logged in."""
    user = User.objects.create_user("clerk", is_staff=True)
    client.force_login(user)
    return user


def allow(user: User, *codenames: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))


def seen(client: Client) -> list[str]:
    """The titles in the sidebar of who has logged in."""
    page = client.get("/admin/")
    return [
        place["title"] for part in page.context["sidebar_navigation"] for place in part["items"]
    ]


def test_every_kind_of_row_has_one_place() -> None:
    lists = [
        f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        for model in admin.site._registry
    ]
    placed = [place.page for place in PLACES if place.page.endswith("_changelist")]
    assert sorted(placed) == sorted(lists)


def test_no_title_and_no_page_stands_there_twice() -> None:
    assert len({place.title for place in PLACES}) == len({place.page for place in PLACES})
    assert len({place.page for place in PLACES}) == len(PLACES)


def test_whoever_may_do_everything_sees_all_of_it(client: Client, db: None) -> None:
    client.force_login(User.objects.create_superuser("root"))
    assert seen(client) == [place.title for place in PLACES]


def test_staff_without_rights_are_shown_no_page_that_needs_one(client: Client, clerk: User) -> None:
    assert seen(client) == ["Home", "Ask a question"]


def test_who_may_change_rows_without_a_word_about_viewing_them_finds_them(
    client: Client, clerk: User
) -> None:
    allow(clerk, "change_price", "view_document")
    assert seen(client)[2:] == ["Documents", "Try a search", "Prices"]


def test_each_permission_opens_the_page_it_shows(client: Client, clerk: User) -> None:
    pages = [place for place in PLACES if place.permission]
    closed = [place.title for place in pages if _status(client, place) != HTTPStatus.FORBIDDEN]
    allow(clerk, *(place.permission.split(".")[1] for place in pages))
    open_now = [place.title for place in pages if _status(client, place) == HTTPStatus.OK]
    assert (closed, open_now) == ([], [place.title for place in pages])


def _status(client: Client, place: Place) -> int:
    return client.get(reverse(place.page)).status_code


def test_a_page_is_under_the_place_nearest_to_it(client: Client, db: None) -> None:
    client.force_login(User.objects.create_superuser("root"))
    near = {
        "/admin/": ("Home", True),
        "/admin/knowledge/document/": ("Documents", True),
        "/admin/knowledge/document/add/": ("Add documents", True),
        "/admin/knowledge/goldenquestion/add/": ("Golden questions", False),
        "/admin/password_change/": (None, False),
    }
    for path, (title, is_place) in near.items():
        context = client.get(path).context
        assert (context["place"] and context["place"].title, context["is_place"]) == (
            title,
            is_place,
        )
        active = [
            place["title"]
            for section in context["sidebar_navigation"]
            for place in section["items"]
            if place["active"]
        ]
        assert active == ([title] if title else [])
