"""Traits: what is known of embedding models that others serve."""

from dataclasses import dataclass

from django.conf import settings

# Tokenizers differ: a text that `count_tokens` finds to be 100 tokens long is rarely more than 125
# to another one. Some servers refuse what does not fit instead of cutting it.
MARGIN = 0.8


@dataclass(frozen=True)
class Traits:
    """A model's size, and the words its makers want before a passage and before a question."""

    dimensions: int | None = None
    tokens: int | None = None  # its window, in tokens of its own
    passage: str = ""
    question: str = ""

    @property
    def window(self) -> int:
        """The window in tokens as `count_tokens` counts them."""
        return int((self.tokens or settings.EMBEDDING_WINDOW) * MARGIN)


RETRIEVE = "Represent this sentence for searching relevant passages: "
INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)

# From the makers' model cards. The longest key that the model's name contains is taken, so that
# "nomic-embed-text:latest" and "BAAI/bge-m3" are found, too. What is not here works without: its
# dimensions are asked for, and its window is EMBEDDING_WINDOW.
TRAITS = {
    "text-embedding-3-small": Traits(1536, 8191),
    "text-embedding-3-large": Traits(3072, 8191),
    "text-embedding-ada-002": Traits(1536, 8191),
    "gemini-embedding-001": Traits(3072, 2048),
    "nomic-embed-text": Traits(768, 2048, "search_document: ", "search_query: "),
    "mxbai-embed-large": Traits(1024, 512, question=RETRIEVE),
    "bge-small-en": Traits(384, 512, question=RETRIEVE),
    "bge-base-en": Traits(768, 512, question=RETRIEVE),
    "bge-large-en": Traits(1024, 512, question=RETRIEVE),
    "bge-m3": Traits(1024, 8192),
    "multilingual-e5-small": Traits(384, 512, "passage: ", "query: "),
    "multilingual-e5-base": Traits(768, 512, "passage: ", "query: "),
    "multilingual-e5-large": Traits(1024, 512, "passage: ", "query: "),
    "multilingual-e5-large-instruct": Traits(1024, 512, question=INSTRUCT),
    "embeddinggemma": Traits(768, 2048, "title: none | text: ", "task: search result | query: "),
    "qwen3-embedding-0.6b": Traits(1024, 32768, question=INSTRUCT),
    "qwen3-embedding-4b": Traits(2560, 32768, question=INSTRUCT),
    "qwen3-embedding-8b": Traits(4096, 32768, question=INSTRUCT),
    "all-minilm": Traits(384, 256),
}


def traits(model: str) -> Traits:
    """Return what is known of the model, whichever way its provider spells it."""
    name = model.lower().replace(":", "-")
    return TRAITS.get(max((key for key in TRAITS if key in name), key=len, default=""), Traits())
