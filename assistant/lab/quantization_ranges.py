"""Ranges: measures between which values the model's inputs lie, on texts of many kinds.

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
    places = inputs(model)
    watched = sorted(set(places.values()))
    for name in watched:
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    onnx.save(model, f"{graph}.watched")  # beside its weights
    session = onnxruntime.InferenceSession(f"{graph}.watched")
    lows: dict[str, NDArray[np.float32]] = {}
    highs: dict[str, NDArray[np.float32]] = {}
    tokens = tokenizer()
    for text in texts:
        ids = np.array([windowed(tokens.encode(text).ids)], np.int32)
        found = session.run(watched, {"ids": ids, "mask": np.ones_like(ids)})
        for name, value in zip(watched, found, strict=True):
            lows[name] = np.minimum(lows.get(name, 0), value[0].min(axis=0))
            highs[name] = np.maximum(highs.get(name, 0), value[0].max(axis=0))
    return {name: entry(lows[value], highs[value]) for name, value in places.items()}


def entry(low: NDArray[np.float32], high: NDArray[np.float32]) -> dict[str, Any]:
    """Return what is to be known of one input, from the extremes of each channel."""
    reach = np.maximum(np.abs(low), np.abs(high))
    factors = np.maximum(1, reach / (OUTLIER * np.median(reach))).round(2)
    return {
        "low": round(float((low / factors).min()), 4),
        "high": round(float((high / factors).max()), 4),
        "smaller": {str(each): float(factors[each]) for each in np.flatnonzero(factors > 1)},
    }


if __name__ == "__main__":
    measured = measure(sys.argv[1], [json.loads(line) for line in sys.stdin])
    lines = [f" {json.dumps(name)}: {json.dumps(said)}" for name, said in measured.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")
