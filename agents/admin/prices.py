"""Prices and budgets: what models cost here, and what may be spent on them."""

from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from unfold.admin import ModelAdmin

from agents.models import Budget, Price
from knowledge.providers import allowed, parts

LEAST = Decimal(0)


class PriceForm(forms.ModelForm):
    """A model that Docent could ask, and prices that are none below zero."""

    class Meta:
        model = Price
        fields = ("model", "input_per_million", "output_per_million")

    def clean_model(self) -> str:
        """Return the name as calls are stored under it: model@provider."""
        name, provider = parts(self.cleaned_data["model"])
        if not name or provider not in settings.PROVIDERS:
            raise forms.ValidationError(
                f"Write model@provider, with one of these providers: {allowed()}."
            )
        return f"{name}@{provider}"

    def clean(self) -> dict[str, Any]:
        """Refuse prices below zero."""
        return _not_negative(self, super().clean(), "input_per_million", "output_per_million")


class BudgetForm(forms.ModelForm):
    """A user whose keys may spend this much in a day."""

    class Meta:
        model = Budget
        fields = ("owner", "usd_per_day")

    def clean(self) -> dict[str, Any]:
        """Refuse a budget below zero."""
        return _not_negative(self, super().clean(), "usd_per_day")


def _not_negative(
    form: forms.ModelForm, cleaned: dict[str, Any] | None, *names: str
) -> dict[str, Any]:
    given = cleaned or {}
    for name in names:
        if given.get(name) is not None and given[name] < LEAST:
            form.add_error(name, "This must be 0 or more.")
    return given


@admin.register(Price)
class PriceAdmin(ModelAdmin):
    """Prices that hold here, in place of the published ones; calls made before keep theirs."""

    form = PriceForm
    list_display = ("model", "input_per_million", "output_per_million")
    search_fields = ("model",)


@admin.register(Budget)
class BudgetAdmin(ModelAdmin):
    """Budgets of single users, for all their keys; everybody else has DAILY_BUDGET_PER_KEY."""

    form = BudgetForm
    list_display = ("owner", "usd_per_day")
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
