"""MiniLM: writes all-MiniLM-L6-v2 as an ONNX graph, from the weights inside its package.

Run once per machine and as a process of its own (`python -m knowledge.minilm WEIGHTS FOLDER`),
so that no server process ever holds `onnx` or a second copy of the weights.

The weights go into a file beside the graph and not into it: the runtime maps that file into
memory, and processes share its pages. The graph uses ONNX Runtime's own operators
(`com.microsoft`) where they fuse what BERT does layer by layer.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, save_model

Weights = dict[str, NDArray[np.float32]]

LAYERS = 6
HEADS = 12
EPSILON = 1e-12  # layer_norm_eps of the model's config.json
GRAPH, WEIGHTS = "model.onnx", "model.bin"
ALIGNMENT = 4096  # of a memory page: a mapped tensor must begin at one


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
    """Return the tensors the graph needs, dense weights as (inputs, outputs)."""
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


def nodes() -> Iterator[NodeProto]:
    """Yield the graph: ids and mask (int32, batch by tokens) in, hidden states (float) out."""
    yield fused(
        "EmbedLayerNormalization",
        ["ids", "", "words", "positions", "", "norm.scale", "norm.bias"],
        ["hidden", "unused"],
        epsilon=EPSILON,
    )
    hidden = "hidden"
    for layer in range(LAYERS):
        yield fused(
            "Attention",
            [hidden, f"{layer}.qkv", f"{layer}.qkv.bias", "mask"],
            [f"{layer}.attended"],
            num_heads=HEADS,
        )
        yield dense(f"{layer}.attended", f"{layer}.mix")
        yield residual(f"{layer}.mix", hidden)
        yield dense(f"{layer}.mix.out", f"{layer}.wide")
        yield fused("BiasGelu", [f"{layer}.wide.product", f"{layer}.wide.bias"], [f"{layer}.gelu"])
        yield dense(f"{layer}.gelu", f"{layer}.narrow")
        yield residual(f"{layer}.narrow", f"{layer}.mix.out")
        hidden = f"{layer}.narrow.out"
    yield helper.make_node("Identity", [hidden], ["states"])


def dense(source: str, name: str) -> NodeProto:
    """Return the product of `source` and a weight; its bias is added by the node after it."""
    return helper.make_node("MatMul", [source, name], [f"{name}.product"])


def residual(name: str, skipped: str) -> NodeProto:
    """Return the normalised sum of a product, its bias and the states that went around it."""
    return fused(
        "SkipLayerNormalization",
        [f"{name}.product", skipped, f"{name}.norm.scale", f"{name}.norm.bias", f"{name}.bias"],
        [f"{name}.out"],
        epsilon=EPSILON,
    )


def fused(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeProto:
    """Return a node of ONNX Runtime's own operators."""
    return helper.make_node(operator, inputs, outputs, domain="com.microsoft", **attributes)


def write_weights(weights: Weights, path: Path) -> list[TensorProto]:
    """Write the tensors one after the other; return references into the file for the graph."""
    references = []
    with path.open("wb") as file:
        for name, value in weights.items():
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            content = np.ascontiguousarray(value, dtype="<f4").tobytes()
            tensor = TensorProto(
                name=name,
                data_type=TensorProto.FLOAT,
                dims=value.shape,
                data_location=TensorProto.EXTERNAL,
            )
            place = {"location": path.name, "offset": file.tell(), "length": len(content)}
            for key, entry in place.items():
                tensor.external_data.add(key=key, value=str(entry))
            references.append(tensor)
            file.write(content)
    return references


def assemble(references: list[TensorProto]) -> ModelProto:
    """Return the whole model, its weights left in their file."""
    shape = ["batch", "tokens"]
    graph = helper.make_graph(
        list(nodes()),
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT32, shape),
            helper.make_tensor_value_info("mask", TensorProto.INT32, shape),
        ],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, [*shape, 384])],
        initializer=references,
    )
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


def make(safetensors: Path, folder: Path) -> None:
    """Write the graph and its weights into `folder`."""
    references = write_weights(read_weights(safetensors), folder / WEIGHTS)
    save_model(assemble(references), folder / GRAPH)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
