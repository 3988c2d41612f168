"""Staff are told that a conversation waits for them, at least once, whatever fails meanwhile."""

import hmac
import json
from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from agents.names import Status
from conversations import handover, notifications
from conversations.models import Handover, Notification
from tests import factories
from tests.agents.trace.test_metrics import samples

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/desk"


@pytest.fixture
def desk(httpserver: HTTPServer, settings: Settings) -> HTTPServer:
    """The server of an organisation's own that is told, on a private address."""
    settings.HANDOVER = True
    settings.HANDOVER_WEBHOOK = httpserver.url_for(PATH)
    settings.HANDOVER_WEBHOOK_KEY = b"secret"
    settings.PUBLIC_URL = "https://docent.example.org"
    httpserver.expect_request(PATH, method="POST").respond_with_data("thanks")
    return httpserver


def asked(text: str = "I want a human!") -> Handover:
    """A conversation whose user asked for a person just now."""
    talk = factories.conversation("visitor-17")
    factories.turn(talk, text, status=Status.WITH_STAFF, small_talk="person")
    return talk.handovers.get()


def told(server: HTTPServer) -> list[Request]:
    return [request for request, _ in server.log]


def later(**time: float) -> None:
    """Let what is due then be due now."""
    Notification.objects.filter(due__lte=now() + timedelta(**time)).update(due=now())


def test_a_webhook_says_what_waits_and_where_and_is_signed(desk: HTTPServer) -> None:
    row = asked("I want a human! " + 100 * "Please. ")
    assert notifications.deliver_due() == 1
    (request,) = told(desk)
    body = request.get_data()
    sent = json.loads(body)
    notification = row.notifications.get()
    assert sent["id"] == request.headers["webhook-id"] == str(notification.pk)
    assert (sent["type"], sent["data"]["why"]) == ("handover.requested", "person")
    assert sent["data"]["last_message"].startswith("I want a human! Please.")
    assert len(sent["data"]["last_message"]) <= 300
    path = reverse("admin:conversations_handover_change", args=[row.pk])
    assert sent["data"]["url"] == f"https://docent.example.org{path}"
    signed = f"{notification.pk}.{request.headers['webhook-timestamp']}.".encode() + body
    digest = b64encode(hmac.digest(b"secret", signed, "sha256")).decode()
    assert request.headers["webhook-signature"] == f"v1,{digest}"
    assert (notification.sent is not None, notification.due) == (True, None)


def test_without_a_secret_nothing_is_signed(desk: HTTPServer, settings: Settings) -> None:
    settings.HANDOVER_WEBHOOK_KEY = b""
    asked()
    notifications.deliver_due()
    assert "webhook-signature" not in told(desk)[0].headers


def test_what_was_told_is_not_told_again(desk: HTTPServer) -> None:
    asked()
    assert [notifications.deliver_due() for _ in range(3)] == [1, 0, 0]
    assert len(told(desk)) == 1


def test_a_server_that_fails_is_told_again_with_the_same_id(
    desk: HTTPServer, settings: Settings
) -> None:
    answers = iter([Response(status=500), Response(status=503), Response(status=204)])
    desk.expect_request("/flaky").respond_with_handler(lambda _: next(answers))
    settings.HANDOVER_WEBHOOK = desk.url_for("/flaky")
    row = asked()
    notifications.deliver_due()
    assert row.notifications.get().error == "Undelivered: 500 INTERNAL SERVER ERROR"
    assert notifications.deliver_due() == 0
    later(seconds=5)
    notifications.deliver_due()
    later(seconds=30)
    notifications.deliver_due()
    ids = {request.headers["webhook-id"] for request in told(desk)}
    notification = row.notifications.get()
    assert (len(told(desk)), len(ids), notification.attempts) == (3, 1, 3)
    assert (notification.sent is not None, notification.error) == (True, "")


