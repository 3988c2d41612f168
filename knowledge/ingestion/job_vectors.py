"""Job vectors: those for the chunks of a job, kept as they are made."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from django.db import connection, transaction
from pgvector import HalfVector

from knowledge import chunking
from knowledge.embedding import Vectors, registry
from knowledge.identifiers import LOCAL_DIMENSIONS, OWN_MODELS
from knowledge.ingestion.drafts import digest
from knowledge.ingestion.job_lease import JobLease
from knowledge.models import ChunkVector, Encoded

# About two seconds' work: enough to sort by length, little to lose when the process is killed.
CHUNKS_AT_ONCE = 64


class Encoder:
    """Encodes with the model of the job's collection."""

    def __init__(self, lease: JobLease, report_progress: Callable[[], None]) -> None:
        self.lease, self.report_progress = lease, report_progress
        self.model = registry.named(lease.job.collection.embedding_model)
        self.window = self.model.window
        # Who asks a provider pays for each text, and should not do so again.
        self.is_paid = self.model.name not in OWN_MODELS
        self.digests: list[str] = []  # of what is kept, and of use to no one once stored

    def encode(self, texts: Sequence[str], former: Collection[str] = ()) -> Vectors:
        """Return one unit vector per text, as exact as they are stored.

        A text that a document of one of the `former` sources holds has its vector already.
        Where there are more texts than are encoded at once, and where each is paid for, the
        vectors are kept with the job until its documents are stored, so that at most the batch at
        hand is ever encoded twice. Raises EmbeddingUnavailable, LeaseLost and Cancelled.
        """
        if not texts:
            return no_vectors(LOCAL_DIMENSIONS)
        vectors = self.stored_vectors({*texts}, former) if former else {}
        new_texts = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new_texts:
            vectors |= zip(new_texts, self.encode_new(new_texts), strict=True)
        return np.stack([vectors[text] for text in texts])

    def encode_new(self, texts: Sequence[str]) -> Sequence[np.ndarray]:
        """Return their vectors; little is lost when the process is killed meanwhile."""
        if len(texts) <= CHUNKS_AT_ONCE and not self.is_paid:
            return [*self.ask_model(texts)]
        return self.encode_in_batches(texts)

    def stored_vectors(
        self, texts: Collection[str], sources: Collection[str]
    ) -> dict[str, np.ndarray]:
        """Return the vectors of those texts that documents of these sources hold."""
        rows = ChunkVector.objects.filter(
            model=self.model.name,
            chunk__document__collection=self.lease.job.collection_id,
            chunk__document__source__in=sources,
        ).values_list("chunk__document__title", "chunk__section__path", "chunk__text", "embedding")
        return {
            text_of_chunk: np.array(vector, dtype=np.float32)
            for title, path, text, vector in rows.iterator()
            if (text_of_chunk := chunking.embedding_text(title, path, text)) in texts
        }

    def ask_model(self, texts: Sequence[str]) -> Vectors:
        """Ask the model; nobody waits for a database connection of ours meanwhile."""
        if not connection.in_atomic_block:
            connection.close()
        return round_to_half_precision(self.model.encode(texts))

    def encode_in_batches(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Encode batch by batch, with what an earlier attempt has left."""
        digests = [digest(f"{self.model.name}\0{text}".encode()) for text in texts]
        self.digests += digests
        rows = self.lease.job.encoded.filter(sha1__in=digests).values_list("sha1", "embedding")
        vectors = {sha1: np.array(vector, dtype=np.float32) for sha1, vector in rows}
        missing = {
            sha1: text for sha1, text in zip(digests, texts, strict=True) if sha1 not in vectors
        }
        for begin in range(0, len(missing), CHUNKS_AT_ONCE):
            batch = dict([*missing.items()][begin : begin + CHUNKS_AT_ONCE])
            batch_vectors = dict(zip(batch, self.ask_model([*batch.values()]), strict=True))
            self.keep(batch_vectors)
            vectors |= batch_vectors
            self.report_progress()
        return [vectors[sha1] for sha1 in digests]

    def keep(self, vectors: dict[str, np.ndarray]) -> None:
        """Store vectors with the job."""
        with transaction.atomic():
            self.lease.progress()
            Encoded.objects.bulk_create(
                [
                    Encoded(ingest=self.lease.job, sha1=sha1, embedding=HalfVector(vector))
                    for sha1, vector in vectors.items()
                ],
                ignore_conflicts=True,
            )

    def forget(self) -> None:
        """Let go of what was kept, as the documents are stored; others' may still wait."""
        if self.digests:
            self.lease.job.encoded.filter(sha1__in=self.digests).delete()
            self.digests.clear()


def round_to_half_precision(vectors: Vectors) -> Vectors:
    """Return the vectors as they come back from the database, which keeps half precision."""
    return vectors.astype(np.float16).astype(np.float32)


def no_vectors(dimensions: int) -> Vectors:
    """Return no vectors."""
    return np.empty((0, dimensions), dtype=np.float32)
