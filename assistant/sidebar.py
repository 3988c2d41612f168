"""Sidebar: every page of the admin in its place, by task; a person sees those they may open.

Unfold asks `navigation` for it with every page. To add a page, add a line to SECTIONS.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from conversations.inbox import waiting_count

DOCUMENT, CALL = "admin:knowledge_document", "admin:agents_modelcall"


@dataclass(frozen=True)
class Place:
    """One line: where it leads, and the permission without which it is not shown.

    `icon` is a name of Material Symbols. Who may change rows may look at them, too. `count` is
    how much there waits for somebody.
    """

    title: str
    icon: str
    page: str  # the name of an URL
    permission: str = ""  # empty: all staff
    count: Callable[[], int] | None = None

    def is_open_to(self, user: Any) -> bool:
        """Whether the user may open it."""
        names = {self.permission, self.permission.replace(".view_", ".change_")}
        return not self.permission or any(user.has_perm(name) for name in names)


def rows(title: str, icon: str, model: str, count: Callable[[], int] | None = None) -> Place:
    """Return the place of the list of a model, given as `app.model`."""
    app, name = model.split(".")
    return Place(title, icon, f"admin:{app}_{name}_changelist", f"{app}.view_{name}", count)


SECTIONS: dict[str, tuple[Place, ...]] = {
    "": (
        Place("Home", "home", "admin:index"),
        Place("Ask a question", "chat", "start"),
    ),
    "Content": (
        rows("Documents", "description", "knowledge.document"),
        Place("Add documents", "upload_file", f"{DOCUMENT}_add", "knowledge.add_document"),
        rows("Collections", "folder_open", "knowledge.collection"),
        rows("Sources", "sync", "knowledge.source"),
        rows("Ingests", "downloading", "knowledge.ingest"),
        rows("Entities", "hub", "knowledge.entity"),
        rows("Relations", "arrow_split", "knowledge.relation"),
        rows("Receipts of deletions", "receipt_long", "knowledge.receipt"),
    ),
    "Conversations": (
        rows("Inbox", "inbox", "conversations.handover", waiting_count),
        rows("Conversations", "forum", "conversations.conversation"),
        rows("Assistants", "support_agent", "conversations.assistant"),
        rows("Refund cases", "currency_exchange", "billing.refundcase"),
        rows("Customers", "groups", "billing.customer"),
        rows("Plans", "sell", "billing.plan"),
        rows("Subscriptions", "event_repeat", "billing.subscription"),
        rows("Invoices", "request_quote", "billing.invoice"),
    ),
    "Quality": (
        rows("Unanswered", "help", "conversations.gap"),
        rows("Feedback", "thumbs_up_down", "conversations.feedback"),
        Place("Try a search", "search", f"{DOCUMENT}_search", "knowledge.view_document"),
        rows("Golden questions", "star", "knowledge.goldenquestion"),
        rows("Turns", "conversion_path", "agents.envelope"),
        rows("Analysis reports", "fact_check", "agents.report"),
    ),
    "Operations": (
        Place("Queues", "stacks", "admin-queues", "agents.view_envelope"),
        Place("Usage and cost", "payments", f"{CALL}_usage", "agents.view_modelcall"),
        Place("Connect a model", "electrical_services", "admin-models", "agents.connect_model"),
        rows("Model calls", "neurology", "agents.modelcall"),
        rows("Tool calls", "build", "agents.toolrun"),
        rows("Faults", "error", "agents.fault"),
        rows("Prices", "price_change", "agents.price"),
        rows("Budgets", "savings", "agents.budget"),
    ),
    "Access": (
        rows("Keys", "key", "conversations.key"),
        rows("People", "person", "auth.user"),
        rows("Groups", "group", "auth.group"),
        Place("Who may what", "table_view", "admin:auth_group_rights", "auth.view_group"),
    ),
}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sections with the places that are open to who asks, as Unfold reads them."""
    here, sections = page_shown(request)["place"], open_places(request)
    return [
        {
            "title": title,
            "items": [
                {
                    "title": place.title,
                    "icon": place.icon,
                    "link": reverse(place.page),
                    "active": place == here,
                    "count": place.count() if place.count else 0,
                }
                for place in places
            ],
        }
        for title, places in sections.items()
    ]


def open_places(request: HttpRequest) -> dict[str, list[Place]]:
    """Return the sections with the places that are open to who asks; empty ones are left out."""
    found = {
        title: [place for place in places if place.is_open_to(request.user)]
        for title, places in SECTIONS.items()
    }
    return {title: places for title, places in found.items() if places}


def page_shown(request: HttpRequest) -> dict[str, Any]:
    """Return the `place` that the page of a request belongs to, and whether it `is_place` itself.

    It is the longest whose address the request's begins with: below the list of documents lies the
    page that adds some. Every page of the admin is given both.
    """
    links = {
        reverse(place.page): place for found in open_places(request).values() for place in found
    }
    roots = {reverse("start"), reverse("admin:index")}
    within = [link for link in links if request.path.startswith(link) and link not in roots]
    longest = max(within, key=len, default=request.path)
    return {
        "place": links.get(longest),
        "place_link": longest,
        "is_place": longest == request.path and longest in links,
    }
