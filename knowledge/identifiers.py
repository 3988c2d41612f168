"""Names: the queue on which documents are ingested, and the embedding model of this machine."""

INGEST_QUEUE = "knowledge.ingest"

# The embedding model of this machine. Written out here because web processes load the models of
# the database and must not import the embedding runtime. A test compares both.
LOCAL_MODEL = "all-MiniLM-L6-v2"
LOCAL_DIMENSIONS = 384
