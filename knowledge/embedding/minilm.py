"""MiniLM: writes all-MiniLM-L6-v2 as ONNX graphs, from the weights inside its package.

Run once per machine and as a process of its own (`python -m knowledge.embedding.minilm WEIGHTS
FOLDER`), so that no server process ever holds `onnx` or a second copy of the weights.

There are two graphs: the exact one, and one for passages that multiplies in eight bits.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from onnx import NodeProto, save_model

from knowledge.embedding.bert import (
    EPSILON,
    PARTS,
    EightBit,
    Exact,
    Form,
    Weights,
    assemble,
    fused,
    layer_nodes,
    write_weights,
)

NAME = "all-MiniLM-L6-v2"
LAYERS = 6
EXACT, EIGHT_BIT = "model.onnx", "passages.onnx"
EXACT_WEIGHTS, EIGHT_BIT_WEIGHTS = "model.bin", "passages.bin"
RANGES = Path(__file__).with_name("ranges.json")  # of the inputs, as the lab measured them


def mapped(path: Path) -> Weights:
    """Return the float tensors of a safetensors file, mapped and not read.

    The format: the header's length (8 bytes, little-endian), the header (JSON: name → shape and
    place), then the tensors.
    """
    content = np.memmap(path, dtype=np.uint8, mode="r")
    begin = 8 + int(content[:8].view("<u8")[0])
    header = json.loads(content[8:begin].tobytes())
    return {
        name: content[slice(*(begin + place for place in entry["data_offsets"]))]
        .view("<f4")
        .reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def read_weights(path: Path) -> Weights:
    """Return the tensors the graphs need, dense weights as (inputs, outputs)."""
    tensors = mapped(path)
    segment = tensors["embeddings.token_type_embeddings.weight"][0]  # a text is always the first
    weights: Weights = {
        "words": tensors["embeddings.word_embeddings.weight"],
        "positions": tensors["embeddings.position_embeddings.weight"] + segment,
        "norm.scale": tensors["embeddings.LayerNorm.weight"],
        "norm.bias": tensors["embeddings.LayerNorm.bias"],
    }
    for layer in range(LAYERS):
        weights |= layer_weights(tensors, layer)
    return weights


def layer_weights(tensors: Weights, layer: int) -> Weights:
    """Return one layer's tensors under the names the graph gives them."""
    old, new = f"encoder.layer.{layer}", f"{layer}"
    selves = [f"{old}.attention.self.{part}" for part in PARTS]
    return {
        f"{new}.qkv": np.concatenate([tensors[f"{name}.weight"].T for name in selves], axis=1),
        f"{new}.qkv.bias": np.concatenate([tensors[f"{name}.bias"] for name in selves]),
        f"{new}.mix": tensors[f"{old}.attention.output.dense.weight"].T,
        f"{new}.mix.bias": tensors[f"{old}.attention.output.dense.bias"],
        f"{new}.mix.norm.scale": tensors[f"{old}.attention.output.LayerNorm.weight"],
        f"{new}.mix.norm.bias": tensors[f"{old}.attention.output.LayerNorm.bias"],
        f"{new}.wide": tensors[f"{old}.intermediate.dense.weight"].T,
        f"{new}.wide.bias": tensors[f"{old}.intermediate.dense.bias"],
        f"{new}.narrow": tensors[f"{old}.output.dense.weight"].T,
        f"{new}.narrow.bias": tensors[f"{old}.output.dense.bias"],
        f"{new}.narrow.norm.scale": tensors[f"{old}.output.LayerNorm.weight"],
        f"{new}.narrow.norm.bias": tensors[f"{old}.output.LayerNorm.bias"],
    }


def nodes(form: Form) -> Iterator[NodeProto]:
    """Yield the graph: ids and mask (int32, batch by tokens) in, hidden states (float) out.

    The graph in eight bits has no mask: its texts are equally long.
    """
    yield fused(
        "EmbedLayerNormalization",
        ["ids", "", "words", "positions", "", "norm.scale", "norm.bias"],
        ["hidden", "unused"],
        epsilon=EPSILON,
    )
    yield from layer_nodes(form, LAYERS)


def make(safetensors: Path, folder: Path) -> None:
    """Write both graphs and their weights into `folder`."""
    weights = read_weights(safetensors)
    shared = write_weights(weights, folder / EXACT_WEIGHTS)
    save_model(assemble(NAME, [*nodes(Exact())], shared), folder / EXACT)
    eight_bit = EightBit(weights, RANGES)
    own = write_weights(eight_bit.weights, folder / EIGHT_BIT_WEIGHTS)
    save_model(assemble(NAME, [*nodes(eight_bit)], [*shared, *own]), folder / EIGHT_BIT)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
