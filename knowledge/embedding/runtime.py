"""Runtime: the models of this machine on ONNX Runtime, in this process.

Imported only when something is to be encoded: the runtime takes 25 MB of every process.
"""

import json
import logging
import shutil
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from django.conf import settings
from numpy.typing import NDArray
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

from knowledge.embedding import e5_file
from knowledge.embedding.embedder import Kind, Vectors
from knowledge.embedding.local import DIMENSIONS, GRAPHS, LONG_WINDOW, MODEL
from knowledge.embedding.unigram import Unigram
from knowledge.errors import EmbeddingUnavailable
from knowledge.folder_lock import alone
from knowledge.identifiers import MULTILINGUAL_MODEL
from knowledge.tokens import WINDOW, package_folder, tokenizer

# Numbered: raised when other graphs are written.
E5_GRAPHS = "multilingual-e5-small-1"
MAKING_SECONDS = 120

SEPARATOR = 102  # [SEP]
THREADS = 2
# Tokens of one run, padding included: what the layers pass on then fits the processor's cache.
TOKENS_PER_RUN = 512
# The mean of the 200 everyday questions of `knowledge.calibration`. All vectors of the model point
# about there (cosines of 0.8 for what has nothing in common), and passages that do so most are near
# to every question. Seen from there, of 48 questions in eight languages about 132 English pages
# the right page is first for .50 (else .40), and .98 (else .94) are nearer than nineteen of twenty
# about something else. Mu and Viswanath 2018, arXiv:1702.01417.
CENTRE = Path(__file__).with_name("e5_centre.json")
# What the authors of multilingual-e5-small trained it to see before a text.
PREFIXES: dict[Kind, str] = {"question": "query: ", "passage": "passage: "}

Ids = list[int]
Mask = NDArray[np.int32]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recipe:
    """How the graphs of a model are made: by a module, from the weights inside a package."""

    model: str
    folder: str  # numbered: raised when the module writes other graphs
    module: str
    weights: Callable[[], Path]

    def graphs(self) -> Path:
        """Return the folder of the graphs in the state folder, made if there is none yet."""
        folder = Path(settings.STATE_DIR) / "models" / self.folder
        if not folder.is_dir():
            with alone(folder.parent):
                # Another process may have made them while this one waited.
                if not folder.is_dir():
                    make_graphs(self, folder)
        return folder


class OnnxModel(ABC):
    """A model whose graphs are loaded when first used; safe to use from several threads."""

    recipe: Recipe
    graphs: Mapping[Kind, str]
    # Attention without a mask is faster, and needs texts that are equally long.
    padded: frozenset[Kind] = frozenset()

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions: dict[str, onnxruntime.InferenceSession] = {}

    @abstractmethod
    def ids(self, text: str, kind: Kind) -> Ids:
        """Return the tokens the model sees of a text."""

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return one unit vector per text, in order."""
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for batch, states, mask in self.runs(texts, kind):
            sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
            vectors[batch] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    def states(self, texts: Sequence[str], *, kind: Kind) -> list[Vectors]:
        """Return for each text the hidden states of its tokens: (tokens, dimensions)."""
        found: dict[int, Vectors] = {}
        for batch, states, mask in self.runs(texts, kind):
            for place, row, real in zip(batch, states, mask, strict=True):
                found[place] = row[: real.sum()]
        return [found[place] for place in range(len(texts))]

    def runs(self, texts: Sequence[str], kind: Kind) -> Iterator[tuple[list[int], Vectors, Mask]]:
        """Yield the places of a batch, hidden states and which tokens are real, until all ran."""
        ids = [self.ids(text, kind) for text in texts]
        for batch in batches([len(each) for each in ids], is_padded=kind in self.padded):
            # One run at a time: a run takes every core, and twenty at once only slow each other.
            with self.lock:
                ran = self.run([ids[place] for place in batch], kind)
            yield batch, *ran

    def run(self, ids: Sequence[Ids], kind: Kind) -> tuple[Vectors, Mask]:
        """Return the hidden states of one batch and which tokens are real, 1 or 0."""
        shape = (len(ids), max(len(each) for each in ids))
        padded, mask = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        for row, text in enumerate(ids):
            padded[row, : len(text)] = text
            mask[row, : len(text)] = 1
        inputs = {"ids": padded, "mask": mask} if kind in self.padded else {"ids": padded}
        (states,) = self.session(self.graphs[kind]).run(None, inputs)
        return states, mask

    def session(self, graph: str) -> onnxruntime.InferenceSession:
        """Return the session of a graph. Raises EmbeddingUnavailable."""
        if graph not in self.sessions:
            self.sessions[graph] = open_session(self.recipe, graph)
        return self.sessions[graph]


class Runtime(OnnxModel):
    """all-MiniLM-L6-v2."""

    recipe = Recipe(
        MODEL, GRAPHS, "knowledge.embedding.minilm", lambda: package_folder() / "model.safetensors"
    )
    # Questions are compared word for word with sentences and with each other, so they are exact.
    # Passages are many, and in eight bits they lie where they did, to a cosine of 0.997.
    graphs: Mapping[Kind, str] = {"question": "model.onnx", "passage": "passages.onnx"}
    padded = frozenset({"question"})

    def ids(self, text: str, kind: Kind) -> Ids:
        """Return the tokens, the same for both kinds."""
        return windowed(tokenizer().encode(text).ids)


class MultilingualRuntime(OnnxModel):
    """multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672)."""

    recipe = Recipe(MULTILINGUAL_MODEL, E5_GRAPHS, "knowledge.embedding.e5", e5_file.packed)
    graphs: Mapping[Kind, str] = {"question": "model.onnx", "passage": "model.onnx"}

    def __init__(self) -> None:
        super().__init__()
        self.centre = np.array(json.loads(CENTRE.read_text(encoding="utf-8")), np.float32)
        file = e5_file.E5File(e5_file.packed())
        self.begin, self.end = file.begin, file.end
        pieces = {piece: number for number, piece in enumerate(file.pieces())}
        self.tokens = Unigram(pieces, file.scores().tolist(), file.replacements(), file.unknown)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return one unit vector per text, in order, as seen from the centre."""
        vectors = super().encode(texts, kind=kind) - self.centre
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def ids(self, text: str, kind: Kind) -> Ids:
        """Return the tokens of the text after its prefix."""
        pieces = self.tokens.encode(PREFIXES[kind] + text)[: LONG_WINDOW - 2]
        return [self.begin, *pieces, self.end]


