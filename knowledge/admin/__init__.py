"""Admin of the knowledge: what is in it, how it came in, and what search makes of it."""

from knowledge.admin.collection_admin import CollectionAdmin, GoldenQuestionAdmin, ReceiptAdmin
from knowledge.admin.document_admin import DocumentAdmin, IngestAdmin
from knowledge.admin.graph_admin import EntityAdmin, RelationAdmin

__all__ = [
    "CollectionAdmin",
    "DocumentAdmin",
    "EntityAdmin",
    "GoldenQuestionAdmin",
    "IngestAdmin",
    "ReceiptAdmin",
    "RelationAdmin",
]
