"""Evaluation: how well documents are read and passages are found, in figures."""
