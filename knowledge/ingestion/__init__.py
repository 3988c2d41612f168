"""Ingestion: files, pages and uploads into documents, by jobs that survive their workers."""

from knowledge.ingestion.completion import ingest, run
from knowledge.ingestion.jobs import JobError, cancel, retry, waiting
from knowledge.ingestion.pipeline import Watch
from knowledge.ingestion.plan import plan, reingest
from knowledge.ingestion.removal import delete
from knowledge.ingestion.report import Problem, Progress, Report, progress
from knowledge.ingestion.sources import Findings, find

__all__ = [
    "Findings",
    "JobError",
    "Problem",
    "Progress",
    "Report",
    "Watch",
    "cancel",
    "delete",
    "find",
    "ingest",
    "plan",
    "progress",
    "reingest",
    "retry",
    "run",
    "waiting",
]
