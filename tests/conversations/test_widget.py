"""A widget: who may show the chat page in a frame, what it may do there, and when that ends."""

import re
from datetime import timedelta
from http import HTTPStatus
from io import StringIO
from time import time
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import get_script_prefix, reverse
from django.utils.timezone import now
from knox.models import AuthToken

from agents.models import Envelope
from conversations import limits
from conversations.grants import issue, origin_of
from conversations.models import Conversation, Grant
from conversations.widget import line_to_paste
from tests import factories

pytestmark = pytest.mark.django_db

SITE = "https://shop.example"
JSON = {"Accept": "application/json", "Origin": "http://testserver"}


@pytest.fixture
def grant() -> Grant:
    """A key for a site, bound to a collection beside which there is another."""
    factories.collection("shop")
    factories.collection("secrets")
    return issue("shop-site", collections=["shop"], sites=[SITE])[0]


@pytest.fixture
def key(grant: Grant) -> str:
    return grant.token.token_key


def opened(client: Client, key: str, referer: str = f"{SITE}/", **headers: str) -> Any:
    where = reverse("widget", args=[key])
    return client.get(where, headers={"Referer": referer, "Sec-Fetch-Dest": "iframe"} | headers)


def inside(client: Client, key: str, language: str = "auto") -> str:
    """Return the address below which a frame asks, as its script makes it."""
    token = re.search(r'data-token="([^"]+)"', opened(client, key).content.decode())
    assert token
    return f"/widget/{key}/{language}/{token[1]}/"


def ask(client: Client, where: str, text: str = "Do unused days end?", **more: Any) -> Any:
    return client.post(where, {"text": text} | more, headers=JSON)


def test_a_page_of_the_site_gets_a_frame_that_no_other_may_show(client: Client, key: str) -> None:
    page = opened(client, key)
    assert page.status_code == HTTPStatus.OK
    assert f"frame-ancestors {SITE}" in page["Content-Security-Policy"]
    assert "default-src 'self'" in page["Content-Security-Policy"]
    assert "X-Frame-Options" not in page
    assert not page.cookies


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Referer": "https://elsewhere.example/"}, 403),
        ({"Referer": f"{SITE}.evil.example/"}, 403),
        ({"Referer": "http://shop.example/"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Dest": "document"}, 403),
        ({"Referer": "", "Sec-Fetch-Dest": ""}, 403),
        ({"Referer": ""}, 200),
        ({"Sec-Fetch-Dest": ""}, 200),
    ],
)
def test_the_server_looks_from_where_a_frame_is_opened(
    client: Client, key: str, headers: dict[str, str], status: int
) -> None:
    page = client.get(
        reverse("widget", args=[key]),
        headers={"Referer": f"{SITE}/", "Sec-Fetch-Dest": "iframe"} | headers,
    )
    assert page.status_code == status
    assert ("not made for this page" in page.content.decode()) == (status == HTTPStatus.FORBIDDEN)


@pytest.mark.usefixtures("listening")
def test_a_frame_chats_without_cookies_in_a_session_of_its_own(
    client: Client, grant: Grant, settings: LazySettings
) -> None:
    settings.START_PAGE = "staff"
    key = grant.token.token_key
    where = inside(client, key)
    shown = client.get(where)
    assert shown.status_code == HTTPStatus.OK
    assert f"frame-ancestors {SITE}" in shown["Content-Security-Policy"]
    assert f'action="{where}"' in shown.content.decode()
    assert not Session.objects.exists()
    taken = ask(client, where)
    assert taken.status_code == HTTPStatus.ACCEPTED
    assert taken.json()["page"].startswith(where)
    assert "sessionid" not in client.cookies
    talk, turn = Conversation.objects.get(), Envelope.objects.get()
    assert (talk.owner, talk.user_id) == (grant.token.user, talk.session)
    assert turn.memory["collections"] == ["shop"]
    again = client.get(taken.json()["page"])
    assert again.status_code == HTTPStatus.OK
    assert "Do unused days end?" in again.content.decode()
    assert get_script_prefix() == "/"


