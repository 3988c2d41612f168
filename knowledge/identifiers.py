"""Names: the queue on which documents are ingested, and the embedding models of this machine."""

INGEST_QUEUE = "knowledge.ingest"

# The embedding model of this machine. Written out here because web processes load the models of
# the database and must not import the embedding runtime. A test compares both.
LOCAL_MODEL = "all-MiniLM-L6-v2"
LOCAL_DIMENSIONS = 384
# The second one, for questions in another language than the documents; as long.
MULTILINGUAL_MODEL = "multilingual-e5-small"
OWN_MODELS = frozenset({LOCAL_MODEL, MULTILINGUAL_MODEL})
