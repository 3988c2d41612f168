"""Logs: where lines go, and which are not worth one."""

import logging
from typing import Any


def to_stderr(level: int) -> dict[str, Any]:
    """Return Django's LOGGING for lines of at least this level."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
        },
        "filters": {
            # Being unready is an answer, not an error of ours.
            "answered": {
                "()": "django.utils.log.CallbackFilter",
                "callback": lambda record: getattr(record, "status_code", None) != 503,
            }
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["answered"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        # It repeats every failed attempt; who asked for the connection is told of the last.
        "loggers": {"psycopg.pool": {"level": max(level, logging.ERROR)}},
    }
