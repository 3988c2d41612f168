"""Ingestion: files, pages and uploads into documents, by jobs that survive their workers."""

from knowledge.ingestion.files import Findings, find
from knowledge.ingestion.jobs import JobError, cancel, retry, waiting
from knowledge.ingestion.pipeline import Watch
from knowledge.ingestion.planning import plan, reingest
from knowledge.ingestion.removal import delete
from knowledge.ingestion.report import Problem, Progress, Report, progress
from knowledge.ingestion.running import ingest, run

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
