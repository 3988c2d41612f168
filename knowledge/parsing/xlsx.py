"""XLSX: the sheets of an Excel file, with dates and numbers as people see them in it."""

import re
import warnings
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from openpyxl import load_workbook

from knowledge.parsing.office import Parts, damage_as_unreadable, properties, unpack
from knowledge.parsing.parsed_page import Limits, Page
from knowledge.parsing.table_rows import Record, markdown

LEVEL = 2  # of a sheet's heading; its rows are one below
WITHOUT_VALUE = re.compile(rb"(?:</f>|<f\b[^>]*/>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>")
MIDNIGHT = time()


def parse(body: bytes, limits: Limits) -> list[Page]:
    """Return the sheets of the file as one page. Raises Unreadable."""
    parts = unpack(body, limits)
    title, last_change = properties(parts)
    notes = formula_warnings(parts)
    texts: list[str] = []
    room = limits.max_rows
    with warnings.catch_warnings(), damage_as_unreadable():
        warnings.simplefilter("ignore")  # of what openpyxl does not keep when it writes
        workbook = load_workbook(archive(parts), read_only=True, data_only=True, keep_links=False)
        for sheet in workbook.worksheets:
            if sheet.sheet_state != "visible":
                notes.append(f"the hidden sheet {sheet.title!r} was left out")
                continue
            rows = list(records(sheet, room + 1))
            text = markdown(rows, LEVEL + 1, limits, room=room)
            room -= len(rows)
            if text:
                texts.append(f"{'#' * LEVEL} {' '.join(sheet.title.split())}\n\n{text}")
    return [Page("\n\n".join(texts), title=title, last_updated=last_change, warnings=notes)]


def archive(parts: Parts) -> BytesIO:
    """Return the parts that were looked at as an archive again."""
    file = BytesIO()
    with ZipFile(file, "w") as target:
        for name, xml in parts.items():
            target.writestr(name, xml)
    return file


def formula_warnings(parts: Parts) -> list[str]:
    """Return a warning when formulas have no values: whoever wrote the file calculated none."""
    sheets = (xml for name, xml in parts.items() if "/worksheets/" in name)
    count = sum(len(WITHOUT_VALUE.findall(xml)) for xml in sheets)
    problem = "formulas have no value: open the file in a spreadsheet program and save it"
    return [f"{count:,} {problem}"] if count else []


def records(sheet: Any, most: int) -> Iterator[Record]:
    """Yield at most so many rows of a sheet that are not empty."""
    sheet.reset_dimensions()  # what the file says of them may be wrong
    count = 0
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells = {
            place: text
            for place, cell in enumerate(row)
            if cell.value is not None and (text := shown(cell.value, cell.number_format))
        }
        if cells:
            count += 1
            yield Record(number, cells)
        if count >= most:
            return


def shown(value: Any, number_format: str) -> str:
    """Return a cell's value as people see it; days and times as in ISO 8601."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return shown_number(value, number_format or "General")
        case datetime():
            is_day = value.time() == MIDNIGHT
            return value.date().isoformat() if is_day else f"{value:%Y-%m-%d %H:%M}"
        case date():
            return value.isoformat()
        case time():
            return f"{value:%H:%M:%S}" if value.second else f"{value:%H:%M}"
        case timedelta():
            return str(value)
    return str(value).strip()


# What a format says besides the number: colours and conditions, the sign of a currency, widths
# and fills, and letters that stand for themselves.
BRACKETS = re.compile(r"\[\$([^\]-]*)(?:-[^\]]*)?\]|\[[^\]]*\]")
SPACES = re.compile(r"[_*].")
LITERAL = re.compile(r'"([^"]*)"|\\(.)')
DIGITS = re.compile(r"[#0?][#0?,]*(?:\.[#0?]*)?,*(?:E[+-]0+)?")
LONGEST_FORMAT = 255  # characters, as in Excel


def shown_number(value: float, number_format: str) -> str:
    """Return a number by a format such as `#,##0.00 "EUR"` or `0%`.

    Formats are those of ECMA-376, part 1, 18.8.31: up to three sections, for positive numbers,
    negative ones and zero. Fractions and what is not understood are shown as the plain number.
    """
    sections = number_format[:LONGEST_FORMAT].split(";")
    section, is_signed = sections[0], value < 0
    if value < 0 and len(sections) > 1:
        section, is_signed = sections[1], False
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    section = SPACES.sub("", BRACKETS.sub(lambda match: match[1] or "", section))
    literals: list[str] = []

    def kept(match: re.Match[str]) -> str:
        literals.append(match[1] if match[1] is not None else match[2])
        return "\0"

    section = LITERAL.sub(kept, section)
    match = DIGITS.search(section)
    if match is None or "/" in section or "general" in section.lower():
        return plain(value)
    text = section.replace(match[0], "\1", 1)
    for literal in literals:
        text = text.replace("\0", literal, 1)
    size = abs(value) * (100 if "%" in section else 1)
    number = by_pattern(size, match[0])
    return f"{'-' if is_signed else ''}{text.replace(chr(1), number)}".strip()


def plain(value: float) -> str:
    """Return a number as Excel shows it without a format, to 15 digits."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.15g}"


def by_pattern(size: float, pattern: str) -> str:
    """Return a number that is not negative by a pattern such as "#,##0.0#" or "0.00E+00"."""
    if "E" in pattern:
        mantissa = pattern.partition("E")[0].partition(".")[2]
        return f"{size:.{len(mantissa)}E}"
    digits = pattern.rstrip(",")
    size /= 1000 ** (len(pattern) - len(digits))
    whole, _, decimals = digits.partition(".")
    text = f"{size:{',' if ',' in whole else ''}.{len(decimals)}f}"
    least, integer, fraction = decimals.count("0"), *text.partition(".")[::2]
    fraction = fraction[:least] + fraction[least:].rstrip("0")
    if "," not in whole:
        integer = integer.zfill(whole.count("0"))
    return f"{integer}.{fraction}" if fraction else integer
