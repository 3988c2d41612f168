"""Policy: what a browser may load and run on each kind of page (Content Security Policy Level 3).

No page of ours loads anything from elsewhere or has a script written into it, so there is nothing
that would need a nonce: whatever got into a page from a document or an answer stays text.
"""

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

NO_FRAME = "frame-ancestors 'none'"
OWN = f"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; {NO_FRAME}"
NOTHING = f"default-src 'none'; {NO_FRAME}"
# Styles in attributes, and pictures in style sheets.
STYLED = f"{OWN}; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
# The admin's pages are made by Alpine, which makes functions of what its attributes say; those
# are of unfold's templates, which escape what they show.
EVALUATED = f"{STYLED}; script-src 'self' 'unsafe-eval'"
# By how the path begins; the first that does.
POLICIES = {
    "/admin/": EVALUATED,
    "/api/docs/": STYLED,
    "/static/": OWN,
    "/api/": NOTHING,
    "/v1/": NOTHING,
    "/mcp": NOTHING,
    "/": OWN,
}


class Policy(MiddlewareMixin):
    """Says it with every response."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Add the header, with the sites that may frame the page if a view has named some."""
        found = (policy for path, policy in POLICIES.items() if request.path.startswith(path))
        policy = next(found, OWN)
        if sites := getattr(response, "frame_ancestors", ()):
            policy = policy.replace(NO_FRAME, f"frame-ancestors {' '.join(sites)}")
        response.headers.setdefault("Content-Security-Policy", policy)
        return response
