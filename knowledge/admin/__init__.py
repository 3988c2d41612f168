"""Admin of the knowledge: what is in it, how it came in, and what search makes of it."""

from knowledge.admin.collections import CollectionAdmin, GoldenQuestionAdmin
from knowledge.admin.documents import DocumentAdmin
from knowledge.admin.graph import EntityAdmin, RelationAdmin
from knowledge.admin.ingests import IngestAdmin
from knowledge.admin.receipts import ReceiptAdmin

__all__ = [
    "CollectionAdmin",
    "DocumentAdmin",
    "EntityAdmin",
    "GoldenQuestionAdmin",
    "IngestAdmin",
    "ReceiptAdmin",
    "RelationAdmin",
]
