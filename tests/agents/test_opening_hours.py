"""Opening hours: what may be written, and when people are there by it."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.opening_hours import OpeningHours

WARSAW = ZoneInfo("Europe/Warsaw")
OFFICE = OpeningHours.parse("mon-fri 09:00-17:00 Europe/Warsaw; sat 10:00-14:00")


def at(text: str, zone: ZoneInfo = WARSAW) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [
        ("2026-11-23 08:59", False),  # a Monday
        ("2026-11-23 09:00", True),
        ("2026-11-23 16:59", True),
        ("2026-11-23 17:00", False),
        ("2026-11-28 10:00", True),
        ("2026-11-28 15:00", False),
        ("2026-11-29 12:00", False),
        ("2026-06-01 09:00", True),  # summer: an hour earlier by UTC
    ],
)
def test_people_are_there_in_the_hours_of_their_own_clock(moment: str, is_open: bool) -> None:
    assert OFFICE.is_open(at(moment).astimezone(UTC)) == is_open


@pytest.mark.parametrize(
    ("moment", "opens"),
    [
        ("2026-11-23 06:00", "2026-11-23 09:00"),
        ("2026-11-23 20:00", "2026-11-24 09:00"),
        ("2026-11-27 17:00", "2026-11-28 10:00"),
        ("2026-11-28 14:00", "2026-11-30 09:00"),
        ("2026-03-28 14:00", "2026-03-30 09:00"),  # the clock is changed in between
    ],
)
def test_who_comes_too_late_is_told_when_people_are_there_again(moment: str, opens: str) -> None:
    assert OFFICE.next_opening(at(moment)) == at(opens)


def test_nobody_waits_while_people_are_there() -> None:
    assert OFFICE.next_opening(at("2026-11-23 12:00")) is None


def test_without_hours_people_are_always_there() -> None:
    assert OpeningHours.parse(" ").is_open(at("2026-11-29 03:00"))


def test_a_night_belongs_to_the_day_it_begins_on() -> None:
    nights = OpeningHours.parse("sun 22:00-06:00 UTC")
    assert nights.is_open(at("2026-11-30 05:59", ZoneInfo("UTC")))
    assert not nights.is_open(at("2026-11-30 06:00", ZoneInfo("UTC")))
    assert not nights.is_open(at("2026-11-29 05:00", ZoneInfo("UTC")))


def test_days_and_times_can_be_listed_and_a_week_goes_round() -> None:
    hours = OpeningHours.parse("sat-mon,wed 09:00-12:00,13:00-24:00 UTC")
    utc = ZoneInfo("UTC")
    assert [hours.is_open(at(f"2026-11-{day} 13:30", utc)) for day in range(23, 30)] == [
        True,
        False,
        True,
        False,
        False,
        True,
        True,
    ]
    assert not hours.is_open(at("2026-11-23 12:30", utc))
    assert hours.is_open(at("2026-11-23 23:59", utc))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mon-fri 09:00-17:00", "names no time zone"),
        ("weekdays 09:00-17:00 UTC", "'weekdays' is not a day"),
        ("mon-tue-wed 09:00-17:00 UTC", "is not a day, or two"),
        ("mon 9-17 UTC", "'9-17' is not two times"),
        ("mon 09:00-24:01 UTC", "is not two times"),
        ("mon 09:60-10:00 UTC", "is not two times"),
        ("mon 09:00-17:00 Europe/Atlantis", "is no time zone"),
        ("mon 09:00-17:00 ../../etc/passwd", "is no time zone"),
        ("mon", "is not days, times and a time zone"),
        ("mon 09:00 - 17:00 UTC", "is not days, times and a time zone"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        OpeningHours.parse(text)


@given(st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 hypothesis adds the zone
def test_the_next_opening_is_the_first_moment_that_is_open(moment: datetime) -> None:
    opens = OFFICE.next_opening(moment)
    if opens is None:
        assert OFFICE.is_open(moment)
        return
    assert OFFICE.is_open(opens)
    assert not OFFICE.is_open(opens - timedelta(minutes=1))
    minutes = int((opens - moment).total_seconds() // 60)
    assert not any(OFFICE.is_open(moment + timedelta(minutes=m)) for m in range(0, minutes, 30))
