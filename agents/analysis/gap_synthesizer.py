"""Gap synthesizer: finds what is missing, contradictory or outdated."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.GAP_SYNTHESIZER)
