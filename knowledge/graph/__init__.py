"""Graph: entities and relations that documents state, with the time they hold.

There is one where KNOWLEDGE_GRAPH says so and a model draws it; without, every part of this does
nothing and costs nothing. A document's statements are written with its chunks and go with them.
"""

from knowledge.graph.searching import Found, graph_search
from knowledge.graph.stating import Graph, Named, Stated, draw, register
from knowledge.graph.writing import prune, touched, write

__all__ = [
    "Found",
    "Graph",
    "Named",
    "Stated",
    "draw",
    "graph_search",
    "prune",
    "register",
    "touched",
    "write",
]
