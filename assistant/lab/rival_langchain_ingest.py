"""Rival of ingestion: the same files through LangChain's splitter, embeddings and vector store.

Run by a Python that has langchain-text-splitters, langchain-huggingface, langchain-postgres and
sentence-transformers, with a request on its standard input; prints the seconds as JSON. It is
written as their documentation does it, with their defaults, in chunks of about the same size.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

from langchain_core.documents import Document
from langchain_huggingface import HuggingFaceEmbeddings
from langchain_postgres import PGVector
from langchain_text_splitters import RecursiveCharacterTextSplitter
from sqlalchemy import URL

CHARACTERS, OVERLAP = 1000, 200  # about 220 tokens


def ingest(files: list[str], store: PGVector, splitter: RecursiveCharacterTextSplitter) -> int:
    """Read, split, embed and store the files; return how many chunks that were."""
    documents = [
        Document(
            Path(file).read_text(encoding="utf-8", errors="replace"), metadata={"source": file}
        )
        for file in files
    ]
    chunks = splitter.split_documents(documents)
    # By place, so that doing it again replaces what is there.
    store.add_documents(chunks, ids=[str(place) for place in range(len(chunks))])
    return len(chunks)


def main() -> None:
    """Answer the request."""
    request = json.load(sys.stdin)
    database = request["database"]
    embeddings = HuggingFaceEmbeddings(model_name=request["model"])
    embeddings.embed_query("The first one loads the model.")
    store = PGVector(
        embeddings=embeddings,
        collection_name="bench",
        connection=URL.create(
            "postgresql+psycopg",
            username=database["USER"] or None,
            password=database["PASSWORD"] or None,
            # SQLAlchemy takes a folder with a socket for a host only as an option.
            host=None if database["HOST"].startswith("/") else database["HOST"] or None,
            port=int(database["PORT"]) if database["PORT"] else None,
            database=database["NAME"],
            query={"host": database["HOST"]} if database["HOST"].startswith("/") else {},
        ).render_as_string(hide_password=False),
        use_jsonb=True,
    )
    splitter = RecursiveCharacterTextSplitter(chunk_size=CHARACTERS, chunk_overlap=OVERLAP)
    seconds = []
    for _ in range(2):
        begin = perf_counter()
        chunks = ingest(request["files"], store, splitter)
        seconds.append(perf_counter() - begin)
    print(json.dumps({"chunks": chunks, "first": seconds[0], "again": seconds[1]}))  # noqa: T201


if __name__ == "__main__":
    main()
