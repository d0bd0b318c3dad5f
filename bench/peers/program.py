# SPDX-License-Identifier: Apache-2.0
"""A program: a PyTorch module in imperative form, and the ONNX model it must agree with."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import numpy as np
import torch

# An input or output of forward(): a tensor, or a list where the model has a sequence.
Value = torch.Tensor | list[torch.Tensor]

# The model's initializers, those of subgraphs too, by name.
Weights = dict[str, np.ndarray]

DEFAULT_BATCH = 1
DEFAULT_LENGTH = 50


@dataclass(frozen=True)
class Program:
    """One row of programs/table.py.

    forward() of its module takes the model's inputs in the model's order and returns a tuple
    of its outputs.  A detector returns a list with one tensor per image for each output, at
    batch 1 too.  Weights are buffers of the module; no input is written.
    """

    name: str
    model: str  # in models/registry.py
    module: str  # FILE.CLASS in programs; read when it is wanted: some need torchvision
    batches: tuple[int, ...] = ()  # what the batch sweep measures
    lengths: tuple[int, ...] = ()  # what the length sweep measures
    workload: bool = False  # one of the eight, not a micro program
    standard: bool = True  # False: only when it is named, or with --all

    def module_class(self) -> type[torch.nn.Module]:
        file, name = self.module.split(".")
        return getattr(importlib.import_module(f"bench.peers.programs.{file}"), name)

    def make(self, weights: Weights) -> torch.nn.Module:
        return self.module_class()(weights)

    def model_name(self, batch: int = DEFAULT_BATCH, length: int = DEFAULT_LENGTH) -> str:
        """The name of the model of these sizes, as models/build.py takes it."""
        name = self.model
        if batch != DEFAULT_BATCH:
            name += f"_b{batch}"
        if length != DEFAULT_LENGTH:
            name += f"_l{length}"
        return name


@dataclass(frozen=True)
class Case:
    """A program at a size."""

    program: Program
    batch: int
    length: int

    @property
    def model(self) -> str:
        return self.program.model_name(self.batch, self.length)
