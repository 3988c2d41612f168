"""Page: the queues in admin."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from agents.watching.overview import overview
from agents.watching.queues import UNHEARD_AFTER


def page(request: HttpRequest) -> HttpResponse:
    """Show every queue as it is now, to who may look at turns."""
    if not request.user.has_perm("agents.view_envelope"):
        raise PermissionDenied
    context = admin.site.each_context(request) | {
        "title": "Queues",
        "overview": overview(),
        "long": int(UNHEARD_AFTER),
    }
    return TemplateResponse(request, "agents/queues.html", context)
