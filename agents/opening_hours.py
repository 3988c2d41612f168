"""Opening hours: when people are there, as an operator writes it and as it is told to who asks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
TIMES = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})\Z")
EXAMPLE = "mon-fri 09:00-17:00 Europe/Warsaw; sat 10:00-14:00"
MINUTES_OF_A_DAY = 24 * 60
WEEK = 7


@dataclass(frozen=True)
class Span:
    """A time of every week: a day's number (0 is Monday), its first minute and how many."""

    day: int
    begins: int
    minutes: int
    zone: ZoneInfo

    def around(self, moment: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield beginning and end of it in the week before `moment`, that week, and the next."""
        local = moment.astimezone(self.zone).date()
        monday = local - timedelta(days=local.weekday())
        for weeks in (-1, 0, 1):
            day = monday + timedelta(days=self.day + WEEK * weeks)
            # Of the clock on the wall: the hours of a day on which it is changed stay the same.
            midnight = datetime.combine(day, time())
            begins = midnight + timedelta(minutes=self.begins)
            ends = begins + timedelta(minutes=self.minutes)
            yield begins.replace(tzinfo=self.zone), ends.replace(tzinfo=self.zone)


@dataclass(frozen=True)
class OpeningHours:
    """The hours of every week in which people are there; without any, they always are."""

    text: str = ""
    spans: tuple[Span, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "OpeningHours":
        """Return what a text like `EXAMPLE` says; nothing said is always open.

        Parts are separated by `;`. Each names days (`mon-fri`, `sat,sun`), times (`09:00-12:00`
        or several, separated by commas; one that ends before it begins ends on the next day), and
        a time zone, which holds until another is named. Raises ValueError saying what is wrong.
        """
        spans: list[Span] = []
        zone: ZoneInfo | None = None
        for part in filter(None, (part.strip() for part in text.split(";"))):
            words = part.split()
            if not 2 <= len(words) <= 3:
                raise ValueError(f"{part!r} is not days, times and a time zone, like {EXAMPLE!r}")
            zone = _zone(words[2]) if len(words) == 3 else zone
            if zone is None:
                raise ValueError(f"{part!r} names no time zone, like {EXAMPLE!r}")
            times = [_times(each) for each in words[1].split(",")]
            spans += [Span(day, *each, zone) for day in _days(words[0]) for each in times]
        if text.strip() and not spans:
            raise ValueError(f"{text.strip()!r} names no hours, like {EXAMPLE!r}")
        return cls(text.strip(), tuple(spans))

    def is_open(self, moment: datetime) -> bool:
        """Whether people are there at an aware time."""
        return not self.spans or any(
            begins <= moment < ends for span in self.spans for begins, ends in span.around(moment)
        )

    def next_opening(self, moment: datetime) -> datetime | None:
        """Return when people are there again, in the zone of those hours; None when they are."""
        if self.is_open(moment):
            return None
        beginnings = [begins for span in self.spans for begins, _ in span.around(moment)]
        return min(begins for begins in beginnings if begins > moment)


def _days(text: str) -> list[int]:
    """The numbers of the days that "mon-wed,sun" names."""
    numbers: list[int] = []
    for part in text.lower().split(","):
        ends = part.split("-")
        if len(ends) > 2 or any(day not in DAYS for day in ends):
            raise ValueError(f"{part!r} is not a day, or two with a dash, of {', '.join(DAYS)}")
        first, last = DAYS.index(ends[0]), DAYS.index(ends[-1])
        numbers += [(first + each) % WEEK for each in range((last - first) % WEEK + 1)]
    return numbers


def _times(text: str) -> tuple[int, int]:
    """The first minute of the day and the number of minutes that "09:00-17:30" names."""
    match = TIMES.match(text)
    hour, minute, last_hour, last_minute = map(int, match.groups()) if match else (99, 0, 0, 0)
    begins, ends = 60 * hour + minute, 60 * last_hour + last_minute
    if begins >= MINUTES_OF_A_DAY or ends > MINUTES_OF_A_DAY or max(minute, last_minute) > 59:
        raise ValueError(f"{text!r} is not two times like 09:00-17:00")
    return begins, (ends - begins) % MINUTES_OF_A_DAY or MINUTES_OF_A_DAY


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone, such as Europe/Warsaw or UTC") from error
