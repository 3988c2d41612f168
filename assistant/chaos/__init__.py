"""Chaos: a running Docent under load while its parts are killed, and what came of the turns."""
