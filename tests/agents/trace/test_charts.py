"""Charts: what is drawn stands where its figure says, and the table says the same."""

import pytest

from agents.trace.charts import HEIGHT, TOP, WIDTH, Chart, Series, round_up, shortened

BOTTOM_LINE = 176.0


def chart(*series: Series, lines: bool = False) -> Chart:
    times = [f"day {number}" for number in range(len(series[0].values))]
    return Chart("Turns", times, series, "s", digits=1, lines=lines)


def test_bars_stand_on_each_other_and_the_highest_fits() -> None:
    drawn = chart(Series("up", "a", [1, 0, 3]), Series("down", "b", [1, None, 5]))
    first, on_first, _, last = drawn.marks
    assert float(first.y) + float(first.height) == pytest.approx(BOTTOM_LINE, abs=0.1)
    assert float(on_first.y) + float(on_first.height) == pytest.approx(float(first.y), abs=0.11)
    assert (float(last.y), drawn.top) == (TOP, 8.0)
    assert last.said == "day 2: down 5.0\N{NO-BREAK SPACE}s"
    assert float(last.x) + float(last.width) < WIDTH


def test_a_line_is_broken_where_nothing_was_measured() -> None:
    drawn = chart(Series("half", "a", [1, 2, None, 3, 0]), lines=True)
    assert [path.path.count(" L") for path in drawn.paths] == [1, 1]
    assert [mark.said.split(":")[0] for mark in drawn.marks] == ["day 0", "day 1", "day 3"]
    assert all(0 < float(mark.y) < HEIGHT for mark in drawn.marks)


def test_the_table_has_every_figure() -> None:
    drawn = chart(Series("half", "a", [1, None]), Series("most", "b", [2000, 0]))
    assert drawn.table == [
        ("day 0", ["1.0\N{NO-BREAK SPACE}s", "2,000.0\N{NO-BREAK SPACE}s"]),
        ("day 1", ["\N{EN DASH}", "0.0\N{NO-BREAK SPACE}s"]),
    ]


def test_no_more_times_are_written_than_can_be_read() -> None:
    drawn = Chart("Turns", [str(day) for day in range(90)], [Series("up", "a", [1] * 90)])
    assert 2 < len(drawn.below) <= 7


@pytest.mark.parametrize("values", [[0, 0], [None, None], []])
def test_nothing_is_no_chart(values: list[float | None]) -> None:
    drawn = Chart("Turns", [str(day) for day in range(len(values))], [Series("up", "a", values)])
    assert drawn.is_empty
    assert drawn.marks == []


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.3, 0.3), (1, 1), (7, 8), (11, 15), (99.5, 100), (40_001, 50_000)]
)
def test_a_scale_ends_with_a_number_that_is_read_with_ease(value: float, top: float) -> None:
    assert round_up(value) == pytest.approx(top)


def test_a_scale_writes_large_numbers_short() -> None:
    written = [shortened(value, 0).replace("\N{NO-BREAK SPACE}", " ") for value in (0, 750, 1500)]
    assert written == ["0", "750", "1.5 k"]
    assert shortened(20_000_000, 0) == "20\N{NO-BREAK SPACE}M"
    assert shortened(2.5, 2) == "2.50"
