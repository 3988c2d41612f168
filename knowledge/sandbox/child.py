"""Child: the process that parses and prepares, one text after another, within its limits.

It knows nothing of the settings, the database or the environment of its parent, and says nothing
of what it reads but the answer.
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import IO, Any, BinaryIO

from knowledge.errors import Unreadable
from knowledge.liveness import die_with_parent
from knowledge.parsing import Limits, Page
from knowledge.parsing.parsed_page import MEGABYTE

LENGTH = 8
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes; getrusage(2)


def send(pipe: IO[bytes], body: bytes) -> None:
    """Write one frame. Raises BrokenPipeError when nobody reads any more."""
    pipe.write(len(body).to_bytes(LENGTH, "big"))
    pipe.write(body)
    pipe.flush()


def receive(pipe: IO[bytes], limit: int) -> bytes | None:
    """Return the next frame; None when the other side is gone.

    Raises ValueError for a frame of more than `limit` bytes, before any of them is read.
    """
    header = pipe.read(LENGTH)
    length = int.from_bytes(header, "big")
    if len(header) == LENGTH and length > limit:
        raise ValueError(length)
    body = pipe.read(length) if len(header) == LENGTH else b""
    return body if len(header) == LENGTH and len(body) == length else None


FILES = 64  # open at once
EXHAUSTED = b'{"exhausted": true}'  # ready beforehand: there is no memory left to make it
BODY = 1 << 40  # what is too large was refused by whoever read the file


def main() -> None:
    """Answer requests until there are none: a task, what is said of a body, and the body.

    These are three frames; the second is JSON.
    """
    die_with_parent()
    limits = Limits(**json.loads(sys.argv[1]))
    requests, answers = take_pipes()
    confine(limits)
    sys.excepthook = partial(report_crash, answers)
    send(answers, json.dumps(peak_memory()).encode())
    while (task := receive(requests, BODY)) is not None:
        about, body = receive(requests, BODY), receive(requests, BODY)
        if about is None or body is None:
            break
        limit_cpu_time(limits)
        send(answers, answer(task.decode(), json.loads(about), body, limits))


def answer(task: str, about: dict[str, Any], body: bytes, limits: Limits) -> bytes:
    """Return what came of a text as JSON: what the task says of it, or why that is nothing."""
    try:
        value = TASKS[task](body, limits, **about)
        text = json.dumps(value, default=str, ensure_ascii=False).encode()
    except Unreadable as error:
        return outcome_without_pages("refused", str(error))
    except RecursionError:
        return outcome_without_pages("refused", "it is nested too deeply")
    except MemoryError:
        return EXHAUSTED
    if len(text) > limits.max_expanded_bytes:
        return outcome_without_pages(
            "refused",
            f"it comes to more than {limits.max_expanded_bytes:,} bytes of text "
            "(PARSE_MAX_EXPANDED_BYTES)",
        )
    return text


def pages(body: bytes, limits: Limits, *, name: str, charset: str) -> dict[str, Any]:
    """Return what a file says."""
    parse = import_module("knowledge.parsing.dispatch").parse
    return {"pages": [asdict(page) for page in parse(name, body, limits, charset=charset)]}


def prepared(
    body: bytes, _: Limits, *, origin: str, folders: list[str], window: int
) -> dict[str, Any]:
    """Return what a page is cut into, and what rules say of it; whoever asks has its text."""
    prepare = import_module("knowledge.preparation").prepare
    done = prepare(Page(**json.loads(body)), origin, folders, window=window)
    return {"prepared": asdict(replace(done, page=replace(done.page, content="")))}


# What may be asked for. The libraries of the one are nothing to who asks for the other.
TASKS: dict[str, Callable[..., dict[str, Any]]] = {"pages": pages, "prepared": prepared}


def outcome_without_pages(outcome: str, value: str) -> bytes:
    """Return an answer without pages."""
    return json.dumps({outcome: value}).encode()


def report_crash(
    answers: BinaryIO, kind: type[BaseException], _: BaseException, __: TracebackType | None
) -> None:
    """Tell what kind of error a parser died of; its message may quote the file."""
    send(
        answers,
        EXHAUSTED if kind is MemoryError else outcome_without_pages("failed", kind.__name__),
    )


def peak_memory() -> int:
    """Return the most bytes that this process has had in memory.

    What its parent had counts as well, from before it was another program: at the start that is
    most of it.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_UNIT


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes of stdin and stdout, which from now on lead nowhere for everybody else."""
    pipes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return pipes


def confine(limits: Limits) -> None:
    """Take from this process what no parser needs."""
    limit_resource(resource.RLIMIT_AS, limits.memory_mb * MEGABYTE)
    limit_resource(resource.RLIMIT_NOFILE, FILES)
    limit_resource(resource.RLIMIT_NPROC, 0)
    limit_resource(resource.RLIMIT_FSIZE, 0)
    limit_resource(resource.RLIMIT_CORE, 0)


def limit_resource(what: int, limit: int) -> None:
    """Set a limit where the system knows it: macOS doesn't limit the address space."""
    with suppress(ValueError, OSError):
        resource.setrlimit(what, (limit, limit))


def limit_cpu_time(limits: Limits) -> None:
    """Allow the processor time of one more file: `limits.seconds` and up to one more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + limits.seconds + 1
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
