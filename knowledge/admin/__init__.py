"""Admin of the knowledge: what is in it, how it came in, and what search makes of it."""

from knowledge.admin.collection_admin import CollectionAdmin, ReceiptAdmin
from knowledge.admin.document_admin import DocumentAdmin, IngestAdmin
from knowledge.admin.golden_admin import GoldenQuestionAdmin
from knowledge.admin.graph_admin import EntityAdmin, RelationAdmin
from knowledge.admin.source_admin import SourceAdmin

__all__ = [
    "CollectionAdmin",
    "DocumentAdmin",
    "EntityAdmin",
    "GoldenQuestionAdmin",
    "IngestAdmin",
    "ReceiptAdmin",
    "RelationAdmin",
    "SourceAdmin",
]
