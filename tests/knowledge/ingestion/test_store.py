"""Storing: what it costs the database to take in a document."""

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from knowledge.identifiers import LOCAL_DIMENSIONS
from knowledge.ingestion.drafts import draft, sheets
from knowledge.ingestion.store import store
from knowledge.models import Collection, Document
from knowledge.parsing import Page

pytestmark = pytest.mark.django_db


def statements(collection: Collection, text: str) -> list[str]:
    """Return what is said to the database to store a page of one chunk."""
    (sheet,) = sheets("pier.md", "", [Page("Pier", text)])
    new_draft = draft(sheet, [])
    vectors = np.ones((len(new_draft.parts), LOCAL_DIMENSIONS), dtype=np.float32)
    with CaptureQueriesContext(connection) as captured:
        store(collection, new_draft, vectors)
    return [each["sql"].strip() for each in captured]


def test_a_new_document_is_looked_for_and_inserted_but_nothing_of_it_updated_or_deleted() -> None:
    queries = statements(Collection.objects.create(name="island"), "The pier is painted red.")
    assert Document.objects.get().version == 1
    assert not [each for each in queries if each.startswith("UPDATE")]
    deleted = [each.split()[2] for each in queries if each.startswith("DELETE")]
    assert deleted == ['"knowledge_copy"'], "its file may have been a copy of another's"
    assert len(queries) <= 14
