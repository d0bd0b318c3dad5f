# SPDX-License-Identifier: Apache-2.0
"""Reads the folders that models/build.py writes: inputs, expected outputs, weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from bench.peers.program import Value, Weights
from models.lib.data import Data, load_data


@dataclass(frozen=True)
class DataSet:
    inputs: list[Data]
    outputs: list[Data]


@dataclass(frozen=True)
class ModelData:
    path: Path  # model.onnx
    input_names: list[str]
    output_names: list[str]
    sets: list[DataSet]
    weights: Weights

    @property
    def has_sequences(self) -> bool:
        values = [*self.sets[0].inputs, *self.sets[0].outputs]
        return any(isinstance(value, list) for value in values)

    def bytes_moved(self) -> int:
        """Inputs and outputs of the first data set, and the weights."""
        first = self.sets[0]
        values = [*first.inputs, *first.outputs, *self.weights.values()]
        return sum(map(size_of, values))


def read_model(folder: Path) -> ModelData:
    model = onnx.load(folder / "model.onnx")
    graph = model.graph
    sets = [
        DataSet(
            read_values(data_set, "input", graph.input),
            read_values(data_set, "output", graph.output),
        )
        for data_set in sorted(folder.glob("test_data_set_*"))
    ]
    if not sets:
        raise FileNotFoundError(f"{folder} has no test data")
    return ModelData(
        folder / "model.onnx",
        [i.name for i in graph.input],
        [o.name for o in graph.output],
        sets,
        read_weights(graph),
    )


def read_values(data_set: Path, kind: str, infos: list[onnx.ValueInfoProto]) -> list[Data]:
    return [load_data(data_set / f"{kind}_{k}.pb", i.type) for k, i in enumerate(infos)]


def read_weights(graph: onnx.GraphProto) -> Weights:
    """The initializers of the graph and of its subgraphs."""
    weights = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                weights = read_weights(attribute.g) | weights
    return weights


def size_of(value: Data) -> int:
    return sum(map(size_of, value)) if isinstance(value, list) else value.nbytes


def to_torch(value: Data, device: str = "cpu") -> Value:
    """A copy."""
    if isinstance(value, list):
        return [to_torch(element, device) for element in value]
    return torch.tensor(np.array(value), device=device)


def to_numpy(value: Value) -> Data:
    if isinstance(value, (list, tuple)):
        return [to_numpy(element) for element in value]
    return value.detach().cpu().numpy()
