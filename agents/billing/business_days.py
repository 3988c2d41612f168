"""Business days: Monday to Friday, public holidays of a country left out."""

from datetime import date
from functools import cache
from importlib import import_module
from typing import Any


def has_calendar(country: str) -> bool:
    """Tell whether the public holidays of a country (ISO 3166, two letters) are known."""
    return country in _library().list_supported_countries()


def business_day_after(day: date, count: int, country: str) -> date:
    """Return the last of `count` business days that follow a day. Raises NotImplementedError."""
    found: date = _calendar(country).get_nth_working_day(day, count)
    return found


@cache
def _calendar(country: str) -> Any:
    return _library().country_holidays(country)


def _library() -> Any:
    return import_module("holidays")
