"""What staff write over what a file says of itself: how long it holds, and what it changes."""

from typing import Any

import pytest

from knowledge import ingestion
from knowledge.ingestion.corrections import UnusableEdit, edit
from knowledge.models import Document, Item, Version
from knowledge.search import search
from tests.knowledge.jobs import ran

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = """---
title: {title}
audience: {audience}
---
The foghorn sounds twice. {more}
"""


def take_in(title: str = "Fog", audience: str = "sailors", more: str = "") -> Document:
    """Ingest the page with these words of its own."""
    body = PAGE.format(title=title, audience=audience, more=more).encode()
    ran(ingestion.plan("island", uploads=[("fog.md", body)]))
    return Document.objects.get()


def corrected(document: Document, **values: str) -> Document:
    """The document as staff call it, found by its new name."""
    if job := edit(document, values):
        ran(job)
    return Document.objects.get()


def own(document: Document) -> tuple[str, str]:
    return document.title, document.audience


def test_an_edit_holds_however_often_the_file_changes_elsewhere() -> None:
    document = corrected(take_in(), title="Signals in fog", audience="")

    assert own(take_in(more="Thrice on Sundays.")) == ("Signals in fog", "")
    ran(ingestion.reingest(document))
    assert own(take_in(more="Never at night.")) == ("Signals in fog", "")


@pytest.mark.parametrize(
    ("said", "comes_to"),
    [
        ({"title": "The foghorn"}, ("The foghorn", "guests")),
        ({"audience": "keepers"}, ("Signals in fog", "keepers")),
    ],
)
def test_the_files_own_new_word_takes_the_place_of_that_edit_alone(
    said: dict[str, Any], comes_to: tuple[str, str]
) -> None:
    corrected(take_in(), title="Signals in fog", audience="guests")

    assert own(take_in(**said)) == comes_to
    (warning,) = Item.objects.exclude(warnings=[]).latest("pk").warnings
    assert f"its own {next(iter(said))} is another now" in warning["reason"]


def test_a_new_title_is_a_new_version_and_found_by() -> None:
    before = take_in()
    document = corrected(before, title="Nebelhorn")

    assert document.pk == before.pk
    assert (document.version, Version.objects.get().title) == (2, "Fog")
    passages = search("Nebelhorn", collections=["island"]).passages
    assert [(each.title, each.version) for each in passages] == [("Nebelhorn", 2)]


def test_other_words_are_no_new_version() -> None:
    document = corrected(take_in(), audience="guests", description="When it sounds.")

    assert (document.version, document.description) == (1, "When it sounds.")
    assert take_in(more="Thrice on Sundays.").description == "When it sounds."


def test_what_equals_the_files_own_word_is_no_edit() -> None:
    document = corrected(take_in(), audience="guests")
    assert corrected(document, audience="sailors").edits == {}


def test_a_document_that_was_taken_in_before_its_words_were_noted_keeps_its_edit() -> None:
    document = take_in()
    Document.objects.update(stated={})
    document = corrected(Document.objects.get(), title="Signals in fog", description="Short.")

    document = take_in(more="Thrice on Sundays.")
    assert (document.title, document.description) == ("Signals in fog", "Short.")


def test_a_document_keeps_a_title() -> None:
    with pytest.raises(UnusableEdit):
        edit(take_in(), {"title": "  "})
