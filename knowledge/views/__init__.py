"""Views: the documents, their ingestion and their search, for staff."""
