"""Lines: reads files of one JSON object per line, and says which line is wrong."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from knowledge.errors import KnowledgeError


class Unjudgeable(KnowledgeError):
    """What is to be evaluated cannot be read."""

    code = "unjudgeable"


class Line(BaseModel):
    """One line. Identifiers may be numbers, and keys nobody asks for are left alone."""

    model_config = ConfigDict(coerce_numbers_to_str=True, extra="ignore", frozen=True)


Kind = TypeVar("Kind", bound=Line)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of every line that is not blank.

    A name that ends in .gz is unpacked. Raises Unjudgeable.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = decoded(line, path, number)
                if text.strip():
                    yield number, text
    except FileNotFoundError as error:
        raise Unjudgeable(f"{path}: there is no such file.") from error
    # gzip: an OSError for what is no archive, the others for one that is damaged.
    except (OSError, EOFError, zlib.error) as error:
        raise Unjudgeable(f"{path}: it cannot be read: {error}.") from error


def decoded(line: bytes, path: Path, number: int) -> str:
    """Return the line as text. Raises Unjudgeable."""
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise Unjudgeable(f"{path}, line {number}: not UTF-8: {error.reason}.") from error


def read(path: Path, kind: type[Kind]) -> Iterator[tuple[int, Kind]]:
    """Yield the number of every line and what it holds. Raises Unjudgeable."""
    for number, text in text_lines(path):
        try:
            yield number, kind.model_validate_json(text)
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, problem["loc"]))
            what = f"{field!r}: {problem['msg']}" if field else problem["msg"]
            raise Unjudgeable(f"{path}, line {number}: {what}.") from error
