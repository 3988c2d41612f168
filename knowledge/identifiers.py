"""Names: scopes of keys, the queue of ingests, and the embedding models of this machine."""

from enum import StrEnum


class Scope(StrEnum):
    """What a key may be allowed over HTTP: one of them does not include another."""

    CHAT = "chat"  # ask, search, and read what was said with keys of the same owner
    DOCUMENTS = "documents"  # take documents in, read and delete them
    ADMIN = "admin"  # see queues and usage; with `chat`, also what everybody said


INGEST_QUEUE = "knowledge.ingest"

# The embedding model of this machine. Written out here because web processes load the models of
# the database and must not import the embedding runtime. A test compares both.
LOCAL_MODEL = "all-MiniLM-L6-v2"
LOCAL_DIMENSIONS = 384
# The second one, for questions in another language than the documents; as long.
MULTILINGUAL_MODEL = "multilingual-e5-small"
OWN_MODELS = frozenset({LOCAL_MODEL, MULTILINGUAL_MODEL})
