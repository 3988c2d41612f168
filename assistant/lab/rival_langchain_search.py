"""Rival of search: the same rows in LangChain's PGVectorStore, asked by its hybrid search.

Run by a Python that has langchain-postgres, with a request on its standard input; prints the
milliseconds of every question, and which part found the chunk it was drawn from, as JSON. Set up
as its documentation does it: a column of words with a GIN index, an HNSW index, and its defaults
for both, fused by reciprocal rank.
"""

import asyncio
import json
import sys
from time import perf_counter
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_postgres import PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion
from langchain_postgres.v2.indexes import HNSWIndex
from sqlalchemy import URL, text
from sqlalchemy.ext.asyncio import create_async_engine

TABLE = "bench_langchain"
FILL = """
INSERT INTO bench_langchain (langchain_id, content, embedding, content_tsv)
SELECT gen_random_uuid(), chunk.text, vector.embedding::vector, to_tsvector('english', chunk.text)
FROM knowledge_chunk AS chunk
    JOIN knowledge_chunkvector AS vector ON vector.chunk_id = chunk.id
    JOIN knowledge_collection AS collection ON collection.id = vector.collection_id
WHERE collection.name = :collection AND vector.model = :model
"""


class KnownVectors(Embeddings):
    """Vectors that were made before: what embedding costs is left out."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of the texts."""
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of the question."""
        return self.vectors[text]


async def indexed_store(
    engine: Any, request: dict[str, Any], embeddings: Embeddings
) -> PGVectorStore:
    """Return its store with the rows of the collection, indexed."""
    words = HybridSearchConfig(
        tsv_column="content_tsv",
        tsv_lang="pg_catalog.english",
        fusion_function=reciprocal_rank_fusion,
        primary_top_k=request["limit"],
        secondary_top_k=request["limit"],
        index_name="bench_langchain_words",
    )
    tables = PGEngine.from_engine(engine)
    await tables.ainit_vectorstore_table(
        table_name=TABLE,
        vector_size=len(request["vectors"][0]),
        hybrid_search_config=words,
        overwrite_existing=True,
    )
    async with engine.begin() as connection:
        values = {"collection": request["collection"], "model": request["model"]}
        await connection.execute(text(FILL), values)
    store = await PGVectorStore.create(
        engine=tables,
        table_name=TABLE,
        embedding_service=embeddings,
        hybrid_search_config=words,
        k=request["limit"],
    )
    await store.aapply_vector_index(HNSWIndex())
    await store.aapply_hybrid_search_index()
    async with engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        await autocommit.execute(text(f"VACUUM ANALYZE {TABLE}"))
    return store


async def main() -> None:
    """Answer the request."""
    request = json.load(sys.stdin)
    database = request["database"]
    engine = create_async_engine(
        URL.create(
            "postgresql+asyncpg",
            username=database["USER"] or None,
            password=database["PASSWORD"] or None,
            host=None if database["HOST"].startswith("/") else database["HOST"] or None,
            port=int(database["PORT"]) if database["PORT"] else None,
            database=database["NAME"],
            query={"host": database["HOST"]} if database["HOST"].startswith("/") else {},
        )
    )
    questions = request["questions"]
    embeddings = KnownVectors(dict(zip(questions, request["vectors"], strict=True)))
    store = await indexed_store(engine, request, embeddings)
    milliseconds, hits = [], []
    for question in questions[:5]:
        await store.asimilarity_search(question, k=request["limit"])
    for question, meant in zip(questions, request["meant"], strict=True):
        begin = perf_counter()
        results = await store.asimilarity_search(question, k=request["limit"])
        milliseconds.append((perf_counter() - begin) * 1000)
        hits.append(meant in {document.page_content for document in results})
    share = sum(hits) / len(hits)
    print(json.dumps({"milliseconds": milliseconds, "found": share}))  # noqa: T201
    await engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
