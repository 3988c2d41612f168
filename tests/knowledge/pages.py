"""Pages: the admin's, by their addresses, and what they show."""

from http import HTTPStatus
from typing import Any

from django.test import Client
from django.urls import reverse

# What must never come out of a page as it went in.
SCRIPT = "<script>alert(1)</script>"
SEARCH = "/admin/knowledge/document/search/"


def address(row: Any, page: str = "change") -> str:
    """The address of the row's page."""
    return reverse(f"admin:knowledge_{row._meta.model_name}_{page}", args=[row.pk])


def shown(client: Client, path: str, **query: str) -> str:
    """The HTML of a page that the client may see."""
    response = client.get(path, query)
    assert response.status_code == HTTPStatus.OK
    return response.content.decode()
