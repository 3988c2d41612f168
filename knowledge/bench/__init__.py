"""Bench: speed figures of ingestion and search, each beside something else in the same run."""
