"""Logs: where lines go, in which form, what stands on each, and which are not worth one."""

import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from logging import LogRecord
from types import TracebackType
from typing import Any

from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from agents.trace import correlation

log = logging.getLogger(__name__)

FORMATS = ("line", "json")
# In the environment of what `up` and `workers` start: under which name they show it.
PROCESS = "DOCENT_PROCESS"
ACCESS = "uvicorn.access"
# Version 00; ids of zeros alone are none.
TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

# The address of a frame, up to what is as good as its session.
FRAME = re.compile(r"(/widget/[^/]+/[^/]+/)[^/]+")


def error_of(record: LogRecord) -> BaseException | None:
    """Return what was raised that a line tells of: with it, or kept as a fault."""
    return getattr(record, "fault", None) or (record.exc_info[1] if record.exc_info else None)


def process_name() -> str:
    """Return what `up` and `workers` call this process; else the command it runs."""
    words = sys.argv[1:3] if sys.argv[1:2] == ["workers"] else sys.argv[1:2]
    return os.environ.get(PROCESS) or " ".join(words)


class Json(logging.Formatter):
    """One JSON object on a line, for whatever collects logs."""

    def format(self, record: LogRecord) -> str:
        """Return the record as JSON.

        `time` (ISO 8601, UTC), `level`, `logger`, `message`, `process` and `pid`; what is worked
        on, by the names in `agents.trace.correlation`; `error_id` of a fault; `exception` as
        {type, message, traceback}.
        """
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": process_name(),
            "pid": record.process,
            **correlation.current(),
        }
        if hasattr(record, "error_id"):
            line["error_id"] = record.error_id
        if error := error_of(record):
            line["exception"] = self._exception(error)
        return json.dumps(line, default=str)

    def _exception(self, error: BaseException) -> dict[str, str]:
        traceback = self.formatException((type(error), error, error.__traceback__))
        return {"type": type(error).__name__, "message": str(error), "traceback": traceback}


class Correlated(MiddlewareMixin):
    """Notes the turn that an address names, and the span of who asks.

    A turn that a request begins is noted where it begins.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Note the span, as W3C's Trace Context has it."""
        if TRACEPARENT.fullmatch(span := request.headers.get("traceparent", "")):
            correlation.note(traceparent=span)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, names: dict[str, Any]
    ) -> None:
        """Note it, for every line until the answer is sent."""
        if turn := names.get("turn_id"):
            correlation.note(turn=turn)


def to_stderr(level: int, form: str = "line") -> dict[str, Any]:
    """Return Django's LOGGING for lines of at least this level, in one of FORMATS."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
            "json": {"()": Json},
        },
        "filters": {
            # Being unready is an answer, not an error of ours.
            "answered": {
                "()": "django.utils.log.CallbackFilter",
                "callback": lambda record: getattr(record, "status_code", None) != 503,
            },
            "discreet": {"()": "django.utils.log.CallbackFilter", "callback": without_query},
            "brief": {"()": "django.utils.log.CallbackFilter", "callback": without_traceback},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": form,
                "filters": ["answered", "discreet", "brief"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        # It repeats every failed attempt; who asked for the connection is told of the last.
        "loggers": {"psycopg.pool": {"level": max(level, logging.ERROR)}},
    }


def without_query(record: LogRecord) -> bool:
    """Take from a line about a request what stands behind the question mark: what was asked.

    The token of a frame, which stands in its address, goes as well.
    """
    if record.name == ACCESS and isinstance(record.args, tuple) and len(record.args) == 5:
        client, method, path, *rest = record.args
        record.args = (client, method, str(path).partition("?")[0], *rest)
    if isinstance(record.args, tuple):
        record.args = tuple(
            FRAME.sub(r"\1…", each) if isinstance(each, str) else each for each in record.args
        )
    return True


def without_traceback(record: LogRecord) -> bool:
    """Leave of a request that was refused the line that says so: nothing broke."""
    status = getattr(record, "status_code", None)
    if status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR:
        record.exc_info = None
    return True


def log_uncaught() -> None:
    """Have warnings, and errors that nobody catches, logged as everything else is."""
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda told: _uncaught(
        told.exc_type, told.exc_value or told.exc_type(), told.exc_traceback
    )


def _uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if not issubclass(kind, KeyboardInterrupt | SystemExit):
        log.critical("nobody caught this", exc_info=(kind, error, traceback))
