"""Receipts of what was deleted, to be read."""

from typing import Any

from django.contrib import admin
from unfold.decorators import display

from knowledge.models import Receipt
from knowledge.records import RecordAdmin


@admin.register(Receipt)
class ReceiptAdmin(RecordAdmin):
    """Receipts: they stay."""

    record_template = "knowledge/receipt.html"
    list_display = ("created", "collection", "documents", "by", "reason", "answers")
    list_filter = ("collection", "created")
    search_fields = ("id", "collection", "by", "reason", "documents")
    search_help_text = "Collection, who asked for it, or title or source of a document"

    def record(self, row: Any) -> dict[str, Any]:
        """Return the receipt with its kinds of rows in words."""
        removed = [(kind.replace("_", " "), count) for kind, count in row.removed.items()]
        return {"row": row, "removed": removed}

    @display(description="Documents")
    def documents(self, receipt: Receipt) -> int:
        """Number of documents."""
        return len(receipt.documents)

    @display(description="Answers that relied on them")
    def answers(self, receipt: Receipt) -> int:
        """Number of answers that had cited one of them."""
        return len(receipt.answers)
