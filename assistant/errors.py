"""Errors of the wiring: the docstring is the default message. Imports nothing of others."""


class SetupError(Exception):
    """Docent cannot start on this machine as it is. The message says what to change."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())
