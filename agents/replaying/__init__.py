"""Replaying: a stored turn run once more beside the old one, which stays as it is."""
