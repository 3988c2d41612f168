"""Names: the queue on which documents are ingested."""

INGEST_QUEUE = "knowledge.ingest"
