"""Charts: figures over time as bars or lines in SVG, each with a table that says the same.

Made on the server, so that pages need no script and no policy an exception for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from math import ceil, floor, log10

# Pixels of the picture; it grows and shrinks with the page.
WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 10, 24
LABELS = 7  # below the axis, at most
STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)  # of a scale that people read with ease
Value = float | None
NONE = "\N{EN DASH}"  # stands where nothing was measured


@dataclass(frozen=True)
class Series:
    """One measure; `colour` is a class of the style sheet. None: nothing was measured then."""

    name: str
    colour: str
    values: Sequence[Value]


@dataclass(frozen=True)
class Mark:
    """A bar, or a point of a line, and what is said of it."""

    colour: str
    x: str
    y: str
    width: str
    height: str
    said: str


@dataclass(frozen=True)
class Line:
    """A line through neighbours that were measured."""

    colour: str
    path: str


@dataclass(frozen=True)
class Label:
    """A word at an axis."""

    place: str
    text: str


@dataclass(frozen=True)
class Chart:
    """Measures over the same times; `unit` follows a figure of so many `digits` after the point."""

    title: str
    times: Sequence[str]
    series: Sequence[Series]
    unit: str = ""
    digits: int = 0
    lines: bool = False  # else bars, one on the other

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for each in self.series for value in each.values)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return WIDTH, HEIGHT

    @cached_property
    def top(self) -> float:
        """The value at the upper end of the scale."""
        columns = list(zip(*(each.values for each in self.series), strict=True))
        sizes = [
            max((value or 0 for value in column), default=0)
            if self.lines
            else sum(value or 0 for value in column)
            for column in columns
        ]
        return round_up(max(sizes, default=0))

    @property
    def scale(self) -> list[Label]:
        """Where the lines across lie, and what they stand for."""
        values = [self.top * part / 2 for part in range(3)]
        return [Label(f"{self._y(value):.1f}", shortened(value, self.digits)) for value in values]

    @property
    def below(self) -> list[Label]:
        """Some of the times, at their places."""
        every = ceil(len(self.times) / LABELS) or 1
        chosen = [place for place in range(len(self.times)) if place % every == 0]
        return [Label(f"{self._middle(place):.1f}", self.times[place]) for place in chosen]

    @property
    def marks(self) -> list[Mark]:
        """The bars, or the points of the lines."""
        return [mark for place in range(len(self.times)) for mark in self._column(place)]

    @property
    def paths(self) -> list[Line]:
        """The lines, broken where nothing was measured."""
        if not self.lines:
            return []
        return [Line(each.colour, path) for each in self.series for path in self._paths(each)]

    @property
    def table(self) -> list[tuple[str, list[str]]]:
        """Each time with its figures in words."""
        return [
            (time, [self.said(each.values[place]) for each in self.series])
            for place, time in enumerate(self.times)
        ]

    def said(self, value: Value) -> str:
        """Return a figure as people read it."""
        if value is None:
            return NONE
        figure = f"{value:,.{self.digits}f}"
        return f"{figure}\N{NO-BREAK SPACE}{self.unit}" if self.unit else figure

    def _column(self, place: int) -> list[Mark]:
        values = [each.values[place] for each in self.series]
        if self.lines:
            bottoms = [0.0] * len(values)
        else:
            bottoms = [0.0, *accumulate(value or 0 for value in values)][:-1]
        return [
            self._mark(each, place, value, bottom)
            for each, value, bottom in zip(self.series, values, bottoms, strict=True)
            if value
        ]

    def _mark(self, series: Series, place: int, value: float, bottom: float) -> Mark:
        said = f"{self.times[place]}: {series.name} {self.said(value)}"
        if self.lines:
            x, y = self._middle(place), self._y(value)
            return Mark(series.colour, f"{x:.1f}", f"{y:.1f}", "", "", said)
        x, y = LEFT + self._slot * (place + 0.1), self._y(bottom + value)
        width, height = self._slot * 0.8, self._y(bottom) - y
        return Mark(series.colour, f"{x:.1f}", f"{y:.1f}", f"{width:.1f}", f"{height:.1f}", said)

    def _paths(self, series: Series) -> list[str]:
        runs = groupby(enumerate(series.values), key=lambda each: each[1] is not None)
        points = [
            [(self._middle(place), self._y(value or 0)) for place, value in run]
            for is_measured, run in runs
            if is_measured
        ]
        return ["M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in run) for run in points]

    @property
    def _slot(self) -> float:
        return (WIDTH - LEFT - RIGHT) / max(1, len(self.times))

    def _middle(self, place: int) -> float:
        return LEFT + self._slot * (place + 0.5)

    def _y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / self.top)


def shortened(value: float, digits: int) -> str:
    """Return a figure of a scale: 1.5 k for 1,500, and no more places than tell it apart."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:g}\N{NO-BREAK SPACE}{letter}"
    return f"{value:.{digits}f}" if digits else f"{value:g}"


def round_up(value: float) -> float:
    """Return the next higher number that a scale may end with; 1 for nothing."""
    if value <= 0:
        return 1.0
    magnitude = 10 ** floor(log10(value))
    return float(next(step * magnitude for step in STEPS if step * magnitude >= value * 0.999999))
