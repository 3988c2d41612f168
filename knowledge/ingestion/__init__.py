"""Ingestion: files into documents, chunks and vectors; what did not change is left alone."""

from knowledge.ingestion.files import Findings, find
from knowledge.ingestion.pipeline import Watch, ingest
from knowledge.ingestion.report import Problem, Report
from knowledge.ingestion.uploads import run, waiting

__all__ = ["Findings", "Problem", "Report", "Watch", "find", "ingest", "run", "waiting"]
