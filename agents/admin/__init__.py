"""Admin of the agents: turns, faults, and what language models were asked and may cost."""

from agents.admin import calls, prices, turns

__all__ = ["calls", "prices", "turns"]
