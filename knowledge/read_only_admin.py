"""Read-only admin: for rows that may be read, and shown on a page of their own making."""

import json
from typing import Any, ClassVar

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin


class RecordAdmin(ModelAdmin):
    """Rows that only the program writes: nobody adds, changes or deletes one here.

    `record_template` shows one row from what `record` returns.
    """

    record_template: ClassVar[str]
    change_form_template = "knowledge/record.html"
    actions_on_top = True
    list_per_page = 50
    # Counting twice what a filtered list holds costs a scan of the table.
    show_full_result_count = False

    def record(self, row: Any) -> dict[str, Any]:
        """Return what the template of one row is given."""
        return {"row": row}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one row."""
        row = self.get_object(request, object_id)
        context: dict[str, Any] = {"record_template": self.record_template}
        if row is not None and self.has_view_permission(request, row):
            context |= {"record": self.record(row), "title": str(row), "subtitle": None}
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """No fields: the template shows them."""
        return []

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False


def pretty(value: Any) -> str:
    """Return a JSON value as indented text, in the letters it was written in."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
