"""The start page takes a question and shows what came of it, to the browser that asked."""

import re
from http import HTTPStatus

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client, RequestFactory

from agents.attributes import Source
from agents.documentation.passages import source_list
from agents.models import Envelope
from agents.names import Status
from agents.steps import model_context
from conversations import page
from conversations.answers import answer_html
from conversations.models import Conversation
from conversations.page import SESSION_KEY
from tests import factories


def test_the_page_names_the_collections_and_their_sizes(client: Client, db: None) -> None:
    factories.collection("handbook", documents=2)
    factories.collection("recipes", documents=1)

    page = client.get("/").content.decode()

    assert re.search(r"handbook</span>\s*<span class=\"size\">2 documents<", page)
    assert re.search(r"recipes</span>\s*<span class=\"size\">1 document<", page)


def test_the_page_says_when_there_is_nothing_to_answer_from(client: Client, db: None) -> None:
    assert "manage.py ingest" in client.get("/").content.decode()


def test_the_page_runs_no_script_and_no_style_but_its_files(
    client: Client, talk: Conversation
) -> None:
    envelope = factories.turn(talk, citations_used=[factories.CITATION])

    for address in ("/", f"/?turn={envelope.pk}", "/?turn=x"):
        response = client.get(address)
        assert response["Content-Security-Policy"].startswith("default-src 'self'; object-src")
        page = response.content.decode()
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", page)
        assert "//" not in re.sub(r'"https://example\.org/holidays"|>https://[^<]*<', "", page)


def test_a_question_is_answered_on_the_page_it_leads_to(client: Client, working: None) -> None:
    response = client.post("/", {"text": "/help"}, follow=True)

    envelope = Envelope.objects.get()
    assert response.redirect_chain == [(f"/?turn={envelope.pk}", HTTPStatus.FOUND)]
    page = response.content.decode()
    assert "/help</h1>" in page
    assert answer_html(envelope.payload["response"]) in page
    assert "no language model took part" in page
    assert "agents.command" in page


def test_the_next_message_goes_on_in_the_same_conversation(client: Client, working: None) -> None:
    client.post("/", {"text": "/help"})
    first = Envelope.objects.get()

    client.post("/", {"text": "/start", "turn": first.pk})

    assert Conversation.objects.get().messages.count() == 4


def test_conversations_of_browsers_have_names_nobody_can_guess(
    client: Client, working: None
) -> None:
    for _ in range(2):
        client.post("/", {"text": "/help"})

    names = Conversation.objects.values_list("session", flat=True)
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"web-[\w-]{32}", name) for name in names)


def test_visitors_without_a_login_are_not_served_from_each_others_content(
    client: Client, working: None
) -> None:
    for _ in range(2):
        client.post("/", {"text": "/help"})

    talks = dict(Conversation.objects.values_list("pk", "session"))
    for envelope in Envelope.objects.all():
        session = talks[envelope.conversation_id]
        assert model_context.owner(envelope.memory) == f"local/{session}"


