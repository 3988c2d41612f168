"""Postgres: Django's own backend, with a cheaper look at the connections it takes from its pool."""
