"""Followed sources: Git repositories and sitemaps that are read again on a schedule."""

import uuid
from datetime import timedelta

from django.core.validators import MinValueValidator
from django.db import models
from django.utils.timezone import now

from knowledge.models.documents import Collection

DAILY, SHORTEST = timedelta(days=1), timedelta(minutes=5)


class Source(models.Model):
    """A repository or sitemap whose documents a collection follows; its runs are its ingests."""

    class Kind(models.TextChoices):
        """What is read there."""

        GIT = "git"
        SITEMAP = "sitemap"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="followed_sources", db_index=False
    )
    kind = models.CharField(max_length=16, choices=Kind)
    address = models.CharField(max_length=900, help_text="Without a user name or password.")
    branch = models.CharField(
        max_length=200, blank=True, help_text="Of a repository; empty: the one it names itself."
    )
    folder = models.CharField(
        max_length=500, blank=True, help_text="Of a repository; empty: all of it."
    )
    patterns = models.JSONField(
        default=list, blank=True, help_text="Names of files such as *.md; none: all known formats."
    )
    every = models.DurationField(
        default=DAILY,
        validators=[MinValueValidator(SHORTEST)],
        help_text="How often it is read again, five minutes at least.",
    )
    paused = models.BooleanField(default=False, help_text="Read only when somebody asks for it.")
    # Named at the command line of the server, where other addresses than https:// may be named.
    is_local = models.BooleanField(default=False, editable=False)
    due = models.DateTimeField(default=now, help_text="When it is read next.")
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("collection", "address")
        constraints = [
            models.UniqueConstraint(
                fields=("collection", "address", "branch", "folder"),
                name="source_once_per_collection",
            ),
        ]

    def __str__(self) -> str:
        parts = [self.address, self.branch, self.folder]
        return " ".join(part for part in parts if part)


class FetchedPage(models.Model):
    """What a server and a sitemap said of a page when it was last read, for the next time."""

    source = models.ForeignKey(Source, models.CASCADE, related_name="pages", db_index=False)
    origin = models.CharField(max_length=1000)
    etag = models.CharField(max_length=300, blank=True)
    last_modified = models.CharField(max_length=100, blank=True)
    lastmod = models.CharField(max_length=40, blank=True, help_text="As the sitemap has it.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("source", "origin"), name="page_once_per_source"),
        ]

    def __str__(self) -> str:
        return self.origin
