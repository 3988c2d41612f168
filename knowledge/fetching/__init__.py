"""Fetching: pages and sitemaps from the web, and from nowhere inside the network."""

from knowledge.fetching.pages import Fetched, fetch
from knowledge.fetching.sitemaps import pages_of

__all__ = ["Fetched", "fetch", "pages_of"]
