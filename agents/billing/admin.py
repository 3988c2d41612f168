"""Admin of billing: what customers have, and refund cases, which staff decide and comment on."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from agents.billing import refunds
from agents.billing.models import (
    CaseEvent,
    Customer,
    Invoice,
    Plan,
    RefundCase,
    Subscription,
    case_key,
)
from agents.billing.system import RefusedRefund

COLOURS: dict[str, str] = {
    RefundCase.Status.OPENED: "info",
    RefundCase.Status.APPROVED: "success",
    RefundCase.Status.REJECTED: "danger",
}
OF_CASE = (
    "number",
    "status",
    "invoice",
    "customer",
    "amount",
    "currency",
    "reason",
    "description",
    "opened",
    "due",
)
COMMENT, TELL, APPROVE, REJECT = "comment", "tell", "approve", "reject"
ACTIONS = {
    COMMENT: "Comment",
    TELL: "Tell the customer",
    APPROVE: "Approve",
    REJECT: "Reject",
}


@admin.register(Customer)
class CustomerAdmin(ModelAdmin):
    """Customers."""

    list_display = ("user_id", "name")
    search_fields = ("user_id", "name")


@admin.register(Plan)
class PlanAdmin(ModelAdmin):
    """Plans. The currency of one that somebody has stays: invoices are in it."""

    list_display = ("code", "name", "price", "currency", "country")
    search_fields = ("code", "name")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the currency of a plan that somebody has."""
        return ("currency",) if obj and obj.subscriptions.exists() else ()


@admin.register(Subscription)
class SubscriptionAdmin(ModelAdmin):
    """Subscriptions. That of an invoice stays with its customer and its plan."""

    list_display = ("customer", "plan", "status", "started")
    list_filter = ("status", "plan")
    list_select_related = ("customer", "plan")
    search_fields = ("customer__user_id", "customer__name")
    autocomplete_fields = ("customer", "plan")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return what invoices rely on."""
        return ("customer", "plan") if obj and obj.invoices.exists() else ()


@admin.register(Invoice)
class InvoiceAdmin(ModelAdmin):
    """Invoices. What a refund case relies on is not changed any more."""

    list_display = ("number", "subscription", "amount", "issued")
    list_select_related = ("subscription__customer", "subscription__plan")
    search_fields = ("number", "subscription__customer__user_id")
    date_hierarchy = "issued"
    autocomplete_fields = ("subscription",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return what a case relies on."""
        return ("number", "subscription", "amount") if obj and obj.cases.exists() else ()


class DecisionForm(forms.ModelForm):
    """What staff do with a case: comment on it, tell the customer, approve or reject it."""

    action = forms.ChoiceField(
        choices=list(ACTIONS.items()),
        widget=UnfoldAdminSelectWidget,
    )
    comment = forms.CharField(
        required=False,
        max_length=2000,
        widget=UnfoldAdminTextareaWidget,
        help_text="The customer is told it with a decision; a comment alone is for staff.",
    )

    class Meta:
        model = RefundCase
        fields: tuple[str, ...] = ()

    def clean(self) -> dict[str, Any]:
        """Refuse a decision that is made already, and a rejection or a comment without words."""
        values = super().clean() or {}
        action = values.get("action")
        if action != APPROVE and not values.get("comment", "").strip():
            self.add_error("comment", "Write what is to be said.")
        if action in {APPROVE, REJECT} and self.instance.status != RefundCase.Status.OPENED:
            self.add_error("action", f"{self.instance} is {self.instance.status} already.")
        return values


class CaseEventInline(TabularInline):
    """What happened to a case, from its beginning."""

    model = CaseEvent
    verbose_name_plural = "History"
    fields = readonly_fields = ("at", "kind", "by", "comment")
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody: history is written by what happens."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False


@admin.register(RefundCase)
class RefundCaseAdmin(ModelAdmin):
    """Refund cases: approve, reject, comment, tell. Nothing else of them can be changed."""

    form = DecisionForm
    inlines = (CaseEventInline,)
    readonly_fields = OF_CASE
    fieldsets = ((None, {"fields": OF_CASE}), ("Decide", {"fields": ("action", "comment")}))
    list_display = ("number", "customer", "invoice", "sum", "reason", "state", "due", "late")
    list_filter = ("status", "reason", "due")
    list_select_related = ("invoice__subscription__customer",)
    search_fields = ("=id", "invoice__number", "invoice__subscription__customer__user_id")
    search_help_text = "Number, invoice or user id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find R10001 by its key."""
        key = case_key(search_term)
        return super().get_search_results(request, queryset, str(key) if key else search_term)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave out what there is to decide for who may only look."""
        may = self.has_change_permission(request, obj)
        return self.fieldsets if may else self.fieldsets[:1]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Do what was chosen; say so where somebody else was quicker."""
        action, comment = form.cleaned_data["action"], form.cleaned_data["comment"]
        try:
            if action in {COMMENT, TELL}:
                tell = action == TELL
                refunds.comment_on(obj.pk, by=request.user, comment=comment, tell=tell)
            else:
                refunds.decide(obj.pk, approve=action == APPROVE, by=request.user, comment=comment)
        except RefusedRefund as refusal:
            self.message_user(request, str(refusal), messages.ERROR)

    def construct_change_message(self, request: HttpRequest, form: Any, *args: Any) -> Any:
        """Note the action in the log of the admin."""
        return form.cleaned_data["action"]

    @display(description="Number", ordering="pk")
    def number(self, case: RefundCase) -> str:
        """R and the key."""
        return case.number

    @display(description="Customer")
    def customer(self, case: RefundCase) -> str:
        """Whose invoice it is."""
        return str(case.invoice.subscription.customer)

    @display(description="Amount", ordering="amount")
    def sum(self, case: RefundCase) -> str:
        """With its currency."""
        return f"{case.amount} {case.currency}"

    @display(description="Status", ordering="status", label=COLOURS)
    def state(self, case: RefundCase) -> tuple[str, str]:
        """What became of it."""
        return case.status, case.get_status_display()

    @display(description="Late", boolean=True)
    def late(self, case: RefundCase) -> bool:
        """Whether it should have been decided by now."""
        return case.is_late

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: cases are opened by who wants money back."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody."""
        return False
