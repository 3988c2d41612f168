"""MiniLM: writes all-MiniLM-L6-v2 as ONNX graphs, from the weights inside its package.

Run once per machine and as a process of its own (`python -m knowledge.embedding.minilm WEIGHTS
FOLDER`), so that no server process ever holds `onnx` or a second copy of the weights.

There are two graphs: the exact one, and one for passages that multiplies in eight bits. The
weights go into files beside the graphs and not into them: the runtime maps those into memory, and
processes share their pages. The graphs use ONNX Runtime's own operators (`com.microsoft`) where
they fuse what BERT does layer by layer.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, save_model

LAYERS, HEADS = 6, 12
PARTS = ("query", "key", "value")
EPSILON = 1e-12  # layer_norm_eps of the model's config.json
ALIGNMENT = 4096  # of a memory page: a mapped tensor must begin at one
EXACT, EIGHT_BIT = "model.onnx", "passages.onnx"
EXACT_WEIGHTS, EIGHT_BIT_WEIGHTS = "model.bin", "passages.bin"
RANGES = Path(__file__).with_name("ranges.json")  # of the inputs, as the lab measured them
LEVELS, LARGEST = 255, 63  # of an input's integers; of a weight's

Weights = dict[str, NDArray[np.float32]]


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


def write_weights(weights: Mapping[str, NDArray[Any]], path: Path) -> list[TensorProto]:
    """Write the tensors one after the other; return references into the file for the graph."""
    references = []
    with path.open("wb") as file:
        for name, value in weights.items():
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            content = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
            tensor = TensorProto(
                name=name,
                data_type=helper.np_dtype_to_tensor_dtype(value.dtype),
                dims=value.shape,
                data_location=TensorProto.EXTERNAL,
            )
            place = {"location": path.name, "offset": file.tell(), "length": len(content)}
            for key, entry in place.items():
                tensor.external_data.add(key=key, value=str(entry))
            references.append(tensor)
            file.write(content)
    return references


def fused(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeProto:
    """Return a node of ONNX Runtime's own operators."""
    return helper.make_node(operator, inputs, outputs, domain="com.microsoft", **attributes)


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


class EightBit:
    """The weights as integers, and the nodes that multiply with them."""

    def __init__(self, weights: Weights) -> None:
        self.exact = weights
        self.ranges: dict[str, dict[str, Any]] = json.loads(RANGES.read_text(encoding="utf-8"))
        self.weights: dict[str, NDArray[Any]] = {}
        for layer in range(LAYERS):
            self.convert_attention(layer)
            for name in (f"{layer}.mix", f"{layer}.wide", f"{layer}.narrow"):
                self.put_input(name)
                self.put(name, weights[name] * self.factors(name)[:, None])

    def convert_attention(self, layer: int) -> None:
        """Convert query, key and value one by one."""
        name = f"{layer}.qkv"
        # What comes out of attention is a mean of values: they may as well be smaller themselves.
        smaller = np.ones(3 * len(self.factors(f"{layer}.mix")), np.float32)
        smaller[-len(smaller) // 3 :] = self.factors(f"{layer}.mix")
        self.put_input(name)
        weight = self.exact[name] * self.factors(name)[:, None] / smaller
        for part, columns in zip(PARTS, np.split(weight, len(PARTS), axis=1), strict=True):
            self.put(f"{layer}.{part}", columns)
        self.weights[f"{name}.bias8"] = self.exact[f"{name}.bias"] / smaller

    def factors(self, name: str) -> NDArray[np.float32]:
        """Return by how much each channel of an input is made smaller."""
        factors = np.ones(self.exact[name].shape[0], np.float32)
        for channel, factor in self.ranges[name]["smaller"].items():
            factors[int(channel)] = factor
        return factors

    def put_input(self, name: str) -> None:
        """Note how an input becomes integers."""
        low, high = self.ranges[name]["low"], self.ranges[name]["high"]
        scale = (high - low) / LEVELS
        self.weights[f"{name}.scale"] = np.array(scale, np.float32)
        self.weights[f"{name}.zero"] = np.array(round(-low / scale), np.uint8)
        self.weights[f"{name}.smaller"] = 1 / self.factors(name)

    def put(self, name: str, weight: NDArray[np.float32]) -> None:
        """Note a weight as integers, with a scale per output."""
        scales = np.abs(weight).max(axis=0) / LARGEST
        self.weights[f"{name}.integers"] = np.round(weight / scales).astype(np.int8)
        self.weights[f"{name}.scales"] = scales.astype(np.float32)

    def dense(self, source: str, name: str) -> Iterator[NodeProto]:
        """Yield the product of `source` and a weight."""
        # The input of `mix` comes with its channels small enough already.
        yield from self.integers(source, name, is_small=name.endswith(".mix"))
        yield self.product(name, name, f"{name}.product")

    def attention(self, source: str, layer: int) -> Iterator[NodeProto]:
        """Yield a layer's attention."""
        yield from self.integers(source, f"{layer}.qkv", is_small=False)
        products = [f"{layer}.{part}.product" for part in PARTS]
        for part, product in zip(PARTS, products, strict=True):
            yield self.product(f"{layer}.qkv", f"{layer}.{part}", product)
        inputs = [*products, f"{layer}.qkv.bias8"]
        yield fused("MultiHeadAttention", inputs, [f"{layer}.attended"], num_heads=HEADS)

    def integers(self, source: str, name: str, *, is_small: bool) -> Iterator[NodeProto]:
        """Yield what makes integers of an input."""
        if not is_small:
            yield helper.make_node("Mul", [source, f"{name}.smaller"], [f"{name}.small"])
            source = f"{name}.small"
        scale = [f"{name}.scale", f"{name}.zero"]
        yield helper.make_node("QuantizeLinear", [source, *scale], [f"{name}.levels"])

    def product(self, source: str, name: str, product: str) -> NodeProto:
        """Return the product of integers, as floats."""
        inputs = [f"{source}.levels", f"{name}.integers", f"{source}.scale", f"{name}.scales"]
        return fused("MatMulIntegerToFloat", [*inputs, f"{source}.zero"], [product])


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
    operators = list(nodes(form))
    used = {name for node in operators for name in node.input}
    graph = helper.make_graph(
        operators,
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
