"""Endpoint: an embedding model behind an OpenAI-compatible server.

Imported only when such a model is used: the client takes 30 MB of every process.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import openai
from httpx2 import Timeout

from knowledge.embedding import failures
from knowledge.embedding.answers import vectors_of
from knowledge.embedding.embedder import FEWEST_DIMENSIONS, MOST_DIMENSIONS, Kind, Vectors
from knowledge.embedding.errors import KeyRefused, WrongDimensions
from knowledge.embedding.local import LOCAL
from knowledge.embedding.recent import Recent
from knowledge.embedding.traits import traits
from knowledge.providers import Provider

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


class Endpoint:
    """One model of one provider."""

    def __init__(self, model: str, provider: Provider) -> None:
        self.model = model
        self.provider = provider
        self.name = f"{model}@{provider.name}"
        self.traits = traits(model)
        self.window = self.traits.window
        self.recent = Recent(REMEMBERED)
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
        before = self.traits.question if kind == "question" else self.traits.passage
        worded = [before + self.cut(text) for text in texts]
        return np.stack(self.recent.encode(worded, lambda missing: self.ask(missing, kind)))

    def cut(self, text: str) -> str:
        """Return as much of the text as the model sees; none at all would be refused."""
        if len(text) > self.window:  # a token is a character or longer
            offsets = LOCAL.tokenizer().encode(text).offsets[1:-1]
            if len(offsets) > self.window:
                text = text[: offsets[self.window - 1][1]]
        return text.strip() or "."

    def ask(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return the vectors of the texts, call by call."""
        if self.provider.lacks_key:
            raise KeyRefused(
                f"{self.name} cannot be asked without a key: set {self.provider.key_variable}."
            )
        return np.concatenate([self.call(call, kind) for call in calls(texts)])

    def call(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return the vectors of what fits one call. Raises EndpointError."""
        client = self.client.with_options(
            timeout=Timeout(SECONDS[kind], connect=CONNECT_SECONDS), max_retries=RETRIES[kind]
        )
        with failures.explained(self.name, self.provider):
            # The client's default is base64, which not every server knows.
            answer = client.embeddings.with_raw_response.create(
                model=self.model, input=list(texts), encoding_format="float"
            )
            vectors, tokens = vectors_of(answer.content, len(texts))
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


def calls(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in order, as many at a time as one call may hold."""
    begin = characters = 0
    for place, text in enumerate(texts):
        characters += len(text)
        if place > begin and (place - begin == TEXTS_PER_CALL or characters > CHARACTERS_PER_CALL):
            yield texts[begin:place]
            begin, characters = place, len(text)
    if texts:
        yield texts[begin:]
