"""How a search asks PostgreSQL: at once, with plans that are kept, and in few characters."""

import numpy as np
import pytest
from django.db import DatabaseError, transaction

from knowledge.identifiers import LOCAL_MODEL
from knowledge.models import Collection
from knowledge.search import search_with_vectors, sql, vector
from knowledge.search.explanation import Wording
from knowledge.search.scope import scope_of
from knowledge.search.sql import Query, Row, one_transaction, rows

SET = "SELECT current_setting('plan_cache_mode')"
LOCAL, USUAL = [("force_generic_plan",)], [("auto",)]


def plans() -> list[Row]:
    """Return how often the plans that this connection keeps were general and special."""
    return rows(
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements "
        "WHERE statement LIKE %(what)s ORDER BY 1",
        {"what": "%knowledge_%"},
    )


@pytest.mark.django_db(transaction=True)
def test_settings_of_a_search_last_as_long_as_what_is_asked_together() -> None:
    with one_transaction():
        first = Query(SET)
        with one_transaction():
            second = Query(SET).rows()
        third = Query(SET)
    assert first.rows() == second == third.rows() == LOCAL
    assert rows(SET) == USUAL
    with transaction.atomic():
        with one_transaction():
            assert Query(SET).rows() == LOCAL
        assert rows(SET) == LOCAL
    assert rows(SET) == USUAL


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_fails_leaves_the_connection_in_order() -> None:
    with pytest.raises(DatabaseError, match="division by zero"), one_transaction():
        Query("SELECT 1 / 0").rows()
    with pytest.raises(DatabaseError, match="division by zero"), one_transaction():
        Query("SELECT 1 / 0")
    assert rows("SELECT 1") == [(1,)]


@pytest.mark.django_db(transaction=True)
def test_no_statement_of_a_search_is_planned_twice() -> None:
    Collection.objects.create(name="sea")
    vector = np.eye(384, dtype=np.float32)[:1]

    def ask() -> None:
        wording = Wording("foghorn", "question", 1.0)
        search_with_vectors(
            [wording], {LOCAL_MODEL: vector}, scope_of(["sea"]), limit=8, milliseconds={}
        )

    ask()
    before = plans()
    assert len(before) >= 5
    ask()
    after = plans()
    assert len(after) == len(before)
    assert sum(special for _, special in after) - sum(special for _, special in before) <= 1
    assert sum(general for general, _ in after) - sum(general for general, _ in before) >= 4


@pytest.mark.django_db
@pytest.mark.parametrize("length", [1e-4, 1.0, 50.0])
def test_vectors_are_sent_without_losing_their_direction(length: float) -> None:
    vectors = np.random.default_rng(4).standard_normal((2, 384)).astype(np.float32) * length
    ((sent,),) = rows(
        "SELECT array_agg(halfvec_send(each)) FROM unnest(%(vectors)s::text[]::halfvec[]) AS each",
        {"vectors": vector.vector_literals(vectors)},
    )
    received = sql.vectors(sent)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(received, axis=1)
    assert (vectors * received).sum(axis=1) / lengths == pytest.approx(np.ones(2), abs=1e-6)
    assert vector.vector_literals(np.zeros((1, 3), dtype=np.float32)) == ["[0, 0, 0]"]


@pytest.mark.django_db
def test_arrays_are_received_as_they_were_sent() -> None:
    ((integers, reals, none),) = rows(
        "SELECT array_send(ARRAY[5000000000, -1]), array_send(ARRAY[0.5, 2]::real[]), "
        "array_send(NULL::bigint[])"
    )
    assert sql.array(integers, "bigint").tolist() == [5_000_000_000, -1]
    assert sql.array(reals, "real").tolist() == [0.5, 2.0]
    assert sql.array(none, "bigint").tolist() == []
