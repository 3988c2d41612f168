"""Compliance: judges for each requirement whether the documents meet it."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.COMPLIANCE)
