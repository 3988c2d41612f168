"""Requirement extractor: makes a checklist of what a law, policy or contract requires."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.REQUIREMENT_EXTRACTOR)