def test_a_server_that_is_not_there_loses_no_handover_and_the_admin_says_so(
    client: Client, desk: HTTPServer, settings: Settings
) -> None:
    settings.HANDOVER_WEBHOOK = "http://127.0.0.1:9/"
    row = asked()
    for _ in range(7):
        assert notifications.deliver_due() == 1
        later(days=1)
    assert notifications.deliver_due() == 0
    notification = row.notifications.get()
    assert (notification.due, notification.sent, notification.attempts) == (None, None, 7)
    row.refresh_from_db()
    assert row.is_open
    client.force_login(User.objects.create_superuser("root"))
    page = client.get(reverse("admin:conversations_handover_change", args=[row.pk]))
    assert "Nobody was told by webhook, attempt 7: ConnectError" in page.content.decode()


def test_a_redirect_is_not_followed(desk: HTTPServer, settings: Settings) -> None:
    moved = Response(status=302, headers={"Location": desk.url_for(PATH)})
    desk.expect_request("/moved").respond_with_handler(lambda _: moved)
    settings.HANDOVER_WEBHOOK = desk.url_for("/moved")
    row = asked()
    notifications.deliver_due()
    assert row.notifications.get().error == "Undelivered: 302 FOUND"


def test_no_connection_to_the_database_is_held_while_a_server_is_asked(
    desk: HTTPServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []
    send = notifications._send

    def watched(*args: Any) -> None:
        held.append(connection.connection)
        send(*args)

    monkeypatch.setattr(notifications, "_send", watched)
    asked()
    notifications.deliver_due()
    assert held == [None]


def test_who_died_while_sending_is_followed_by_another(
    desk: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*args: Any) -> None:
        raise SystemExit

    row = asked()
    with monkeypatch.context() as patch:
        patch.setattr(notifications, "_send", die)
        with pytest.raises(SystemExit):
            notifications.deliver_due()
    assert notifications.deliver_due() == 0
    later(seconds=60)
    assert notifications.deliver_due() == 1
    assert row.notifications.get().sent is not None


def test_an_e_mail_goes_to_every_address_beside_the_webhook(
    desk: HTTPServer, settings: Settings
) -> None:
    settings.HANDOVER_EMAIL = ["anna@example.org", "ben@example.org"]
    settings.DEFAULT_FROM_EMAIL = "docent@example.org"
    row = asked("A human!\nSubject: not mine")
    assert notifications.deliver_due() == 2
    (message,) = mail.outbox
    assert message.to == ["anna@example.org", "ben@example.org"]
    assert message.from_email == "docent@example.org"
    assert message.subject == "A conversation waits for a person"
    assert "A human! Subject: not mine" in message.body
    assert f"/admin/conversations/handover/{row.pk}/change/" in message.body
    assert len(told(desk)) == 1


def test_a_mail_server_that_is_away_leaves_the_webhook_alone(
    desk: HTTPServer, settings: Settings
) -> None:
    settings.HANDOVER_EMAIL = ["anna@example.org"]
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    row = asked()
    notifications.deliver_due()
    states = {each.channel: bool(each.sent) for each in row.notifications.all()}
    assert states == {"webhook": True, "email": False}


def test_metrics_say_who_waits_for_how_long_and_that_nobody_could_be_told(
    client: Client, desk: HTTPServer
) -> None:
    anna = User.objects.create_user("anna", is_staff=True)
    row = asked()
    Handover.objects.update(waiting_since=now() - timedelta(seconds=90))
    row.notifications.update(error="500")
    values = samples(client)
    assert values["docent_handovers", "new"] == 1
    assert 90 <= values["docent_handover_oldest_seconds",] < 150
    assert values["docent_handovers_untold",] == 1
    handover.say(row.pk, anna, "Hello")
    values = samples(client)
    assert (values["docent_handovers", "new"], values["docent_handovers", "answered"]) == (0, 1)
    assert values["docent_handover_oldest_seconds",] == 0
    handover.close(row.pk, anna, seen=None)
    assert samples(client)["docent_handovers", "answered"] == 0
