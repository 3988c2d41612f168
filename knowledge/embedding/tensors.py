"""Tensors: the weights of all-MiniLM-L6-v2, under the names that its graphs give them."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.float32]]

LAYERS = 6


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
    found = mapped(path)
    segment = found["embeddings.token_type_embeddings.weight"][0]  # a text is always the first
    weights: Weights = {
        "words": found["embeddings.word_embeddings.weight"],
        "positions": found["embeddings.position_embeddings.weight"] + segment,
        "norm.scale": found["embeddings.LayerNorm.weight"],
        "norm.bias": found["embeddings.LayerNorm.bias"],
    }
    for layer in range(LAYERS):
        weights |= layer_weights(found, layer)
    return weights


def layer_weights(found: Weights, layer: int) -> Weights:
    """Return one layer's tensors under the names the graph gives them."""
    old, new = f"encoder.layer.{layer}", f"{layer}"
    selves = [f"{old}.attention.self.{part}" for part in ("query", "key", "value")]
    return {
        f"{new}.qkv": np.concatenate([found[f"{name}.weight"].T for name in selves], axis=1),
        f"{new}.qkv.bias": np.concatenate([found[f"{name}.bias"] for name in selves]),
        f"{new}.mix": found[f"{old}.attention.output.dense.weight"].T,
        f"{new}.mix.bias": found[f"{old}.attention.output.dense.bias"],
        f"{new}.mix.norm.scale": found[f"{old}.attention.output.LayerNorm.weight"],
        f"{new}.mix.norm.bias": found[f"{old}.attention.output.LayerNorm.bias"],
        f"{new}.wide": found[f"{old}.intermediate.dense.weight"].T,
        f"{new}.wide.bias": found[f"{old}.intermediate.dense.bias"],
        f"{new}.narrow": found[f"{old}.output.dense.weight"].T,
        f"{new}.narrow.bias": found[f"{old}.output.dense.bias"],
        f"{new}.narrow.norm.scale": found[f"{old}.output.LayerNorm.weight"],
        f"{new}.narrow.norm.bias": found[f"{old}.output.LayerNorm.bias"],
    }
