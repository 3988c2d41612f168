"""Errors of the conversations: the docstring is the default message."""

from collections.abc import Sequence


class ConversationError(Exception):
    """The message could not be taken."""

    code = "invalid"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class UnusableText(ConversationError):
    """The message is empty."""

    code = "unusable_text"


class UnusableFilter(ConversationError):
    """Documents cannot be chosen by that."""


class KeyReused(ConversationError):
    """Another message was sent with this Idempotency-Key."""

    code = "idempotency_key_reused"


class UnusableKey(ConversationError):
    """An Idempotency-Key has 1 to 200 printable ASCII characters."""

    code = "unusable_idempotency_key"


class UnknownMessage(ConversationError):
    """This conversation has no message with that id."""

    code = "unknown_message"


class TurnInProgress(ConversationError):
    """The last message of this conversation is still being answered."""

    code = "turn_in_progress"


class NobodyListens(ConversationError):
    """The assistant is not at work right now. Try again in a moment."""

    code = "no_consumer"
    retry_seconds = 5

    def __init__(self, roles: Sequence[str]) -> None:
        super().__init__()
        # For who runs Docent: users are told nothing of workers.
        self.remedy = (
            f"No worker listens for: {', '.join(roles)}. "
            f"Start one with: python3 manage.py workers {roles[0]}"
        )


class StillTakenIn(ConversationError):
    """The documents are still being taken in, and none is there yet."""

    code = "still_taken_in"
    retry_seconds = 5

    def __init__(self, message: str = "", progress: str = "") -> None:
        super().__init__(message)
        self.progress = progress


class TooManyTurns(ConversationError):
    """Too many questions are being answered."""

    code = "too_many_turns"
    # How soon it makes sense to try again: some turn will have ended by then.
    retry_seconds = 5


class Busy(ConversationError):
    """Too much is asked at once. Try again in a moment."""

    code = "busy"
    retry_seconds = 5


class RefusedHandover(ConversationError):
    """That cannot be done with this conversation now."""

    code = "handover"


class RefusedRetake(ConversationError):
    """Staff have answered since: what was said to them cannot be taken back."""

    code = "retake"


class Forgotten(ConversationError):
    """The conversation was deleted while this message was being answered."""

    code = "forgotten"


class UnknownAssistant(ConversationError):
    """There is no assistant of that name here."""

    code = "unknown_assistant"


class OtherAssistant(ConversationError):
    """This conversation began with another assistant, or with none: begin a new one."""

    code = "other_assistant"


class OtherDocuments(ConversationError):
    """This conversation is about documents that your key does not reach: begin a new one."""

    code = "other_documents"


class OtherUser(ConversationError):
    """This conversation began for another user_id, or for none: begin a new one."""

    code = "other_user"


class ForeignCollection(ConversationError):
    """There is no such collection here."""

    code = "unknown_collection"


class NothingToRead(ConversationError):
    """The documents of this assistant are not there yet."""

    code = "nothing_to_read"


class UnknownModel(ConversationError):
    """There is no such model here."""

    code = "model_not_found"


class EmbeddingAway(ConversationError):
    """The embedding model does not answer. Try again in a moment."""

    code = "unavailable"


class UnknownDocument(ConversationError):
    """There is no such document here."""

    code = "unknown_document"


class KeyIsOver(ConversationError):
    """This key was revoked, or has expired."""

    code = "authentication_failed"


class ServerAway(ConversationError):
    """PostgreSQL or Redis does not answer. Try again in a moment."""

    code = "unavailable"
