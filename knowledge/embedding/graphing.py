"""Graphing: nodes of ONNX Runtime's own operators, and weights in a file beside the graph."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper

HEADS = 12
ALIGNMENT = 4096  # of a memory page: a mapped tensor must begin at one


def fused(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeProto:
    """Return a node of ONNX Runtime's own operators."""
    return helper.make_node(operator, inputs, outputs, domain="com.microsoft", **attributes)


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
