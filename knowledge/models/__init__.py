"""Models of the knowledge app: what was taken in, how it is found, and how it came and went.

Where a foreign key has no index of its own, a unique key begins with it and is its index.
"""

from knowledge.models.collections import (
    COLLECTION_NAME,
    Calibration,
    Collection,
    GoldenQuestion,
    Revision,
)
from knowledge.models.documents import Chunk, Copy, Document, Section, Version, document_id
from knowledge.models.graph import Entity, EntityName, Relation
from knowledge.models.ingests import Encoded, Ingest, Item
from knowledge.models.postings import Census, CommonTerm, Posting
from knowledge.models.traces import Receipt, Reliance
from knowledge.models.vectors import (
    ChunkVector,
    DocumentVector,
    SectionVector,
    Vector,
)

__all__ = [
    "COLLECTION_NAME",
    "Calibration",
    "Census",
    "Chunk",
    "ChunkVector",
    "Collection",
    "CommonTerm",
    "Copy",
    "Document",
    "DocumentVector",
    "Encoded",
    "Entity",
    "EntityName",
    "GoldenQuestion",
    "Ingest",
    "Item",
    "Posting",
    "Receipt",
    "Relation",
    "Reliance",
    "Revision",
    "Section",
    "SectionVector",
    "Vector",
    "Version",
    "document_id",
]
