"""Models: how agents ask language models, and what every call came to."""