def test_a_browser_sees_the_turn_it_asked(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(talk, "Do unused days end?", response="They do.")

    response = client.get(f"/?turn={envelope.pk}")

    assert response.status_code == HTTPStatus.OK
    assert "They do." in response.content.decode()


def test_another_browser_does_not_see_it(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(talk, response="They do.")

    response = Client().get(f"/?turn={envelope.pk}")

    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "They do." not in response.content.decode()


def test_another_browser_cannot_go_on_with_it(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(talk)

    response = Client().post("/", {"text": "And then?", "turn": envelope.pk})

    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "And then?" in response.content.decode()
    assert talk.messages.count() == 2


def test_the_turns_of_the_command_line_stay_there(client: Client, db: None) -> None:
    envelope = factories.turn(factories.conversation("default"))

    assert client.get(f"/?turn={envelope.pk}").status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("turn", ["", "x", "%00", "2a19e51d-7d3c-47bd-b8fa-95c52feaf437"])
def test_a_turn_that_never_was_is_not_found(client: Client, db: None, turn: str) -> None:
    response = client.get(f"/?turn={turn}")

    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "no such question" in response.content.decode()


def test_a_script_in_an_answer_stays_words(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(
        talk,
        "<script>ask()</script>",
        response="<script>alert(1)</script>",
        suggested_actions=['"><script>go()</script>'],
        citations_used=[factories.CITATION | {"title": "<script>x()</script>"}],
    )

    page = client.get(f"/?turn={envelope.pk}").content.decode()

    assert page.count("<script") == 1
    assert "&lt;script&gt;alert(1)" in page


def test_a_source_that_is_no_web_address_is_no_link(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(
        talk, citations_used=[factories.CITATION | {"source": "javascript:alert(1)"}]
    )

    assert 'href="javascript' not in client.get(f"/?turn={envelope.pk}").content.decode()


def test_citations_stand_under_the_answer_once_per_marker(
    client: Client, talk: Conversation
) -> None:
    second = {"quote": "Ask in time.", "citation_status": "weak"}
    envelope = factories.turn(
        talk,
        response="They end. [C1] Ask. [C1]",
        citations_used=[factories.CITATION, factories.CITATION | second],
    )

    page = client.get(f"/?turn={envelope.pk}").content.decode()

    assert page.count('id="C1"') == 1
    assert page.count('href="#C1"') == 2
    assert "Leave &gt; Carry over" in page
    assert "(version 3)" in page
    assert re.search(r"Unused days end in March\. <span class=\"status verified\">verified", page)
    assert re.search(r"Ask in time\. <span class=\"status weak\">weak", page)
    assert "this is quoted from the documents as it stands" in page


def test_sources_are_listed_once(client: Client, talk: Conversation) -> None:
    source = {name: factories.CITATION.get(name, "") for name in Source.model_fields}
    listed = source_list([Source.model_validate(source)], "en")
    envelope = factories.turn(
        talk,
        response=f"They end. [C1]\n\n{listed}",
        citations_used=[factories.CITATION],
        sources_used=[source],
    )

    page = client.get(f"/?turn={envelope.pk}").content.decode()

    assert "They end." in page
    assert "Sources:" not in page
    assert page.count("Leave &gt; Carry over") == 1


def test_a_quote_is_shown_as_its_document_shows_it(client: Client, talk: Conversation) -> None:
    quoted = "Press `Send` in [the form](https://example.org/form)<script>."
    envelope = factories.turn(talk, citations_used=[factories.CITATION | {"quote": quoted}])

    page = client.get(f"/?turn={envelope.pk}").content.decode()

    assert "Press <code>Send</code> in <a href=" in page
    assert "&lt;script&gt;." in page


def test_suggestions_are_buttons_that_reply_in_the_conversation(
    client: Client, talk: Conversation
) -> None:
    envelope = factories.turn(
        talk,
        status=Status.AWAITING_USER,
        suggested_actions=["The holidays"],
        clarification_reason="vague_request",
    )

    page = client.get(f"/?turn={envelope.pk}").content.decode()

    assert re.search(r'<button[^>]* name="text" value="The holidays"', page)
    assert page.count(f'name="turn" value="{envelope.pk}"') == 2
    assert "Your reply" in page


def test_suggestions_of_an_earlier_turn_are_gone(client: Client, talk: Conversation) -> None:
    earlier = factories.turn(talk, suggested_actions=["The holidays"])
    later = factories.turn(talk, "And then?")

    page = client.get(f"/?turn={earlier.pk}").content.decode()

    assert 'value="The holidays"' not in page
    assert f'href="?turn={later.pk}"' in page


def test_a_running_turn_is_looked_at_again(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(talk, status=Status.RUNNING)

    page = client.get(f"/?turn={envelope.pk}").content.decode()

    assert 'http-equiv="refresh"' in page
    assert "Still at work" in page


def test_the_script_of_the_page_gets_the_address_of_the_events(
    client: Client, db: None, listening: None
) -> None:
    response = client.post("/", {"text": "/help"}, headers={"Accept": "application/json"})

    envelope = Envelope.objects.get()
    assert response.status_code == HTTPStatus.ACCEPTED
    assert response.json() == {
        "page": f"/?turn={envelope.pk}",
        "events": f"/api/turns/{envelope.pk}/events/",
        "status": "running",
    }


def test_the_script_of_the_page_is_told_why_a_question_is_not_taken(
    client: Client, db: None, listening: None
) -> None:
    response = client.post("/", {"text": " "}, headers={"Accept": "application/json"})

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.json() == {"error": "The message is empty: write a question."}


def test_two_tabs_do_not_forget_each_others_conversation(rf: RequestFactory, db: None) -> None:
    first, second = rf.get("/"), rf.get("/")
    first.session = SessionStore()
    first.session.create()
    second.session = SessionStore(first.session.session_key)
    assert SESSION_KEY not in second.session  # loaded before the first tab asks
    page.remember(first, "web-one")
    page.remember(second, "web-two")
    assert SessionStore(first.session.session_key)[SESSION_KEY] == ["web-one", "web-two"]
