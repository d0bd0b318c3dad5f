# SPDX-License-Identifier: Apache-2.0
"""PyTorch, operator by operator; what the other modes of PyTorch are made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bench.peers import trace
from bench.peers.data import to_numpy, to_torch
from bench.peers.modes.base import Runner, Task
from bench.peers.program import Value
from models.lib.data import Data


class Eager(Runner):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        torch.set_num_threads(task.threads)
        module = task.program.make(task.model.weights).to(task.device).eval()
        self.function = self.transform(module)

    def transform(self, module: torch.nn.Module) -> Callable[..., tuple[Value, ...]]:
        return module

    def load(self, inputs: list[Data]) -> list[Value]:
        return [to_torch(value, self.task.device) for value in inputs]

    def call(self, loaded: list[Value]) -> Any:
        result = self.function(*loaded)
        if self.task.device == "cuda":
            torch.cuda.synchronize()
        return result

    def outputs(self, result: Any) -> list[Data]:
        return [to_numpy(value) for value in result]

    def inputs(self, loaded: list[Value]) -> list[Data]:
        return [to_numpy(value) for value in loaded]

    def device_bytes(self, loaded: list[Value]) -> int:
        return trace.peak_device_bytes(lambda: self.call(loaded))

    def counts(self, loaded: list[Value]) -> dict[str, int]:
        return trace.torch_counts(lambda: self.call(loaded), self.task.device)
