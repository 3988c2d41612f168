"""Calibration: the threshold lies where foreign questions end and answers begin."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from knowledge.calibration import (
    FALSE_ALARMS,
    Scores,
    calibrate_across,
    choose,
    everyday,
    everyday_across,
    titles,
    upper_quantile,
)
from knowledge.embedding.local import MULTILINGUAL
from knowledge.ingestion.backfill import fill
from knowledge.models import Document
from knowledge.search.languages import across
from knowledge.search.scope import scope_of
from tests.knowledge.islands import island
from tests.knowledge.polyglot import Polyglot

# 0.10, 0.11, … 0.29: half below 0.195, a quarter above 0.2425.
FOREIGN = [0.1 + number / 100 for number in range(20)]
OWN = [0.6 + number / 100 for number in range(20)]


def test_few_foreign_questions_pass_where_own_ones_are_not_told_from_them() -> None:
    for own in ([], [0.25] * 3 + [0.6] * 37):
        choice = choose(Scores(FOREIGN, own))
        assert choice.threshold == pytest.approx(0.195 + 1.645 / 0.674 * 0.0475)
        assert choice.scale == pytest.approx(choice.threshold - 0.195)


def test_threshold_is_higher_where_own_questions_still_pass() -> None:
    none = 0.195 + 3.090 / 0.674 * 0.0475
    assert choose(Scores(FOREIGN, OWN)).threshold == pytest.approx(none)
    between = choose(Scores(FOREIGN, [0.35] * 2 + [0.6] * 18))
    assert 0.195 + 1.645 / 0.674 * 0.0475 < between.threshold < none
    assert "own titles" in between.reason


def test_foreign_questions_that_are_answered_do_not_raise_the_threshold() -> None:
    answered = [0.9, 0.9, 0.9]
    assert (
        upper_quantile([*FOREIGN, *answered], FALSE_ALARMS)
        < upper_quantile(FOREIGN, FALSE_ALARMS) + 0.05
    )


def test_nine_of_ten_own_questions_pass_whatever_foreign_ones_score() -> None:
    own = [0.22] * 3 + [0.6] * 17
    choice = choose(Scores(FOREIGN, own))
    assert sum(each >= choice.threshold for each in own) >= 18
    assert "refused" in choose(Scores(FOREIGN, [0.25] * 20)).reason


def test_threshold_stays_above_what_foreign_questions_usually_score() -> None:
    choice = choose(Scores(FOREIGN, [0.05] * 20))
    assert choice.threshold > 0.195
    assert choice.scale > 0


def test_golden_questions_part_the_scores_where_there_are_enough() -> None:
    answerable = [0.5 + number / 100 for number in range(20)]
    unanswerable = [0.3 + number / 200 for number in range(20)]
    labelled = choose(Scores(FOREIGN, OWN, answerable, unanswerable))
    assert max(unanswerable) < labelled.threshold <= min(answerable) + 0.02
    few = choose(Scores(FOREIGN, OWN, answerable[:5], unanswerable))
    assert few == choose(Scores(FOREIGN, OWN))


confidences = st.lists(st.floats(-1, 1.5), min_size=20, max_size=60)


@given(confidences, st.lists(st.floats(-1, 1.5), max_size=60))
def test_scale_is_never_nothing(foreign: list[float], own: list[float]) -> None:
    assert choose(Scores(foreign, own)).scale > 0.01


def test_everyday_questions_are_two_hundred_and_each_is_there_once() -> None:
    texts = [each.text for each in everyday()]
    assert (len(texts), len(set(texts))) == (200, 200)
    assert all(text.endswith("?") for text in texts)


def test_titles_that_ask_for_nothing_are_left_out() -> None:
    named = [("Overview", "a"), ("See also", "b"), ("Carry over unused days", "c")]
    assert [each.document for each in titles(named)] == ["c"]


@pytest.mark.django_db
def test_searches_across_languages_are_calibrated_by_questions_in_other_languages(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    collection = island()
    assert calibrate_across(collection) is None  # it is off
    settings.CROSS_LINGUAL = True
    monkeypatch.setattr(MULTILINGUAL, "encode", Polyglot())
    assert calibrate_across(collection) is None  # no vectors yet
    fill(collection, MULTILINGUAL)
    Document.objects.filter(source="fog.md").update(language="de")
    outcome = calibrate_across(collection)
    assert outcome is not None
    assert outcome.model == MULTILINGUAL.name
    # Those in German are not in another language.
    assert len(outcome.scores.foreign) == len(everyday_across()) - 6
    kept = outcome.keep()
    scope = across(scope_of(["island"]), "fr")
    assert scope.bars[collection.pk].threshold == pytest.approx(kept.threshold)


def test_everyday_questions_in_other_languages_are_six_of_each() -> None:
    counts = Counter(sample.language for sample in everyday_across())
    assert set(counts.values()) == {6}
    assert len(counts) == 8
