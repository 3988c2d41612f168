"""MiniLM: writes all-MiniLM-L6-v2 as ONNX graphs, from the weights inside its package.

Run once per machine and as a process of its own (`python -m knowledge.embedding.minilm WEIGHTS
FOLDER`), so that no server process ever holds `onnx` or a second copy of the weights.

There are two graphs: the exact one, and one for passages that multiplies in eight bits. The
weights go into files beside the graphs and not into them: the runtime maps those into memory, and
processes share their pages. The graphs use ONNX Runtime's own operators (`com.microsoft`) where
they fuse what BERT does layer by layer.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from onnx import ModelProto, NodeProto, TensorProto, helper, save_model

from knowledge.embedding.eightbit import EightBit
from knowledge.embedding.graphing import HEADS, fused, write_weights
from knowledge.embedding.tensors import LAYERS, read_weights

EPSILON = 1e-12  # layer_norm_eps of the model's config.json
EXACT, EIGHT_BIT = "model.onnx", "passages.onnx"
EXACT_WEIGHTS, EIGHT_BIT_WEIGHTS = "model.bin", "passages.bin"


class Form(Protocol):
    """How a graph multiplies with weights; `name.product` and `layer.attended` come out."""

    def dense(self, source: str, name: str) -> Iterator[NodeProto]:
        """Yield the product of `source` and a weight; its bias is added by the node after it."""

    def attention(self, source: str, layer: int) -> Iterator[NodeProto]:
        """Yield a layer's attention, its weights and biases included."""


class Exact:
    """In 32-bit floats."""

    def dense(self, source: str, name: str) -> Iterator[NodeProto]:
        """Yield one product."""
        yield helper.make_node("MatMul", [source, name], [f"{name}.product"])

    def attention(self, source: str, layer: int) -> Iterator[NodeProto]:
        """Yield it all as one node."""
        weights = [f"{layer}.qkv", f"{layer}.qkv.bias"]
        yield fused("Attention", [source, *weights, "mask"], [f"{layer}.attended"], num_heads=HEADS)


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
    hidden = "hidden"
    for layer in range(LAYERS):
        yield from form.attention(hidden, layer)
        yield from form.dense(f"{layer}.attended", f"{layer}.mix")
        yield residual(f"{layer}.mix", hidden)
        yield from form.dense(f"{layer}.mix.out", f"{layer}.wide")
        yield fused("BiasGelu", [f"{layer}.wide.product", f"{layer}.wide.bias"], [f"{layer}.gelu"])
        yield from form.dense(f"{layer}.gelu", f"{layer}.narrow")
        yield residual(f"{layer}.narrow", f"{layer}.mix.out")
        hidden = f"{layer}.narrow.out"
    yield helper.make_node("Identity", [hidden], ["states"])


def residual(name: str, skipped: str) -> NodeProto:
    """Return the normalised sum of a product, its bias and the states that went around it."""
    return fused(
        "SkipLayerNormalization",
        [f"{name}.product", skipped, f"{name}.norm.scale", f"{name}.norm.bias", f"{name}.bias"],
        [f"{name}.out"],
        epsilon=EPSILON,
    )


def assemble(form: Form, tensors: list[TensorProto]) -> ModelProto:
    """Return the whole model, with those of the tensors that it uses."""
    shape = ["batch", "tokens"]
    made = list(nodes(form))
    used = {name for node in made for name in node.input}
    graph = helper.make_graph(
        made,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info(name, TensorProto.INT32, shape)
            for name in ("ids", "mask")
            if name in used
        ],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, [*shape, 384])],
        initializer=[tensor for tensor in tensors if tensor.name in used],
    )
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=8)


def make(safetensors: Path, folder: Path) -> None:
    """Write both graphs and their weights into `folder`."""
    weights = read_weights(safetensors)
    shared = write_weights(weights, folder / EXACT_WEIGHTS)
    save_model(assemble(Exact(), shared), folder / EXACT)
    eight_bit = EightBit(weights)
    own = write_weights(eight_bit.weights, folder / EIGHT_BIT_WEIGHTS)
    save_model(assemble(eight_bit, [*shared, *own]), folder / EIGHT_BIT)


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