def open_session(recipe: Recipe, graph: str) -> onnxruntime.InferenceSession:
    """Return a session of that graph. Raises EmbeddingUnavailable."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the second core from everybody else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena never gives memory back: 40 MB more for no speed.
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(
            str(recipe.graphs() / graph), options, providers=["CPUExecutionProvider"]
        )
    except RuntimeException as error:
        raise EmbeddingUnavailable(
            f"The graph of {recipe.model} cannot be loaded: {error}"
        ) from error


def windowed(ids: Ids) -> Ids:
    """Return the ids the model sees: cut before the separator, as sentence-transformers does."""
    return ids if len(ids) <= WINDOW else [*ids[: WINDOW - 1], SEPARATOR]


def batches(lengths: Sequence[int], *, is_padded: bool) -> Iterator[list[int]]:
    """Yield places in `lengths`: texts of like length together, or of the same without padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Ascending order: the newest is the longest, and all are padded to it.
        is_full = lengths[place] * (len(batch) + 1) > TOKENS_PER_RUN
        is_longer = batch and lengths[place] > lengths[batch[0]]
        if batch and (is_full or (is_longer and not is_padded)):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def make_graphs(recipe: Recipe, folder: Path) -> None:
    """Make the graphs in a process of its own and put them into place whole or not at all."""
    log.info("making the graphs of an embedding model", extra={"graphs": recipe.folder})
    weights = recipe.weights()
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    command = [sys.executable, "-m", recipe.module, str(weights), str(draft)]
    try:
        subprocess.run(  # noqa: S603
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=MAKING_SECONDS,
            cwd=Path(__file__).resolve().parents[2],
        )
        # mkdtemp's 0700 would lock out other users of the same state folder.
        draft.chmod(0o755)
        draft.rename(folder)
        remove_former(folder)
    except subprocess.SubprocessError as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
        raise EmbeddingUnavailable(
            f"The graphs of {recipe.model} could not be made: {reason}"
        ) from error
    except OSError as error:
        # Not empty: another process finished first, and its graph is as good as ours.
        if not folder.is_dir():
            raise EmbeddingUnavailable(f"{folder} cannot be written: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_former(folder: Path) -> None:
    """Remove the graphs of earlier versions; who has them open keeps them until it ends."""
    family = folder.name.rpartition("-")[0]
    for former in folder.parent.glob(f"{family}-*"):
        if former != folder:
            shutil.rmtree(former, ignore_errors=True)
