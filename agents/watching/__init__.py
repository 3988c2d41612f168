"""Watching: what the queues, their workers and the turns under way look like right now."""
