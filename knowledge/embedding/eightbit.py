"""Eight bit: multiplies with weights as integers, twice as fast as with floats.

Per output, a weight is an integer from -63 to 63 times a scale: seven bits, because processors
without VNNI add two products of an eight-bit weight in sixteen bits, where they overflow; so every
machine makes the same vectors. What comes in is an integer from 0 to 255 times a fixed scale. Its
range was measured beforehand (`knowledge.embedding.ranges`), so that a vector does not depend on
the texts beside it. A few channels reach far beyond the others and would take the range for
themselves: they are made smaller, and their weights larger by as much (after Xiao et al. 2023,
"SmoothQuant", which does so with all channels; here only those outside twice the median).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper

from knowledge.embedding.graphing import HEADS, fused
from knowledge.embedding.tensors import LAYERS, Weights

RANGES = Path(__file__).with_name("ranges.json")
LARGEST = 63
LEVELS = 255
PARTS = ("query", "key", "value")


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
