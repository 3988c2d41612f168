"""The chat page takes a message and shows what came of it, to the browser that asked."""

import re
from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.test import Client, RequestFactory

from agents.analysis.shapes import Judgement, Requirement
from agents.attributes import Source
from agents.documentation.passages import source_list
from agents.models import Envelope
from agents.names import Status
from agents.steps import model_context
from conversations import page
from conversations.answers import answer_html
from conversations.models import Conversation
from conversations.page import SESSION_KEY
from knowledge.models import GoldenQuestion
from tests import factories
from tests.conversations.conftest import NAME, PAGE, SCRIPTED, shown


def test_the_page_names_the_collections_and_their_sizes(client: Client, db: None) -> None:
    factories.collection("handbook", documents=2)
    factories.collection("recipes", documents=1)

    page = client.get("/").content.decode()

    assert re.search(r"handbook</span>\s*<span class=\"size\">documents: 2<", page)
    assert re.search(r"recipes</span>\s*<span class=\"size\">documents: 1<", page)


def test_without_documents_visitors_are_told_so_and_staff_what_to_do(
    client: Client, db: None
) -> None:
    page = client.get("/").content.decode()
    assert "There are no documents here yet" in page
    assert "manage.py" not in page

    client.force_login(User.objects.create_superuser("ada"))
    page = client.get("/").content.decode()
    assert "manage.py ingest FOLDER" in page
    assert 'href="/admin/knowledge/document/add/"' in page


def test_examples_are_golden_questions_with_an_answer_and_places_of_documents(
    client: Client, db: None
) -> None:
    handbook = factories.collection()
    handbook.documents.update(description="When days off end.")
    for question, sources in (("Do unused days end?", ["0.md"]), ("Who is the king?", [])):
        GoldenQuestion.objects.create(collection=handbook, question=question, sources=sources)

    page = client.get("/").content.decode()

    assert 'form="act" name="text" value="Do unused days end?"' in page
    assert 'value="Holidays 0 \u2014 Carry over"' in page
    assert "Who is the king?" not in page


def test_the_page_runs_no_script_and_no_style_but_its_files(
    client: Client, talk: Conversation
) -> None:
    factories.turn(talk, citations_used=[factories.CITATION])

    for address in ("/", PAGE, "/c/of-nobody/"):
        response = client.get(address)
        assert response["Content-Security-Policy"].startswith("default-src 'self'; object-src")
        page = response.content.decode()
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", page)
        assert "//" not in re.sub(r'"https://example\.org/holidays"', "", page)


def test_a_question_is_answered_on_the_page_it_leads_to(client: Client, working: None) -> None:
    response = client.post("/", {"text": "/help", "conversation": "a" * 32}, follow=True)

    envelope = Envelope.objects.get()
    assert response.redirect_chain == [(f"/c/{'a' * 32}/", HTTPStatus.FOUND)]
    page = response.content.decode()
    assert '<div class="bubble words" dir="auto">/help</div>' in page
    assert answer_html(envelope.payload["response"]) in page
    assert "without a language model" in page
    assert "Understanding the question" in page
    assert "agents.command" not in page


