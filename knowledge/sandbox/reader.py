"""Reader: files into pages, and pages into chunks, in a process that a text may bring down."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from signal import SIGABRT, SIGXCPU, Signals
from threading import Timer
from typing import IO, Any, Self

from django.conf import settings
from pydantic import BaseModel, ValidationError

from knowledge.errors import KnowledgeError, Unreadable
from knowledge.parsing import Limits, Page
from knowledge.parsing.parsed_page import MEGABYTE
from knowledge.preparation import Prepared
from knowledge.sandbox.child import MAXRSS_UNIT, receive, send
from knowledge.tokens import WINDOW

ROOT = Path(__file__).parents[2]
COMMAND = "knowledge.sandbox.child"
# By the clock on the wall, for a process that hangs: one that dies is noticed at once, and one that
# works is slow where the machine has other work.
START_SECONDS = 120
PATIENCE = 10  # times the processor time that a file may take
# No more threads may be started there, and each would reserve memory.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
NO_ANSWER = "the parser's answer is none"


class ParserUnavailable(KnowledgeError):
    """The process that parses files cannot be started."""

    def __init__(self) -> None:
        super().__init__(
            "The process that parses files does not start. Run by hand, it says why: "
            f"cd {ROOT} && {sys.executable} -m {COMMAND} '{{}}'"
        )


class Child:
    """A process that parses under the limits. Raises ParserUnavailable when it won't start."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.files_read = 0
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", COMMAND, json.dumps(asdict(limits))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                # Nothing of ours: it holds keys and addresses that no file may get near.
                env={"PYTHONUTF8": "1", **ONE_THREAD},
            )
        except OSError as error:
            raise ParserUnavailable from error
        with self.alarm(START_SECONDS):
            greeting = self.receive_answer()
        if greeting is None:
            self.end()
            raise ParserUnavailable
        self.memory_at_start = int(greeting)

    @property
    def is_alive(self) -> bool:
        """Whether nobody has killed it while it waited."""
        return self.process.poll() is None

    def ask(self, task: str, about: dict[str, Any], body: bytes) -> bytes:
        """Return what the child says of a file or a page.

        Raises Unreadable when it says nothing in time; it is then dead, or to be ended.
        """
        seconds = PATIENCE * self.limits.seconds
        with self.alarm(seconds) as late, suppress(BrokenPipeError):
            send(pipe(self.process.stdin), task.encode())
            send(pipe(self.process.stdin), json.dumps(about).encode())
            send(pipe(self.process.stdin), body)
            answer = self.receive_answer()
        if answer is not None and not late:
            self.files_read += 1
            return answer
        if late:
            raise Unreadable(
                f"reading it did not end within {seconds:,} seconds, {PATIENCE} times PARSE_SECONDS"
            )
        raise Unreadable(self.cause_of_death())

    def receive_answer(self) -> bytes | None:
        """Return the next answer; None when the child is gone. Raises Unreadable if too long."""
        try:
            return receive(pipe(self.process.stdout), self.limits.max_expanded_bytes)
        except ValueError as error:
            raise Unreadable("the parser says more than it may") from error

    @contextmanager
    def alarm(self, seconds: float) -> Iterator[list[bool]]:
        """Kill the child when the block takes longer, and say so in the list.

        Whatever waits for the child wakes up then.
        """
        late: list[bool] = []

        def kill() -> None:
            late.append(True)
            self.process.kill()

        timer = Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()
            timer.join()

    def cause_of_death(self) -> str:
        """Return what a file made the child die of. Some libraries die where memory ends."""
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = code = os.waitstatus_to_exitcode(status)
        if code == -SIGXCPU:
            return (
                f"reading it took more than {self.limits.seconds} seconds of the processor "
                "(PARSE_SECONDS)"
            )
        ending = f"died of {Signals(-code).name}" if code < 0 else f"ended with status {code}"
        memory_limit = max(self.limits.memory_mb * MEGABYTE / 2, self.memory_at_start)
        if code == -SIGABRT or used.ru_maxrss * MAXRSS_UNIT > memory_limit:
            ending += (
                f", for want of more memory than {self.limits.memory_mb:,} MB (PARSE_MEMORY_MB)"
            )
        return f"reading it, the parser {ending}"

    def end(self) -> None:
        """Kill the child and let go of its pipes."""
        self.process.kill()
        for end in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                pipe(end).close()
        self.process.wait()


