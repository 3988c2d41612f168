"""Jobs: plan one, do it, and look at what became of its items."""

from typing import Any

from knowledge import ingestion
from knowledge.ingestion import Report
from knowledge.models import Ingest

FOG = b"---\ntitle: Fog\n---\nThe foghorn sounds twice."


def upload(body: bytes = FOG, name: str = "fog.md", **more: Any) -> Ingest:
    """A job that takes in one file."""
    return ingestion.plan("island", uploads=[(name, body)], **more)


def ran(job: Ingest) -> Report:
    """What the job reports, which a worker did to its end."""
    outcome = ingestion.run(job.pk)
    assert outcome is not None
    job.refresh_from_db()
    return outcome


def states(job: Ingest) -> dict[str, str]:
    """What became of each item, by its origin."""
    return dict(job.items.values_list("origin", "status"))