def test_staff_see_each_step_with_its_queue(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(talk)
    client.force_login(User.objects.create_user("ada", is_staff=True))
    # The login began another session.
    page.remember(_as_request(client), talk.session)

    told = shown(client)

    assert "agents.manager" in told
    assert f"/admin/agents/envelope/{envelope.pk}/change/" in told


def _as_request(client: Client) -> HttpRequest:
    request = RequestFactory().get("/")
    request.session = client.session
    return request


def test_the_next_message_goes_on_in_the_same_conversation(client: Client, working: None) -> None:
    client.post("/", {"text": "/help", "conversation": "a" * 32})

    client.post("/", {"text": "/start", "conversation": "a" * 32})

    assert Conversation.objects.get().messages.count() == 4


def test_conversations_of_browsers_have_names_nobody_can_guess(
    client: Client, working: None
) -> None:
    offered = re.search(r'name="conversation" value="([^"]+)"', client.get("/").content.decode())
    for name in (offered[1] if offered else "", "short", ""):
        client.post("/", {"text": "/help", "conversation": name})

    names = Conversation.objects.values_list("session", flat=True)
    assert len(set(names)) == 3
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


def test_a_browser_sees_its_conversations_the_newest_first_by_their_first_question(
    client: Client, talk: Conversation
) -> None:
    factories.turn(talk, "Do unused days end?", response="They do.")
    later = factories.conversation("web-later")
    page.remember(_as_request(client), talk.session)
    request = _as_request(client)
    page.remember(request, "web-later")
    factories.turn(later, "Who pays?")

    told = shown(client)

    assert "They do." in told
    listed = re.findall(r'<a href="(/c/[^"]+)" dir="auto"[^>]*>([^<]+)</a>', told)
    assert listed == [("/c/later/", "Who pays?"), (PAGE, "Do unused days end?")]


def test_another_browser_neither_sees_it_nor_goes_on_with_it(
    client: Client, talk: Conversation
) -> None:
    envelope = factories.turn(talk, response="They do.", citations_used=[factories.CITATION])
    stranger = Client()

    response = stranger.get(PAGE)
    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "They do." not in response.content.decode()
    # Nor is its name offered for what is asked there.
    assert f'value="{NAME}"' not in response.content.decode()
    asked = stranger.post("/", {"text": "And then?", "conversation": NAME})
    assert asked.status_code == HTTPStatus.NOT_FOUND
    assert "And then?</textarea>" in asked.content.decode()
    for address in (
        f"/turns/{envelope.pk}/stop/",
        f"/turns/{envelope.pk}/rate/",
        f"{PAGE}forget/",
    ):
        assert stranger.post(address, {"rating": "up"}).status_code == HTTPStatus.NOT_FOUND
    assert stranger.get(f"/turns/{envelope.pk}/cited/C1/").status_code == HTTPStatus.NOT_FOUND
    assert talk.messages.count() == 2


def test_the_turns_of_the_command_line_stay_there(client: Client, db: None) -> None:
    factories.turn(factories.conversation("default"))

    assert client.get("/c/default/").status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("name", ["x", "%00", "2a19e51d-7d3c-47bd-b8fa-95c52feaf437"])
def test_a_conversation_that_never_was_is_not_found(client: Client, db: None, name: str) -> None:
    response = client.get(f"/c/{name}/")

    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "no such conversation" in response.content.decode()


def test_a_message_sent_again_after_a_refresh_is_taken_once_and_shown(
    client: Client, db: None, listening: None
) -> None:
    sent = {"text": "Do unused days end?", "conversation": "a" * 32, "key": "0123456789abcdef"}
    # The answer to the first one, with its cookie, never reached the browser.
    assert Client().post("/", sent, headers=SCRIPTED).status_code == HTTPStatus.ACCEPTED
    assert client.get(f"/c/{'a' * 32}/").status_code == HTTPStatus.NOT_FOUND
    for key in ("fedcba9876543210", ""):
        other = client.post("/", sent | {"key": key}, headers=SCRIPTED)
        assert other.status_code == HTTPStatus.NOT_FOUND

    again = client.post("/", sent, headers=SCRIPTED)

    assert again.status_code == HTTPStatus.ACCEPTED
    assert again.json()["turn"] == str(Envelope.objects.get().pk)
    assert "Do unused days end?" in client.get(again.json()["page"]).content.decode()


def test_a_script_in_an_answer_stays_words(client: Client, talk: Conversation) -> None:
    factories.turn(
        talk,
        "<script>ask()</script>",
        response="<script>alert(1)</script>",
        suggested_actions=['"><script>go()</script>'],
        citations_used=[factories.CITATION | {"title": "<script>x()</script>"}],
    )

    page = shown(client)

    assert page.count("<script") == 1
    assert "&lt;script&gt;alert(1)" in page


def test_a_source_that_is_no_web_address_is_no_link(client: Client, talk: Conversation) -> None:
    factories.turn(talk, citations_used=[factories.CITATION | {"source": "javascript:alert(1)"}])

    assert 'href="javascript' not in shown(client)


def test_citations_are_numbered_from_one_as_they_come_and_lead_to_their_passage(
    client: Client, talk: Conversation
) -> None:
    cited = [
        factories.CITATION | {"marker": "C2", "quote": "Ask.", "citation_status": "weak"},
        factories.CITATION | {"marker": "C7", "title": "Pay"},
    ]
    turn = factories.turn(
        talk, response="They end. [C7] Ask. [C2] So. [C7] [C9]", citations_used=cited
    )

    told = shown(client)

    links = re.findall(rf'<a href="/turns/{turn.pk}/cited/(C\d)/#place" rel="[^"]+">(\d)</a>', told)
    assert links == [("C7", "1"), ("C2", "2"), ("C7", "1")]
    assert re.findall(r'<li value="(\d)">', told) == ["1", "2"]
    assert "[C9]" in told
    assert re.search(r'class="chip weak">to be checked<', told)
    assert "Quoted from the documents as it stands" in told
    assert 'href="https://example.org/holidays" rel="noopener noreferrer nofollow"' in told


def test_what_a_model_wrote_says_so(client: Client, talk: Conversation) -> None:
    turn = factories.turn(talk, answer_form="written", citations_used=[factories.CITATION])
    turn.payload["mode"] = "model"
    turn.save()

    assert "Written by a language model from the documents it cites." in shown(client)


def test_sources_are_listed_once(client: Client, talk: Conversation) -> None:
    source = {name: factories.CITATION.get(name, "") for name in Source.model_fields}
    listed = source_list([Source.model_validate(source)], "en")
    factories.turn(
        talk,
        response=f"They end. [C1]\n\n{listed}",
        citations_used=[factories.CITATION],
        sources_used=[source],
    )

    page = shown(client)

    assert "They end." in page
    assert "Sources:" not in page
    assert page.count("Leave &gt; Carry over") == 1


def test_a_running_turn_is_followed_and_without_scripts_looked_at_again(
    client: Client, talk: Conversation
) -> None:
    envelope = factories.turn(talk, status=Status.RUNNING)

    page = shown(client)

    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in page
    assert f'data-events="/api/turns/{envelope.pk}/events/"' in page
    assert "Looking for the answer" in page


def test_the_script_of_the_page_is_told_where_the_conversation_is(
    client: Client, db: None, listening: None
) -> None:
    response = client.post("/", {"text": "/help", "conversation": "a" * 32}, headers=SCRIPTED)

    envelope = Envelope.objects.get()
    assert response.status_code == HTTPStatus.ACCEPTED
    assert response.json() == {
        "page": f"/c/{'a' * 32}/",
        "turn": str(envelope.pk),
        "status": "running",
    }


def test_the_script_of_the_page_is_told_why_a_question_is_not_taken(
    client: Client, db: None, listening: None
) -> None:
    response = client.post("/", {"text": " "}, headers=SCRIPTED)

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.json() == {"error": "The message is empty: write a question."}


def test_only_the_latest_messages_are_shown_and_the_others_a_click_away(
    client: Client, talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conversations.transcript.MOST_SHOWN", 2)
    factories.turn(talk, "Who pays?")
    factories.turn(talk, "When?")

    page = shown(client)
    assert '<div class="bubble words" dir="auto">Who pays?' not in page
    earlier = re.search(r'href="(\?before=[^"]+)"', page)
    assert earlier
    assert '"auto">Who pays?</div>' in client.get(PAGE + earlier[1]).content.decode()


def test_two_tabs_do_not_forget_each_others_conversation(rf: RequestFactory, db: None) -> None:
    first, second = rf.get("/"), rf.get("/")
    first.session = SessionStore()
    first.session.create()
    second.session = SessionStore(first.session.session_key)
    assert SESSION_KEY not in second.session  # loaded before the first tab asks
    page.remember(first, "web-one")
    page.remember(second, "web-two")
    assert SessionStore(first.session.session_key)[SESSION_KEY] == ["web-one", "web-two"]


def test_a_finished_analysis_shows_its_requirements_with_verdicts_and_passages(
    client: Client, talk: Conversation
) -> None:
    requirement = Requirement(
        id="R1",
        requirement="Fees must be paid on Monday.",
        source_section="Fees",
        severity="mandatory",
        applicability="all",
        target="Act",
        evidence=[],
    )
    verdict = Judgement(
        requirement_id="R1",
        verdict="violation",
        explanation="They are paid on Tuesday.",
        confidence=0.9,
        evidence=["p1"],
    )
    outputs = {
        "requirement_extractor": {"result": {"requirements": [requirement.model_dump()]}},
        "compliance": {"result": {"verdicts": [verdict.model_dump()]}},
    }
    passage = {"title": "Contract", "section": "Payment", "text": "Fees are due on <Tuesday>."}
    plan = {"steps": [["requirement_extractor"], ["compliance"]]}
    factories.turn(talk, agent_outputs=outputs, evidence={"p1": passage}, analysis_plan=plan)

    page = shown(client)
    assert "Requirements: 1" in page
    assert "Fees must be paid on Monday." in page
    assert '<span class="chip violation">violated</span>' in page
    assert "They are paid on Tuesday." in page
    assert "Fees are due on &lt;Tuesday&gt;." in page
    assert "<cite>Contract \u2014 Payment</cite>" in page
    assert "Plan of this analysis" not in page

    client.force_login(User.objects.create_superuser("ada"))
    session = client.session
    session[SESSION_KEY] = [talk.session]
    session.save()
    assert "Plan of this analysis" in shown(client)
