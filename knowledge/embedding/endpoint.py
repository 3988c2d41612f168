"""Endpoint: an embedding model behind an OpenAI-compatible server.

Imported only when such a model is used: the client takes 30 MB of every process.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import openai
from django.conf import settings
from httpx2 import Timeout
from pydantic import BaseModel, ValidationError

from knowledge.embedding.embedder import (
    FEWEST_DIMENSIONS,
    MOST_DIMENSIONS,
    EndpointError,
    KeyRefused,
    Kind,
    Malformed,
    ModelMissing,
    Overloaded,
    Refused,
    TooSlow,
    Unreachable,
    Vectors,
    WrongDimensions,
)
from knowledge.embedding.local import VectorCache
from knowledge.providers import Provider
from knowledge.tokens import tokenizer

REMEMBERED = 2_000  # vectors, 25 MB of 3,072 dimensions
# Bounds of one call: the least that servers take by default is 32 texts (Text Embeddings
# Inference), and 100,000 characters are far from the 300,000 tokens of OpenAI.
TEXTS_PER_CALL = 32
CHARACTERS_PER_CALL = 100_000
# Who ingests can wait, as long as Retry-After says (at most two minutes); who asks a question is
# better served by a search without vectors than by a long silence.
RETRIES: dict[Kind, int] = {"passage": 5, "question": 0}
SECONDS: dict[Kind, float] = {"passage": 60.0, "question": 8.0}
CONNECT_SECONDS = 5.0
QUOTED_ANSWER, QUOTED_FAILURE = 160, 200  # characters of what a server said
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


class Item(BaseModel):
    """One vector, and which text it belongs to."""

    embedding: list[float]
    index: int | None = None


class Usage(BaseModel):
    """What the answer cost."""

    prompt_tokens: int = 0


class Answer(BaseModel):
    """The body of an answer of `POST /embeddings`."""

    data: list[Item]
    usage: Usage | None = None


def vectors_of(body: bytes, count: int) -> tuple[Vectors, int]:
    """Return the unit vectors of `count` texts in their order, and the tokens they cost.

    Raises Malformed, with what is wrong.
    """
    try:
        answer = Answer.model_validate_json(body)
    except ValidationError as error:
        quote = body[:QUOTED_ANSWER].decode(errors="replace")
        raise Malformed(f"it answered something else than vectors: {quote!r}") from error
    items = ordered(answer.data, count)
    lengths = {len(item.embedding) for item in items}
    if len(lengths) != 1:
        raise Malformed(f"its vectors differ in length: {sorted(lengths)}")
    tokens = answer.usage.prompt_tokens if answer.usage else 0
    return unit([item.embedding for item in items]), tokens


def ordered(items: list[Item], count: int) -> list[Item]:
    """Return the items in the order of the texts; servers may answer in another."""
    if len(items) != count:
        raise Malformed(f"it answered {count} texts with {len(items)} vectors")
    places = [place if item.index is None else item.index for place, item in enumerate(items)]
    if sorted(places) != list(range(count)):
        raise Malformed(f"its vectors are numbered {sorted(places)[:8]} instead of from 0 up")
    return [item for _, item in sorted(zip(places, items, strict=True), key=itemgetter(0))]


def unit(rows: list[list[float]]) -> Vectors:
    """Return the rows scaled to length 1, as not every model leaves them."""
    vectors = np.array(rows, dtype=np.float64)
    if not np.isfinite(vectors).all():
        raise Malformed("its vectors hold what is no number")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not norms.all():
        raise Malformed("it answered with a vector of zeros")
    scaled: Vectors = (vectors / norms).astype(np.float32)
    return scaled


class Endpoint:
    """One model of one provider."""

    def __init__(self, model: str, provider: Provider) -> None:
        self.model = model
        self.provider = provider
        self.name = f"{model}@{provider.name}"
        self.traits = traits(model)
        self.window = self.traits.window
        self.cache = VectorCache(REMEMBERED)
        self.spent = 0  # tokens that the provider has counted
        self._dimensions = self.traits.dimensions
        self.client = openai.OpenAI(
            base_url=provider.base_url,
            # Servers of one's own want none; the client wants some.
            api_key=provider.api_key or "none",
            # Chosen by who runs the machine and meant for other programs.
            organization="",
            project="",
        )

    @property
    def dimensions(self) -> int:
        """How long its vectors are; asked for with a word when nobody knows."""
        if self._dimensions is None:
            self.ask(["word"], "passage")
        assert self._dimensions is not None  # noqa: S101
        return self._dimensions

    def encode(self, texts: Sequence[str], *, kind: Kind = "passage") -> Vectors:
        """Return one unit vector per text, as far as possible from what was asked before."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        prefix = self.traits.question if kind == "question" else self.traits.passage
        inputs = [prefix + self.cut(text) for text in texts]
        return np.stack(self.cache.encode(inputs, lambda missing: self.ask(missing, kind)))

    def cut(self, text: str) -> str:
        """Return as much of the text as the model sees; none at all would be refused."""
        if len(text) > self.window:  # a token is a character or longer
            offsets = tokenizer().encode(text).offsets[1:-1]
            if len(offsets) > self.window:
                text = text[: offsets[self.window - 1][1]]
        return text.strip() or "."

    def ask(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return the vectors of the texts, call by call."""
        if self.provider.lacks_key:
            raise KeyRefused(
                f"{self.name} cannot be asked without a key: set {self.provider.key_variable}."
            )
        return np.concatenate([self.call(batch, kind) for batch in batches(texts)])

    def call(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return the vectors of what fits one call. Raises EndpointError."""
        client = self.client.with_options(
            timeout=Timeout(SECONDS[kind], connect=CONNECT_SECONDS), max_retries=RETRIES[kind]
        )
        with translated_errors(self.name, self.provider):
            # The client's default is base64, which not every server knows.
            response = client.embeddings.with_raw_response.create(
                model=self.model, input=list(texts), encoding_format="float"
            )
            vectors, tokens = vectors_of(response.content, len(texts))
        self.spent += tokens
        self.check(vectors.shape[1])
        return vectors

    def check(self, dimensions: int) -> None:
        """Raise WrongDimensions unless the model's vectors are as long as they were, and may be."""
        if not FEWEST_DIMENSIONS <= dimensions <= MOST_DIMENSIONS:
            raise WrongDimensions(
                f"{self.name} makes vectors of {dimensions:,} dimensions; "
                f"{FEWEST_DIMENSIONS:,} to {MOST_DIMENSIONS:,} can be stored."
            )
        if self._dimensions not in {None, dimensions}:
            raise WrongDimensions(
                f"{self.name} answered with {dimensions:,} dimensions instead of "
                f"{self._dimensions:,}: it is not the model it was."
            )
        self._dimensions = dimensions


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in order, as many at a time as one call may hold."""
    begin = characters = 0
    for place, text in enumerate(texts):
        characters += len(text)
        if place > begin and (place - begin == TEXTS_PER_CALL or characters > CHARACTERS_PER_CALL):
            yield texts[begin:place]
            begin, characters = place, len(text)
    if texts:
        yield texts[begin:]


@contextmanager
def translated_errors(model: str, provider: Provider) -> Iterator[None]:
    """Turn the client's errors into ours, which name the model, the address and the remedy."""
    try:
        yield
    except Malformed as error:
        raise Malformed(f"{model} at {provider.base_url} cannot be used: {error}.") from error
    except openai.OpenAIError as error:
        raise failure(error, model, provider) from error


def failure(error: openai.OpenAIError, model: str, provider: Provider) -> EndpointError:
    """Return our error for the client's."""
    at = f"{model} at {provider.base_url}"
    match error:
        case openai.APITimeoutError():
            return TooSlow(f"{at} did not answer in time.")
        case openai.APIConnectionError():
            reason = str(error.__cause__ or error)[:QUOTED_FAILURE]
            return Unreachable(f"{at} cannot be reached: {reason}")
        case openai.APIStatusError():
            return status_failure(error, at, provider)
    return Unreachable(f"{at} cannot be asked: {message(error, provider)}")


def status_failure(error: openai.APIStatusError, at: str, provider: Provider) -> EndpointError:
    """Return our error for an answer with a status of failure."""
    status, reason = error.status_code, message(error, provider)
    if status in {401, 403}:
        return KeyRefused(f"{at} refuses the key ({status}): check {provider.key_variable}.")
    if status == 404:
        return ModelMissing(
            f"{at} was not found (404): check the model's name, and that the server has loaded it."
        )
    if status == 429:
        return Overloaded(f"{at} is asked more than it allows (429): {reason}")
    if status >= 500 or status in {408, 409}:
        return Unreachable(f"{at} fails ({status}): {reason}")
    return Refused(f"{at} does not answer such requests ({status}): {reason}")


def message(error: openai.OpenAIError, provider: Provider) -> str:
    """Return what the server said, shortened and without the key."""
    text = str(error)
    return (text.replace(provider.api_key, "…") if provider.api_key else text)[:QUOTED_FAILURE]
