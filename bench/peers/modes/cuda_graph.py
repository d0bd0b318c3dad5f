# SPDX-License-Identifier: Apache-2.0
"""Eager PyTorch captured in one CUDA graph, for programs that never ask the device."""

from __future__ import annotations

from typing import Any

import torch

from bench.peers.data import to_torch
from bench.peers.modes.base import Task
from bench.peers.modes.eager import Eager
from bench.peers.program import Value

WARM_UP = 3


class CudaGraph(Eager):
    """A call copies its inputs to where the graph reads them, and replays it."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.static = [to_torch(value, "cuda") for value in task.model.sets[0].inputs]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.function(*self.static)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = self.function(*self.static)

    def call(self, loaded: list[Value]) -> Any:
        for target, source in zip(flat(self.static), flat(loaded)):
            target.copy_(source)
        self.graph.replay()
        torch.cuda.synchronize()
        return self.result


def flat(values: list[Value]) -> list[torch.Tensor]:
    tensors = []
    for value in values:
        tensors += value if isinstance(value, list) else [value]
    return tensors
