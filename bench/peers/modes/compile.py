# SPDX-License-Identifier: Apache-2.0
"""torch.compile: Dynamo and Inductor."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config
from torch._dynamo.utils import counters

from bench.peers.modes.base import Task, Unsupported
from bench.peers.modes.eager import Eager
from bench.peers.program import Value


class Compile(Eager):
    def __init__(self, task: Task, mode: str) -> None:
        if task.device == "cpu" and not shutil.which("g++"):
            raise Unsupported("Inductor needs g++ on the CPU, and there is none")
        # So that the profiler sees the kernels; it costs some ten nanoseconds for each.
        torch._inductor.config.cpp.enable_kernel_profile = True
        self.mode = mode
        self.graphs = task.device == "cuda" and mode in ("reduce-overhead", "max-autotune")
        super().__init__(task)

    def transform(self, module: torch.nn.Module) -> Callable[..., tuple[Value, ...]]:
        return torch.compile(module, mode=self.mode)

    def call(self, loaded: list[Value]) -> Any:
        if self.graphs:
            torch.compiler.cudagraph_mark_step_begin()
        return super().call(loaded)

    def counts(self, loaded: list[Value]) -> dict[str, int]:
        graphs = counters["stats"]["unique_graphs"]
        return {**super().counts(loaded), "graphs": graphs}
