"""Models of the knowledge app: what was taken in, how it is found, and how it came and went.

Where a foreign key has no index of its own, a unique key begins with it and is its index.
"""

from knowledge.models.documents import (
    COLLECTION_NAME,
    Calibration,
    Chunk,
    Collection,
    Copy,
    Document,
    GoldenQuestion,
    Receipt,
    Reliance,
    Revision,
    Section,
    Version,
    document_id,
)
from knowledge.models.followed_sources import FetchedPage, Source
from knowledge.models.ingest_jobs import Encoded, Ingest, Item, Piece
from knowledge.models.search_tables import (
    Census,
    ChunkVector,
    CommonTerm,
    DocumentVector,
    Entity,
    EntityName,
    Posting,
    Relation,
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
    "FetchedPage",
    "GoldenQuestion",
    "Ingest",
    "Item",
    "Piece",
    "Posting",
    "Receipt",
    "Relation",
    "Reliance",
    "Revision",
    "Section",
    "SectionVector",
    "Source",
    "Vector",
    "Version",
    "document_id",
]
