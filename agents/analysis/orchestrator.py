"""Orchestrator: plans an analysis, and writes the answer from what the specialists gave."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.ORCHESTRATOR)
