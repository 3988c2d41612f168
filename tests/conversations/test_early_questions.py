"""Asking before the documents are there says so, and is never told that nothing was found."""

import pytest
from django.core.management import call_command
from django.test import Client

from agents.models import Envelope
from conversations.errors import StillTakenIn
from conversations.models import Conversation
from conversations.services import Asker, ask
from knowledge.collections import OWN_DOCUMENTATION, intake
from knowledge.models import Collection, Ingest, Item
from tests import factories

QUESTION = "How do I grow tomatoes on the moon?"


def under_way(collection: Collection, finished: int, items: int) -> Ingest:
    """A job that another process works at."""
    job = Ingest.objects.create(collection=collection, name="docs", status=Ingest.Status.RUNNING)
    for number in range(items):
        status = Item.Status.NEW if number < finished else Item.Status.WAITING
        Item.objects.create(
            ingest=job, number=number + 1, kind=Item.Kind.FILE, origin=f"{number}", status=status
        )
    return job


@pytest.mark.django_db
@pytest.mark.usefixtures("listening")
def test_with_no_document_yet_it_says_how_far_they_are() -> None:
    job = under_way(factories.collection(documents=0), 40, 133)
    with pytest.raises(StillTakenIn, match=r"taken in: 40 of 133; ask again in a moment"):
        ask(QUESTION, Asker(None))
    assert not Conversation.objects.exists()
    Ingest.objects.filter(pk=job.pk).update(status=Ingest.Status.DONE)
    ask(QUESTION, Asker(None))
    assert Conversation.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.usefixtures("listening")
def test_an_ingest_of_another_collection_keeps_nobody_from_asking() -> None:
    factories.collection("handbook")
    under_way(factories.collection("other", documents=0), 1, 9)
    ask(QUESTION, Asker(None), collections=["handbook"])
    assert Conversation.objects.count() == 1
    with pytest.raises(StillTakenIn, match="1 of 9"):
        ask(QUESTION, Asker(None), collections=["other"])
    assert intake(["handbook"]) is None


@pytest.mark.django_db
@pytest.mark.usefixtures("listening")
def test_the_documentation_with_which_docent_begins_is_waited_for() -> None:
    own = factories.collection(OWN_DOCUMENTATION)
    job = under_way(own, 12, 25)
    with pytest.raises(StillTakenIn, match=r"taken in: 12 of 25; ask again in a moment"):
        ask(QUESTION, Asker(None))
    Ingest.objects.filter(pk=job.pk).update(status=Ingest.Status.DONE)
    under_way(own, 3, 25)
    ask(QUESTION, Asker(None))
    assert Conversation.objects.count() == 1


@pytest.mark.django_db
def test_while_workers_start_too_it_says_how_far_the_documents_are() -> None:
    under_way(factories.collection(OWN_DOCUMENTATION, documents=0), 0, 25)
    with pytest.raises(StillTakenIn, match="0 of 25"):
        ask(QUESTION, Asker(None))


@pytest.mark.django_db
@pytest.mark.usefixtures("listening")
def test_the_start_page_says_so_and_when_to_ask_again(client: Client) -> None:
    under_way(factories.collection(documents=0), 40, 133)
    answer = client.post("/", {"text": QUESTION})
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "taken in. (40/133)" in answer.content.decode()


@pytest.mark.usefixtures("working")
def test_what_is_not_found_among_the_first_documents_is_not_called_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    under_way(factories.collection(), 1, 9)
    with pytest.raises(SystemExit) as exit_info:
        call_command("chat", question=QUESTION)
    said = " ".join(capsys.readouterr().out.split())
    assert exit_info.value.code == 3
    assert "still being taken in: 1 of 9; ask again in a moment" in said
    assert "found no answer" not in said
    replied = Envelope.objects.get().payload["response"]
    assert "Documents are still being taken in: 1 of 9. Ask again in a moment." in replied


@pytest.mark.usefixtures("working")
def test_a_database_that_was_given_is_not_filled() -> None:
    with pytest.raises(SystemExit):
        call_command("chat", question=QUESTION)
    assert not Collection.objects.exists()
