"""Risk verifier: finds risks, and says how grave and how likely they are."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.RISK_VERIFIER)
