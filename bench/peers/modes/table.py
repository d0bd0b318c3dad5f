# SPDX-License-Identifier: Apache-2.0
"""The table of all modes, in the order in which they are made ready and shown."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from bench.peers.modes.base import Runner, Task

BOTH = ("cpu", "cuda")


@dataclass(frozen=True)
class Mode:
    name: str  # on the command line and in the JSON
    title: str  # in tables and charts
    runner: str  # FILE.CLASS in this folder
    options: dict[str, Any] = field(default_factory=dict)
    devices: tuple[str, ...] = BOTH
    after: str = ""  # not tried where that mode was too slow to make ready
    torch_cuda: bool = True  # on a card it wants PyTorch's CUDA
    host_values: tuple[str, ...] = ("cpu",)  # where inputs and outputs are the host's

    def start(self, task: Task) -> Runner:
        file, _, name = self.runner.partition(".")
        module = importlib.import_module(f"bench.peers.modes.{file}")
        return getattr(module, name)(task, **self.options)


def compiled(name: str, title: str, mode: str, after: str, *devices: str) -> Mode:
    return Mode(name, title, "compile.Compile", {"mode": mode}, devices, after)


def tssa(name: str, title: str, level: int) -> Mode:
    options = {"level": level}
    return Mode(name, title, "tssa.Tssa", options, torch_cuda=False, host_values=BOTH)


MODES: tuple[Mode, ...] = (
    Mode("eager", "eager", "eager.Eager"),
    Mode("script", "jit.script", "script.Script"),
    compiled("compile", "compile", "default", "", "cpu", "cuda"),
    # On the CPU there are no CUDA graphs to leave out.
    compiled("autotune", "compile max-autotune", "max-autotune", "compile", "cpu"),
    compiled(
        "autotune", "compile max-autotune", "max-autotune-no-cudagraphs", "compile", "cuda"
    ),
    compiled("compile-graphs", "compile + graphs", "reduce-overhead", "compile", "cuda"),
    compiled("autotune-graphs", "max-autotune + graphs", "max-autotune", "autotune", "cuda"),
    Mode("eager-graph", "eager in a CUDA graph", "cuda_graph.CudaGraph", devices=("cuda",)),
    Mode("ort", "ONNX Runtime", "ort.Ort", {"provider": "CPUExecutionProvider"}, ("cpu",)),
    Mode("ort", "ONNX Runtime", "ort.Ort", {"provider": "CUDAExecutionProvider"}, ("cuda",)),
    Mode("openvino", "OpenVINO", "openvino.OpenVino", devices=("cpu",)),
    tssa("tssa-O1", "tssa -O1", 1),
    tssa("tssa-O2", "tssa -O2", 2),
    Mode(
        "tssa-card", "tssa -O2, values on the card", "tssa.TssaOnCard", {"level": 2}, ("cuda",)
    ),
)


def modes_of(device: str) -> list[Mode]:
    return [mode for mode in MODES if device in mode.devices]
