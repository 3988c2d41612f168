"""Reader: has files parsed by a child process, and replaces it when one brought it down."""

from collections.abc import Sequence
from typing import Self

from django.conf import settings
from pydantic import BaseModel, ValidationError

from knowledge.errors import Unreadable
from knowledge.parsing import Limits, Page
from knowledge.reading.process import Child


class Answer(BaseModel):
    """What a child says of a file: its pages, or the one of the others that is not empty."""

    pages: list[Page] = []
    refused: str = ""  # the reason
    failed: str = ""  # the kind of error it then died of
    exhausted: bool = False  # there was no memory left


class Reader:
    """Reads files in one child process; each thread needs a reader of its own.

    The child is started with the first file, serves all that follow, and ends with the `with`
    block or with the thread that started it.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or configured()
        self.child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child; the next file starts another."""
        child, self.child = self.child, None
        if child is not None:
            child.end()

    def read(self, name: str, body: bytes, charset: str = "") -> tuple[list[Page], list[str]]:
        """Return the pages of a file, and their warnings, each once.

        The end of the name says what format it is; `charset` is what the server that sent it says
        it is in, where there was one. Raises Unreadable with the reason, and
        ParserUnavailable when no child can be started.
        """
        answer = self.answered(name, body, charset)
        if answer.exhausted:
            raise Unreadable(
                f"reading it took more than {self.limits.memory_mb:,} MB of memory "
                "(PARSE_MEMORY_MB)"
            )
        if answer.failed:
            raise Unreadable(f"it is damaged, or unlike any file known here ({answer.failed})")
        if answer.refused:
            raise Unreadable(answer.refused)
        return answer.pages, noted(answer.pages)

    def answered(self, name: str, body: bytes, charset: str) -> Answer:
        """Return what a child says; one that ran out of memory gets a successor.

        What earlier files left behind is not this file's doing, so a used child's word does not
        count there. Raises Unreadable.
        """
        if self.child is not None and not self.child.is_alive:
            self.close()
        while True:
            child = self.child = self.child or Child(self.limits)
            try:
                answer = Answer.model_validate_json(child.ask(name, body, charset))
            except (Unreadable, ValidationError) as error:
                self.close()
                if isinstance(error, Unreadable):
                    raise
                raise Unreadable("the parser's answer is none") from error
            if answer.failed or answer.exhausted:
                self.close()
            if not (answer.exhausted and child.served > 1):
                return answer


def noted(pages: Sequence[Page]) -> list[str]:
    """Return the warnings of all pages, each once."""
    return list(dict.fromkeys(warning for page in pages for warning in page.warnings))


def configured() -> Limits:
    """Return the limits of the settings."""
    return Limits(
        memory_mb=settings.PARSE_MEMORY_MB,
        seconds=settings.PARSE_SECONDS,
        max_pages=settings.PARSE_MAX_PAGES,
        max_expanded_bytes=settings.PARSE_MAX_EXPANDED_BYTES,
    )
