"""URLs of the agents, below `/api/admin/`."""

from django.urls import path

from agents.api import ContractsView, UsageView

urlpatterns = [
    path("usage/", UsageView.as_view(), name="usage"),
    path("contracts/", ContractsView.as_view(), name="contracts"),
]
