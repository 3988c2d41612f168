"""Choices: which model a role asks, and within which bounds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """The model settings of one role. No model: the role works without one."""

    model: str = ""  # "model@provider"
    second: str = ""  # asked when the first cannot answer
    max_tokens: int = 1000  # of a reply
    temperature: float = 0.0
    timeout: float = 30.0  # seconds for one call, its retries not counted

    def models(self) -> list[str]:
        """The models to ask, in order."""
        return [name for name in (self.model, self.second) if name]