@pytest.mark.usefixtures("listening")
def test_a_frame_lists_all_that_was_asked_in_it(client: Client, key: str) -> None:
    where = inside(client, key)
    for text in ("Do unused days end?", "Do used ones?"):
        assert ask(client, where, text).status_code == HTTPStatus.ACCEPTED
    page = client.get(where).content.decode()
    assert "Do unused days end?" in page
    assert "Do used ones?" in page


@pytest.mark.usefixtures("listening")
def test_another_frame_and_the_page_itself_see_nothing_of_it(client: Client, key: str) -> None:
    mine = inside(client, key)
    page = ask(client, mine).json()["page"].removeprefix(mine)
    other = inside(client, key)
    assert client.get(other + page).status_code == HTTPStatus.NOT_FOUND
    assert client.get(f"/{page}").status_code == HTTPStatus.NOT_FOUND
    turn = Envelope.objects.get()
    events = reverse("turn-events", args=[turn.pk]).removeprefix("/")
    assert client.head(other + events).status_code == HTTPStatus.UNAUTHORIZED
    # Who follows keeps no connection to the database: nothing can be asked after it here.
    assert client.head(mine + events).status_code == HTTPStatus.OK


@pytest.mark.usefixtures("listening")
def test_who_is_logged_in_beside_a_frame_is_nobody_in_it(client: Client, key: str) -> None:
    root = User.objects.create_superuser("root")
    client.force_login(root)
    cookie = client.cookies["sessionid"].value
    assert ask(client, inside(client, key)).status_code == HTTPStatus.ACCEPTED
    assert Conversation.objects.get().owner != root
    assert client.cookies["sessionid"].value == cookie
    assert client.get("/admin/").status_code == HTTPStatus.OK


def test_a_frame_reaches_nothing_but_the_chat_page(client: Client, key: str) -> None:
    where = inside(client, key)
    for path in ("admin/", "api/search/?q=x", "api/conversations/", "widget/x/", "v1/models"):
        assert client.get(where + path).status_code == HTTPStatus.NOT_FOUND, path


@pytest.mark.usefixtures("listening")
def test_a_frame_cannot_leave_what_its_key_is_bound_to(client: Client, key: str) -> None:
    where = inside(client, key)
    assert "secrets" not in client.get(where).content.decode()
    assert ask(client, where, collection="secrets").status_code == HTTPStatus.NOT_FOUND
    assert ask(client, where).status_code == HTTPStatus.ACCEPTED
    assert Envelope.objects.get().memory["collections"] == ["shop"]


def test_other_pages_send_nothing_to_a_frame_and_a_token_holds_for_its_key(
    client: Client, key: str
) -> None:
    where = inside(client, key)
    foreign = client.post(where, {"text": "Hi?"}, headers=JSON | {"Origin": SITE})
    assert (foreign.status_code, foreign.json()["error"]) == (
        HTTPStatus.FORBIDDEN,
        "This chat is not made for this page.",
    )
    other = issue("other", collections=["shop"], sites=[SITE])[0].token.token_key
    moved = client.get(where.replace(key, other))
    assert moved["Location"] == f"/widget/{other}/?new"


@pytest.mark.parametrize("end", ["revoke", "expire", "switch off"])
def test_a_key_that_is_over_ends_all_its_frames_at_once(
    client: Client, grant: Grant, end: str
) -> None:
    key = grant.token.token_key
    where = inside(client, key)
    if end == "revoke":
        call_command("apikey", "revoke", "shop-site", stdout=StringIO())
    elif end == "expire":
        AuthToken.objects.update(expiry=now() - timedelta(seconds=1))
    else:
        User.objects.update(is_active=False)
    for page in (opened(client, key), client.get(where), ask(client, where)):
        assert page.status_code == HTTPStatus.FORBIDDEN
        assert "switched off" in page.content.decode()
    # It is said within the frame, wherever that is.
    assert "frame-ancestors *" in opened(client, key)["Content-Security-Policy"]


