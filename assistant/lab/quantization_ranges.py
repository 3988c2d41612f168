"""Quantization ranges: between which values the inputs of an embedding model lie, measured.

`python3 -m assistant.lab.quantization_ranges MODEL < TEXTS > ranges.json`, with the name of a model
of this machine and a text per line as JSON. Done once: the ranges are the same on every machine,
and so are vectors.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from knowledge.embedding import e5, minilm
from knowledge.embedding.runtime import MultilingualRuntime, OnnxModel, Runtime
from knowledge.identifiers import LOCAL_MODEL, MULTILINGUAL_MODEL

# A channel is an outlier when it reaches beyond this many times what the median channel does.
OUTLIER = 2.0
MODELS: dict[str, type[OnnxModel]] = {
    LOCAL_MODEL: Runtime,
    MULTILINGUAL_MODEL: MultilingualRuntime,
}


def write_exact(model: OnnxModel, folder: Path) -> Path:
    """Write the model's exact graph; return where it is."""
    weights = model.recipe.weights()
    if isinstance(model, MultilingualRuntime):
        e5.make(weights, folder, ranges=None)
    else:
        minilm.make(weights, folder)
    return folder / "model.onnx"


def inputs(model: onnx.ModelProto) -> dict[str, str]:
    """Return weight → the value it is multiplied with."""
    operators = {"MatMul", "Attention"}
    return {node.input[1]: node.input[0] for node in model.graph.node if node.op_type in operators}


def measure(graph: Path, tokens: Sequence[Sequence[int]]) -> dict[str, dict[str, Any]]:
    """Return low, high and the outliers of each input, the outliers already made smaller."""
    model = onnx.load(graph, load_external_data=False)
    values = inputs(model)
    names = sorted(set(values.values()))
    for name in names:
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    watched = graph.with_suffix(".watched")  # beside its weights
    onnx.save(model, watched)
    session = onnxruntime.InferenceSession(str(watched))
    wanted = [each.name for each in session.get_inputs()]
    lows: dict[str, NDArray[np.float32]] = {}
    highs: dict[str, NDArray[np.float32]] = {}
    for text in tokens:
        ids = np.array([text], np.int32)
        given = {"ids": ids, "mask": np.ones_like(ids)}
        outputs = session.run(names, {name: given[name] for name in wanted})
        for name, output in zip(names, outputs, strict=True):
            lows[name] = np.minimum(lows.get(name, 0), output[0].min(axis=0))
            highs[name] = np.maximum(highs.get(name, 0), output[0].max(axis=0))
    return {weight: entry(lows[value], highs[value]) for weight, value in values.items()}


def entry(low: NDArray[np.float32], high: NDArray[np.float32]) -> dict[str, Any]:
    """Return what is to be known of one input, from the extremes of each channel."""
    reach = np.maximum(np.abs(low), np.abs(high))
    factors = np.maximum(1, reach / (OUTLIER * np.median(reach))).astype(float).round(2)
    return {
        "low": round(float((low / factors).min()), 4),
        "high": round(float((high / factors).max()), 4),
        "smaller": {
            str(channel): factors[channel] for channel in np.flatnonzero(factors > 1).tolist()
        },
    }


def main() -> None:
    """Measure the model that is named with the texts that are piped in."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")
    django.setup()
    model = MODELS[sys.argv[1]]()
    tokens = [model.ids(json.loads(line), "passage") for line in sys.stdin]
    with tempfile.TemporaryDirectory() as folder:
        ranges = measure(write_exact(model, Path(folder)), tokens)
    lines = [f" {json.dumps(name)}: {json.dumps(values)}" for name, values in ranges.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