def pipe(end: IO[bytes] | None) -> IO[bytes]:
    """Return the pipe, which a process started with PIPE always has."""
    if end is None:
        raise ParserUnavailable
    return end


class Answer(BaseModel):
    """What a child says: what it was asked for, or the one of the others that is not empty."""

    pages: list[Page] = []
    prepared: Prepared | None = None
    refused: str = ""  # the reason
    failed: str = ""  # the kind of error it then died of
    exhausted: bool = False  # there was no memory left


class Reader:
    """Reads files in one child process; each thread needs a reader of its own.

    The child is started with the first file, serves all that follow, and ends with the `with`
    block or with the thread that started it.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or limits_from_settings()
        self.child: Child | None = None
        self.is_stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the child; the next file starts another."""
        child, self.child = self.child, None
        if child is not None:
            child.end()

    def stop(self) -> None:
        """End the child, also one that another thread is just starting; there is no other."""
        self.is_stopped = True
        self.close()

    def read(self, name: str, body: bytes, charset: str = "") -> tuple[list[Page], list[str]]:
        """Return the pages of a file, and their warnings, each once.

        The end of the name says what format it is; `charset` is what the server that sent it says
        it is in, where there was one. Raises Unreadable with the reason, and
        ParserUnavailable when no child can be started.
        """
        answer = self.ask_child("pages", {"name": name, "charset": charset}, body)
        return answer.pages, distinct_warnings(answer.pages)

    def prepare(
        self, page: Page, origin: str, folders: Sequence[str], *, window: int = WINDOW
    ) -> Prepared:
        """Return what `preparation.prepare` does. Raises as `read`."""
        about = {"origin": origin, "folders": [*folders], "window": window}
        body = json.dumps(asdict(page), default=str).encode()
        prepared = self.ask_child("prepared", about, body).prepared
        if prepared is None:
            raise Unreadable(NO_ANSWER)
        return replace(prepared, page=replace(prepared.page, content=page.content))

    def ask_child(self, task: str, about: dict[str, Any], body: bytes) -> Answer:
        """Return what a child says of it. Raises Unreadable and ParserUnavailable."""
        answer = self.next_answer(task, about, body)
        if answer.exhausted:
            raise Unreadable(
                f"reading it took more than {self.limits.memory_mb:,} MB of memory "
                "(PARSE_MEMORY_MB)"
            )
        if answer.failed:
            raise Unreadable(f"it is damaged, or unlike any file known here ({answer.failed})")
        if answer.refused:
            raise Unreadable(answer.refused)
        return answer

    def next_answer(self, task: str, about: dict[str, Any], body: bytes) -> Answer:
        """Return what a child says; one that ran out of memory gets a successor.

        What earlier files left behind is not this file's doing, so a used child's word does not
        count there. Raises Unreadable.
        """
        if self.child is not None and not self.child.is_alive:
            self.close()
        while True:
            child = self.child = self.child or Child(self.limits)
            if self.is_stopped:
                self.close()
                raise Unreadable("reading it was called off")
            try:
                answer = Answer.model_validate_json(child.ask(task, about, body))
            except (Unreadable, ValidationError) as error:
                self.close()
                if isinstance(error, Unreadable):
                    raise
                raise Unreadable(NO_ANSWER) from error
            if answer.failed or answer.exhausted:
                self.close()
            if not (answer.exhausted and child.files_read > 1):
                return answer


def distinct_warnings(pages: Sequence[Page]) -> list[str]:
    """Return the warnings of all pages, each once."""
    return list(dict.fromkeys(warning for page in pages for warning in page.warnings))


def limits_from_settings() -> Limits:
    """Return the limits of the settings."""
    return Limits(
        memory_mb=settings.PARSE_MEMORY_MB,
        seconds=settings.PARSE_SECONDS,
        max_pages=settings.PARSE_MAX_PAGES,
        max_rows=settings.PARSE_MAX_ROWS,
        max_expanded_bytes=settings.PARSE_MAX_EXPANDED_BYTES,
    )


__all__ = ["ParserUnavailable", "Reader"]
