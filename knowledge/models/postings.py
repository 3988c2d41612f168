"""Postings: which words stand in which chunks, and how much each says about its chunk."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from knowledge.models.collections import Collection
from knowledge.models.documents import Chunk


class Posting(models.Model):
    """A word of a chunk; written by `knowledge.postings` only.

    Rows are many, so its table is made by hand in a migration: no id, no key but the index that
    is read, and the database itself deletes the rows of a chunk.
    """

    pk = models.CompositePrimaryKey("chunk", "term")
    chunk = models.ForeignKey(Chunk, models.DO_NOTHING, related_name="+")
    collection = models.IntegerField()  # four bytes: eight would be padded to sixteen
    impact = models.FloatField()  # float4 in the table
    term = models.TextField()  # as the configuration of its document stems it

    def __str__(self) -> str:
        return f"{self.term} in {self.chunk_id}: {self.impact:.2f}"


class CommonTerm(models.Model):
    """A word that stands in more chunks than a search reads, and in how many at the last census."""

    pk = models.CompositePrimaryKey("collection", "term")
    # The database deletes it with its collection, as it does the rest of this module.
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+")
    term = models.TextField()
    chunks = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.term}: {self.chunks}"


class Census(models.Model):
    """What a search needs to know of a collection as a whole, counted now and then."""

    collection = models.OneToOneField(
        Collection, models.DO_NOTHING, primary_key=True, related_name="census"
    )
    # The text search configurations of its documents, complete at any time.
    configs = ArrayField(models.TextField(), default=list)
    chunks = models.PositiveIntegerField(null=True)  # None until it was counted
    newest = models.BigIntegerField(default=0)  # id of the newest chunk that was counted

    def __str__(self) -> str:
        return f"{self.chunks} chunks of {self.collection}"
