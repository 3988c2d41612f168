"""Extractor: finds in the documents what a question needs."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.EXTRACTOR)