@pytest.mark.usefixtures("listening")
def test_a_key_has_limits_of_its_own(
    client: Client, grant: Grant, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time()
    monkeypatch.setattr(limits, "time", lambda: moment)  # no minute ends between two questions
    Grant.objects.update(questions=3, questions_of_a_visitor=2)
    where = inside(client, grant.token.token_key)

    def status(address: str) -> int:
        question = {"text": "Do unused days end?"}
        return client.post(where, question, headers=JSON, REMOTE_ADDR=address).status_code

    assert [status("192.0.2.1") for _ in range(3)] == [202, 202, 429]
    assert [status("192.0.2.2") for _ in range(2)] == [202, 429]


def test_no_program_is_let_in_with_it(client: Client, key: str) -> None:
    called = client.post(
        "/api/chat/", {"message": "Hi?"}, headers={"Authorization": f"Bearer {key}"}
    )
    assert called.status_code == HTTPStatus.UNAUTHORIZED
    token, secret = AuthToken.objects.create(User.objects.create_user("x"))  # type: ignore[no-untyped-call]
    Grant.objects.create(token=token, collections=["shop"], sites=[SITE])
    called = client.get("/api/conversations/", headers={"Authorization": f"Bearer {secret}"})
    assert called.status_code == HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"sites": [SITE]}, "bind it to a collection or to an assistant"),
        ({"sites": [SITE], "collections": ["shop"], "scopes": ["chat", "documents"]}, "chat alone"),
        ({"sites": ["*"], "collections": ["shop"]}, "is no site like"),
        ({"sites": ["https://x.org; script-src *"], "collections": ["shop"]}, "is no site like"),
        ({"sites": ["https://x.org/page"], "collections": ["shop"]}, "is no site like"),
        ({"sites": ["ftp://x.org"], "collections": ["shop"]}, "is no site like"),
        ({"sites": ["https://x.org:port"], "collections": ["shop"]}, "is no site like"),
    ],
)
def test_a_key_that_would_be_open_is_not_made(wish: dict[str, Any], told: str) -> None:
    factories.collection("shop")
    with pytest.raises(ValidationError) as refused:
        issue("site", **wish)
    assert told in " ".join(refused.value.messages)
    assert not AuthToken.objects.exists()


def test_a_site_is_written_as_browsers_send_it() -> None:
    assert origin_of(" HTTPS://Shop.Example:443/ ") == SITE
    assert origin_of("http://127.0.0.1:9000") == "http://127.0.0.1:9000"


def test_the_command_prints_the_line_to_paste_as_often_as_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    factories.collection("shop")
    call_command("apikey", "create", "shop-site", "--site", SITE, "--collection", "shop")
    line = line_to_paste(Grant.objects.get())
    told = capsys.readouterr()
    assert told.out.strip() == line
    assert "set PUBLIC_URL" in told.err
    call_command("apikey", "line", "shop-site")
    assert capsys.readouterr().out.strip() == line
    call_command("apikey", "list")
    assert f"chat on {SITE}" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no key for a site"):
        call_command("apikey", "line", "nobody")


def test_the_admin_shows_the_line_when_the_key_is_made_and_later(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    factories.collection("shop")
    wish = {"name": "site", "scopes": ["chat"], "collections": ["shop"], "sites": f"{SITE}\n"}
    made = client.post(reverse("admin:conversations_key_add"), wish).content.decode()
    grant = Grant.objects.get()
    shown = f"data-key=&quot;{grant.token.token_key}&quot;"
    assert shown in made
    page = client.get(reverse("admin:conversations_key_change", args=[grant.pk])).content.decode()
    assert shown in page
    assert "120 questions a minute, 10 of a visitor" in page


def test_a_frame_speaks_the_language_that_the_page_chose(client: Client, key: str) -> None:
    headers = {"Referer": f"{SITE}/"}
    where = reverse("widget", args=[key])
    page = client.get(where, {"language": "de"}, headers=headers).content.decode()
    assert 'data-language="de"' in page
    page = client.get(where, {"language": "x/../y"}, headers=headers).content.decode()
    assert 'data-language="auto"' in page
