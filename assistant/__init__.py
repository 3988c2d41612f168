"""Assistant: the wiring of Docent. Imported before anything is installed, so it imports nothing."""

__version__ = "0.1.0"
