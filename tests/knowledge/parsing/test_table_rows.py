"""Table rows: the rows of CSV and Excel files as they are found and shown."""

from datetime import date, datetime, time, timedelta
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook

from knowledge.errors import Unreadable
from knowledge.parsing import Limits, Page
from knowledge.parsing.dispatch import parse
from knowledge.parsing.tables import rendered
from knowledge.parsing.xlsx import shown


def page(name: str, body: bytes | str, limits: Limits | None = None) -> Page:
    (only,) = parse(name, body.encode() if isinstance(body, str) else body, limits)
    return only


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("Product,Price\nNimbus,3\n", "## Row 2\n\n- Product: Nimbus; Price: 3"),
        ("Product;Price\nNimbus;3,50\n", "## Row 2\n\n- Product: Nimbus; Price: 3,50"),
        ("Product\tPrice\nNimbus\t1|2\n", "## Row 2\n\n- Product: Nimbus; Price: 1|2"),
        ("sep=;\na;b\n1;2\n", "## Row 3\n\n- a: 1; b: 2"),
        ("Nimbus,3\nStratus,4\n", "## Rows 1–2\n\n- Column A: Nimbus; Column B: 3\n- "
         "Column A: Stratus; Column B: 4"),
        ("Region,2024,2025\nEU,1,2\n", "## Row 2\n\n- Region: EU; 2024: 1; 2025: 2"),
        ("Prices of June\n\nKey,Note\nF1,\"a\nb; c: d\"\n", "Prices of June\n\n## Row 4\n\n"
         "- Key: F1; Note: a b, c: d"),
        ("Key,Note,Note\n,x,y\n", "## Row 2\n\n- Key: –; Note: x; Note (C): y"),
        ("Name\nA\nB\n", "## Rows 2–3\n\n- Name: A\n- Name: B"),
    ],
)  # fmt: skip
def test_every_row_of_a_file_names_its_columns(text: str, content: str) -> None:
    assert page("prices.csv", text).content == content


def test_rows_are_a_table_again_where_they_are_quoted() -> None:
    rows = "".join(f"Nimbus {size},{size}.50,about {size} GB\n" for size in range(40))
    sections = page("prices.csv", f"Product,Price,Note\n{rows}").content.split("## ")[1:]
    assert [section.split("\n")[0] for section in sections[:2]] == ["Rows 2–12", "Rows 13–23"]
    table = rendered(sections[0].strip().split("\n")[2:])
    assert table is not None
    assert table.startswith("| Product | Price | Note |\n| --- | --- | --- |\n| Nimbus 0 | 0.50 |")


def test_long_row_is_several_items_that_begin_with_its_first_cell() -> None:
    text = "Product,Short,Long\nNimbus,s," + "word " * 300
    items = page("a.csv", text).content.split("\n")[2:]
    assert len(items) == 4
    assert all(item.startswith("- Product: Nimbus; ") and len(item) < 600 for item in items)
    assert items[2].startswith("- Product: Nimbus; Long (continued): word")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a,b\n" + "1,2\n" * 30, r"more than 20 rows \(PARSE_MAX_ROWS\)"),
        (",".join(map(str, range(10_000))), "row 1 has 10,000 columns, and at most 256"),
        ('a,b\n"' + "x" * 200_000, "row 2 cannot be read: field larger than field limit"),
        (",\n,\n", "there is no text in it"),
    ],
)
def test_file_of_too_much_is_refused_with_the_reason(body: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        page("a.csv", body, Limits(max_rows=20))


def test_few_rows_with_long_names_cannot_become_a_text_without_end() -> None:
    names = ",".join(f"{'name' * 12}{number}" for number in range(200))
    text = f"{names}\n" + ("1," * 199 + "1\n") * 1000
    with pytest.raises(Unreadable, match="PARSE_MAX_EXPANDED_BYTES"):
        page("a.csv", text, Limits(max_expanded_bytes=1_000_000))


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (1234.5, "#,##0.00", "1,234.50"),
        (1234.5, '#,##0.00 "EUR"', "1,234.50 EUR"),
        (-1234.5, "[$€-407] #,##0.00;[Red]([$€-407] #,##0.00)", "(€ 1,234.50)"),
        (-3, "0", "-3"),
        (0, '0;-0;"none"', "0"),
        (0.155, "0.0%", "15.5%"),
        (7, "000", "007"),
        (0.1 + 0.2, "General", "0.3"),
        (3.0, "General", "3"),
        (12_300_000, '0.0,,"M"', "12.3M"),
        (123456, "0.00E+00", "1.23E+05"),
        (0.5, "# ?/?", "0.5"),
        (1.5, "0.##", "1.5"),
        (1.5, "_-* #,##0.00_-", "1.50"),
        (True, "General", "TRUE"),
        (datetime.fromisoformat("2026-03-04"), "dd/mm/yyyy", "2026-03-04"),
        (datetime.fromisoformat("2026-03-04T09:05"), "General", "2026-03-04 09:05"),
        (time(9, 30), "hh:mm", "09:30"),
        (timedelta(hours=30), "[h]:mm", "1 day, 6:00:00"),
        (" text ", "@", "text"),
    ],
)
def test_cell_is_shown_as_people_see_it(value: object, number_format: str, text: str) -> None:
    assert shown(value, number_format) == text


