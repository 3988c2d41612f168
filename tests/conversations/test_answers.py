"""Answers are shown with their markers linked, and with nothing that could do harm."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from rich.markdown import Markdown

from agents.attributes import SourceReference
from agents.documentation.extraction import quotations
from agents.names import Status
from conversations.answers import answer_html, quote_html, reply
from conversations.api import Reply
from conversations.models import Conversation
from tests import factories

PLACE = SourceReference.model_fields.keys()
LINKED = '<a href="#C1" rel="noopener noreferrer nofollow ugc">[C1]</a>'


def test_a_reply_has_the_shape_that_the_description_of_the_api_names(talk: Conversation) -> None:
    source = {"title": "Holidays", "section": "", "source": "a.md", "version": 3, "edition": "2.1"}
    source |= {"crumbs": ["Handbook"], "score": 0.9}
    turn = factories.turn(talk, citations_used=[factories.CITATION], sources_used=[source])
    shown = Reply.model_validate(reply(turn)).model_dump(mode="json")
    assert shown["sources"] == [source]
    assert shown["citations"][0]["crumbs"] == ["Handbook"]


def test_an_excerpt_tells_where_the_conversation_stood(talk: Conversation) -> None:
    talk.context_flags = {"refund_in_progress": True}
    talk.last_agent = "response"
    talk.save()
    first = factories.turn(talk)
    second = factories.turn(talk, "And then?")
    excerpts = [reply(turn)["state_excerpt"] for turn in (first, second)]
    assert [each["history_length"] for each in excerpts] == [2, 4]
    assert excerpts[1]["last_agent"] == "response"
    assert excerpts[1]["context_flags"] == {"refund_in_progress": True}


def test_a_marker_links_to_its_citation() -> None:
    assert answer_html("Yes. [C1]", ["C1"]) == f"<p>Yes. {LINKED}</p>\n"


def test_a_marker_without_a_citation_stays_plain() -> None:
    assert answer_html("Yes. [C2]", ["C1"]) == "<p>Yes. [C2]</p>\n"


def test_markers_that_touch_are_all_linked() -> None:
    assert answer_html("**Yes [C1]**[C1]", ["C1"]).count(LINKED) == 2


def test_the_marker_of_a_quoted_table_is_no_row_of_it() -> None:
    rows = "- Plan: Small; Seats: 3; Price: 9\n- Plan: Large; Seats: 30; Price: 90"
    place = {name: value for name, value in factories.CITATION.items() if name in PLACE}
    reference = SourceReference(**place, text=rows)
    (found,) = quotations("What does the large plan cost?", [reference], ())
    assert answer_html(found.markdown(), ["C1"]).endswith(f"</table>\n<p>{LINKED}</p>\n")
    terminal = Console(width=60, file=StringIO(), record=True)
    terminal.print(Markdown(found.markdown()))
    *_, row, _, gap, marker = (line.strip() for line in terminal.export_text().splitlines())
    assert (row.split(), gap, marker) == (["Large", "30", "90"], "", "[C1]")


@pytest.mark.parametrize("code", ["`x [C1]`", "```\n[C1]\n```", "    [C1]"])
def test_code_is_left_as_it_was_written(code: str) -> None:
    assert "href" not in answer_html(code, ["C1"])


def test_a_quoted_definition_cannot_capture_a_marker() -> None:
    shown = answer_html("Yes. [C1]\n\n[C1]: https://example.org/evil", ["C1"])

    assert 'href="https://example.org/evil"' not in shown
    assert LINKED in shown


def test_a_script_in_an_answer_is_shown_as_words() -> None:
    shown = answer_html("Yes <script>alert(1)</script> [x](javascript:alert(1)) [C1]", ["C1"])

    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert 'href="javascript' not in shown


@pytest.mark.parametrize("address", ["/admin/", "#top", "#C1x", "?turn=1", "//example.org"])
def test_a_relative_link_of_a_document_leads_nowhere_in_docent(address: str) -> None:
    assert "href" not in answer_html(f"[there]({address})")


def test_a_quoted_place_keeps_its_code_and_a_sentence_gets_no_paragraph() -> None:
    assert quote_html("Press **Stop**.") == "Press <strong>Stop</strong>."
    assert "<pre>" in quote_html("So it is stopped:\n\n```sh\nstop\n```")


@pytest.mark.django_db
def test_a_reply_has_the_questions_of_a_turn_that_asks_its_user() -> None:
    question = {"question": "Which one?", "context": "Two fit.", "suggestions": ["A", "B"]}
    asking: dict[str, Any] = {
        "clarification_type": "choice",
        "clarification_reason": "missing_context",
        "questions_asked": [question],
    }
    told = {"type": "choice", "reason": "missing_context", "questions": [question]}
    talk = factories.conversation()
    expected = {
        Status.AWAITING_USER: told,
        Status.COMPLETED: told,
        Status.CANCELLED: None,
        Status.WITH_STAFF: None,
    }
    for status, shown in expected.items():
        turn = factories.turn(talk, status=status, **asking)
        assert reply(turn)["clarification"] == shown
    assert reply(factories.turn(factories.conversation("b")))["clarification"] is None
