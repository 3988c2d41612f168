"""Models of the agents: turns with their steps, and the calls of language models."""

from agents.models.calls import Budget, ModelCall, Price
from agents.models.turns import Envelope, Fault, Step

__all__ = ["Budget", "Envelope", "Fault", "ModelCall", "Price", "Step"]
