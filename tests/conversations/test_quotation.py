"""What an answer cites is shown in its document, as it was, with the sentence marked."""

import re

import pytest
from django.test import Client

from agents.models import Envelope
from conversations.models import Conversation
from conversations.quotation import quotation
from knowledge.models import Document, Version
from tests import factories
from tests.conversations.conftest import PAGE

PASSAGE = """Days that nobody took end in March.

- Ask **your** manager in time; [the form](/form) is short.
- `Days` of a year ago
  never come back. They are paid instead.

| kind | days |
| --- | --- |
| trainee | 25 |"""
CONTENT = f"# Holidays\n\nAbout days off.\n\n## Carry over\n\n{PASSAGE}\n\n## Pay\n\nIn May."


@pytest.fixture
def document(db: None) -> Document:
    """A page as it is cited."""
    factories.collection(content=CONTENT)
    document = Document.objects.get()
    document.version = 3
    document.title = "Holidays"
    document.save()
    return document


def turn_citing(talk: Conversation, document: Document, *quotes: str) -> Envelope:
    cited = [factories.CITATION | {"document_id": document.pk, "quote": quote} for quote in quotes]
    reference = {"marker": "C1", "text": PASSAGE}
    return factories.turn(talk, citations_used=cited, source_references=[reference])


def marked(page: str) -> str:
    """What is marked, in one piece."""
    return " ".join(" ".join(re.findall(r"<mark>(.*?)</mark>", page, re.DOTALL)).split())


@pytest.mark.parametrize(
    ("quote", "shown"),
    [
        ("Days that nobody took end in March.", "Days that nobody took end in March"),
        ("Ask your manager in time.", "Ask your manager in time"),
        ("In March, what nobody took of the days ends.", "Days that nobody took end in March"),
        (
            "They never come back, the days of a year ago.",
            "<code>Days</code> of a year ago never come back",
        ),
        ("A trainee has 25 days.", "trainee 25"),
        ("Cats sleep.", ""),
    ],
)
def test_the_cited_sentence_is_marked_in_its_passage(
    client: Client, talk: Conversation, document: Document, quote: str, shown: str
) -> None:
    turn = turn_citing(talk, document, quote)

    page = client.get(f"/turns/{turn.pk}/cited/C1/").content.decode()

    passage = page[page.index('class="passage"') : page.index("</section>")]
    assert marked(passage) == shown
    assert marked(page) == shown
    # The whole document stands around it, its title once.
    assert "About days off." in page
    assert "In May." in page
    assert page.count(">Holidays</h1>") == 1
    assert not re.search("[\ue000\ue001]", page)
    assert f'href="{PAGE}"' in page


def test_sentences_that_lie_within_each_other_are_marked_once(
    talk: Conversation, document: Document
) -> None:
    turn = turn_citing(talk, document, "Days that nobody took end in March.", "nobody took end")
    shown = quotation(
        turn,
        {
            **factories.CITATION,
            "document_id": document.pk,
            "quotes": [
                {"text": "Days that nobody took end in March."},
                {"text": "nobody took end"},
            ],
        },
    )
    assert shown.passage.count("<mark>") == 1


def test_the_version_that_was_cited_is_shown_after_the_document_changed(
    client: Client, talk: Conversation, document: Document
) -> None:
    turn = turn_citing(talk, document, "Days that nobody took end in March.")
    Version.objects.create(
        document=document,
        number=3,
        title="Holidays",
        content=CONTENT,
        sha1="0" * 40,
        created=document.updated,
    )
    Document.objects.update(version=4, content="# Holidays\n\nAll days end in May.")

    page = client.get(f"/turns/{turn.pk}/cited/C1/").content.decode()

    assert "The document has changed since." in page
    assert "Days that nobody took end in March" in marked(page)
    assert "All days end in May" not in page


def test_of_a_document_that_was_deleted_the_passage_is_left(
    client: Client, talk: Conversation, document: Document
) -> None:
    turn = turn_citing(talk, document, "Days that nobody took end in March.")
    Document.objects.all().delete()

    page = client.get(f"/turns/{turn.pk}/cited/C1/").content.decode()

    assert "This document was deleted since." in page
    assert "Days that nobody took end in March" in marked(page)
    assert "About days off." not in page


def test_a_script_in_a_document_stays_words(
    client: Client, talk: Conversation, document: Document
) -> None:
    Document.objects.update(content=CONTENT + "\n\n<script>alert(1)</script> [x](javascript:y())")

    turn = turn_citing(talk, document, "Ask your manager in time.")

    page = client.get(f"/turns/{turn.pk}/cited/C1/").content.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert 'href="javascript' not in page


def test_what_was_not_cited_is_not_found(client: Client, talk: Conversation) -> None:
    turn = factories.turn(talk, citations_used=[factories.CITATION])

    assert client.get(f"/turns/{turn.pk}/cited/C2/").status_code == 404
