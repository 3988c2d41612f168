"""Quantization ranges: between which values the inputs of the embedding model lie, measured.

`python3 -m assistant.lab.quantization_ranges GRAPH < TEXTS > ranges.json`, with the exact graph and
a text per line as JSON. Done once: `ranges.json` is the same on every machine, and so are vectors.
"""

import json
import sys
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from knowledge.embedding.runtime import tokenizer, windowed

# A channel is an outlier when it reaches beyond this many times what the median channel does.
OUTLIER = 2.0


def inputs(model: onnx.ModelProto) -> dict[str, str]:
    """Return weight → the value it is multiplied with."""
    operators = {"MatMul", "Attention"}
    return {node.input[1]: node.input[0] for node in model.graph.node if node.op_type in operators}


def measure(graph: str, texts: list[str]) -> dict[str, dict[str, Any]]:
    """Return low, high and the outliers of each input, the outliers already made smaller."""
    model = onnx.load(graph)
    values = inputs(model)
    names = sorted(set(values.values()))
    for name in names:
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    onnx.save(model, f"{graph}.watched")  # beside its weights
    session = onnxruntime.InferenceSession(f"{graph}.watched")
    lows: dict[str, NDArray[np.float32]] = {}
    highs: dict[str, NDArray[np.float32]] = {}
    tokens = tokenizer()
    for text in texts:
        ids = np.array([windowed(tokens.encode(text).ids)], np.int32)
        outputs = session.run(names, {"ids": ids, "mask": np.ones_like(ids)})
        for name, output in zip(names, outputs, strict=True):
            lows[name] = np.minimum(lows.get(name, 0), output[0].min(axis=0))
            highs[name] = np.maximum(highs.get(name, 0), output[0].max(axis=0))
    return {weight: entry(lows[value], highs[value]) for weight, value in values.items()}


def entry(low: NDArray[np.float32], high: NDArray[np.float32]) -> dict[str, Any]:
    """Return what is to be known of one input, from the extremes of each channel."""
    reach = np.maximum(np.abs(low), np.abs(high))
    factors = np.maximum(1, reach / (OUTLIER * np.median(reach))).round(2)
    return {
        "low": round(float((low / factors).min()), 4),
        "high": round(float((high / factors).max()), 4),
        "smaller": {
            str(channel): float(factors[channel]) for channel in np.flatnonzero(factors > 1)
        },
    }


if __name__ == "__main__":
    ranges = measure(sys.argv[1], [json.loads(line) for line in sys.stdin])
    lines = [f" {json.dumps(name)}: {json.dumps(values)}" for name, values in ranges.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
