"""BERT: writes models of that kind as ONNX graphs, exact or with products of eight-bit integers.

Weights go into files beside the graphs and not into them: the runtime maps those into memory, and
processes share their pages. The graphs use ONNX Runtime's own operators (`com.microsoft`) where
they fuse what BERT does layer by layer.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper

HEADS, DIMENSIONS = 12, 384
PARTS = ("query", "key", "value")
EPSILON = 1e-12  # layer_norm_eps of both models' config.json
ALIGNMENT = 4096  # of a memory page: a mapped tensor must begin at one
LEVELS, LARGEST = 255, 63  # of an input's integers; of a weight's

Weights = dict[str, NDArray[np.float32]]


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

    weights: dict[str, NDArray[Any]]  # its own, beside the model's

    def dense(self, source: str, name: str) -> Iterator[NodeProto]:
        """Yield the product of `source` and a weight; its bias is added by the node after it."""

    def attention(self, source: str, layer: int) -> Iterator[NodeProto]:
        """Yield a layer's attention, its weights and biases included."""


class Exact:
    """In 32-bit floats."""

    def __init__(self, *, masked: bool = True) -> None:
        self.mask = ["mask"] if masked else []
        self.weights: dict[str, NDArray[Any]] = {}

    def dense(self, source: str, name: str) -> Iterator[NodeProto]:
        """Yield one product."""
        yield helper.make_node("MatMul", [source, name], [f"{name}.product"])

    def attention(self, source: str, layer: int) -> Iterator[NodeProto]:
        """Yield it all as one node."""
        weights = [f"{layer}.qkv", f"{layer}.qkv.bias"]
        yield fused(
            "Attention", [source, *weights, *self.mask], [f"{layer}.attended"], num_heads=HEADS
        )


class EightBit:
    """The weights as integers, and the nodes that multiply with them."""

    def __init__(self, weights: Weights, ranges: Path) -> None:
        self.exact = weights
        self.ranges: dict[str, dict[str, Any]] = json.loads(ranges.read_text(encoding="utf-8"))
        self.weights: dict[str, NDArray[Any]] = {}
        for layer in range(count_layers(weights)):
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


def count_layers(weights: Mapping[str, object]) -> int:
    """Return how many layers there are weights of."""
    return sum(name.endswith(".qkv.bias") for name in weights)


def layer_nodes(form: Form, layers: int) -> Iterator[NodeProto]:
    """Yield what makes `states` of `hidden`: float, (batch, tokens, dimensions)."""
    hidden = "hidden"
    for layer in range(layers):
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


def assemble(
    name: str, operators: Sequence[NodeProto], tensors: Iterable[TensorProto], *, opset: int = 17
) -> ModelProto:
    """Return the whole model, with those of the tensors that it uses.

    Ids come in, and a mask (int32, batch by tokens) where a node reads it.
    """
    shape = ["batch", "tokens"]
    used = {name for node in operators for name in node.input}
    graph = helper.make_graph(
        operators,
        name,
        [
            helper.make_tensor_value_info(name, TensorProto.INT32, shape)
            for name in ("ids", "mask")
            if name in used
        ],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, [*shape, DIMENSIONS])],
        initializer=[tensor for tensor in tensors if tensor.name in used],
    )
    versions = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=versions, ir_version=8 if opset < 21 else 10)
