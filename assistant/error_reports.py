"""Error reports: what is logged as an error is told to Sentry, without what anybody wrote."""

import logging
from typing import Any

import sentry_sdk
from django.conf import settings
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.utils import event_from_exception

from agents.trace import correlation
from assistant.logs import process_name

# Seconds that the end of a process waits for reports on their way.
PATIENCE = 1


def start() -> None:
    """Report from now on, to SENTRY_DSN; a thread sends, and drops what is more than 100."""
    sentry_sdk.init(
        settings.SENTRY_DSN,
        # Of all it could watch, only what is logged: requests hold questions and keys.
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[LoggingIntegration(level=None, event_level=logging.ERROR)],
        before_send=discreet,
        max_breadcrumbs=0,
        data_collection={
            "user_info": False,
            "http_bodies": [],
            "stack_frame_variables": False,
            "database_query_data": False,
        },
        shutdown_timeout=PATIENCE,
    )


def discreet(event: Any, hint: dict[str, Any]) -> Any:
    """Take from an event what may quote somebody, and say what it belongs to.

    Of an exception its type and where it was raised are left; its message is kept in the admin,
    under the error id.
    """
    record = hint.get("log_record")
    error_id = getattr(record, "error_id", "")
    if (fault := getattr(record, "fault", None)) is not None:
        options = sentry_sdk.get_client().options
        event["exception"] = event_from_exception(fault, options)[0]["exception"]
    for error in (event.get("exception") or {}).get("values", ()):
        error["value"] = error_id and f"{error_id}, see Faults in the admin"
    if entry := event.get("logentry"):
        event["logentry"] = {"message": entry.get("message", "")}
    event.pop("extra", None)
    names = {name: str(value) for name, value in correlation.current().items()}
    event["tags"] = (
        names | {"process": process_name()} | ({"error_id": error_id} if error_id else {})
    )
    return event
