"""Citation auditor: checks citations and references in documents."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.CITATION_AUDITOR)
