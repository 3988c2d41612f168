"""Bench: speed figures of the agents, each as a ratio to something in the same run."""
