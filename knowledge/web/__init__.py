"""Web: pages and sitemaps from the web, and from nowhere inside the network."""

from knowledge.web.fetch import Fetched, fetch
from knowledge.web.sitemap import pages_of

__all__ = ["Fetched", "fetch", "pages_of"]
