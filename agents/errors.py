"""Errors of the agents: the docstring is the default message."""


class AgentError(Exception):
    """An agent could not do its work."""

    permanent = False  # Whether trying again cannot help.

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class ContractError(AgentError):
    """An agent broke its contract."""

    permanent = True


class UndeclaredRead(ContractError, AttributeError):
    """An agent read an attribute that its view does not declare."""