def workbook() -> Workbook:
    book = Workbook()
    sheet = book.worksheets[0]
    sheet.title = "Price list"
    for row in (["Valid from June"], [], ["Product", "Price"], ["Nimbus", 3.5], ["Sum", "=B4"]):
        sheet.append(row)
    sheet["B4"].number_format = "0.00 €"
    hours = book.create_sheet("Hours")
    hours.append(["Day", "From"])
    hours.append(["Monday", time(9, 30)])
    secret = book.create_sheet("Margins")
    secret.append(["Nimbus", 17])
    secret.sheet_state = "hidden"
    book.properties.title = "Prices of 2026"
    return book


def saved(book: Workbook) -> bytes:
    body = BytesIO()
    book.save(body)
    return body.getvalue()


def test_sheets_of_a_workbook_are_sections_with_their_rows() -> None:
    read = page("prices.xlsx", saved(workbook()))
    assert read.content == (
        "## Price list\n\nValid from June\n\n### Rows 4–5\n\n- Product: Nimbus; Price: 3.50 €\n"
        "- Product: Sum\n\n## Hours\n\n### Row 2\n\n- Day: Monday; From: 09:30"
    )
    assert read.title == "Prices of 2026"
    assert isinstance(read.last_updated, date)
    assert read.warnings == [
        "1 formulas have no value: open the file in a spreadsheet program and save it",
        "the hidden sheet 'Margins' was left out",
    ]


def test_rows_of_all_sheets_count_together() -> None:
    with pytest.raises(Unreadable, match=r"more than 5 rows \(PARSE_MAX_ROWS\)"):
        page("prices.xlsx", saved(workbook()), Limits(max_rows=5))


def test_cell_far_away_from_the_others_costs_little() -> None:
    book = Workbook()
    book.worksheets[0]["A1"] = "near"
    book.worksheets[0]["XFD40000"] = "far"
    assert page("far.xlsx", saved(book)).content == "## Sheet\n\nnear\n\nfar"


def with_part(body: bytes, name: str, xml: bytes) -> bytes:
    file = BytesIO()
    with ZipFile(BytesIO(body)) as source, ZipFile(file, "w", ZIP_DEFLATED) as target:
        for each in source.namelist():
            target.writestr(each, xml if each == name else source.read(each))
    return file.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
ENTITY = b'<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet>&a;</worksheet>'


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (ENTITY, "it declares XML entities"),
        (b" " * 3_000_000, "unpacked it is larger than 1,000,000 bytes"),
        (b"<worksheet", "it is damaged"),
    ],
)
def test_hostile_workbook_is_refused(xml: bytes, reason: str) -> None:
    body = with_part(saved(workbook()), SHEET, xml)
    with pytest.raises(Unreadable, match=reason):
        page("a.xlsx", body, Limits(max_expanded_bytes=1_000_000))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_is_in_a_file_it_is_read_or_refused(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(SAMPLES))
    body = bytearray(original)
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=8)):
        body[place] = data.draw(st.integers(0, 255))
    name = "a.xlsx" if original is SAMPLES[0] else "a.csv"
    try:
        pages = parse(name, bytes(body))
    except Unreadable:
        return
    assert pages


SAMPLES = (saved(workbook()), b'Product;Price\n"Nim;bus";3,5\n\nA;4\n')
