# SPDX-License-Identifier: Apache-2.0
"""tssa's own runtime: libtssa.so of build/release.

On a card values are in the host's memory, so that copies there and back are part of a call, or
on the card, as PyTorch's are. The table of modes says which (`host_values`), and so do records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from bench.peers.modes.base import Runner, Task, Unsupported
from bench.peers.modes.ort import copied
from bench.peers.paths import ROOT
from bench.tssa_ctypes import (
    COMPILE_OFF,
    COMPILE_WAIT,
    Call,
    Context,
    Library,
    Model,
    Session,
    TssaError,
    Value,
)
from models.lib.data import Data

LIBRARY = ROOT / "build/release/libtssa.so"


class Tssa(Runner):
    """Each copy of the inputs has a call of its own, with outputs that are written again. What
    is optimized has its kernels compiled, too."""

    def __init__(self, task: Task, level: int) -> None:
        super().__init__(task)
        if not LIBRARY.exists():
            raise Unsupported("build/release/libtssa.so is not there; make build makes it")
        self.context = Context(Library(str(LIBRARY)), task.threads)
        try:
            self.model = Model(self.context, str(task.model.path))
            self.model.optimize(level)
            self.compile = COMPILE_WAIT if level else COMPILE_OFF
            self.session = self.make_session()
        except TssaError as error:
            raise Unsupported(str(error)) from None

    def make_session(self, profile: bool = False) -> Session:
        return Session(self.model, profile, self.compile, self.task.device)

    def place(self, inputs: list[Data]) -> list[Value]:
        return [Value.of(self.context, copied(value)) for value in inputs]

    def load(self, inputs: list[Data]) -> Call:
        prebound = not self.task.model.has_sequences
        return Call(self.session, self.place(inputs), prebound)

    def call(self, loaded: Call) -> Call:
        loaded()
        return loaded

    def outputs(self, result: Call) -> list[Any]:
        return [value.to_python() for value in result.outputs()]

    def counts(self, loaded: Call) -> dict[str, int]:
        if self.task.device != "cpu":
            self.call(loaded)
            return device_counts(self.session.counts())
        session = self.make_session(profile=True)
        session.run(self.place(self.task.model.sets[0].inputs))
        return {"steps": sum(step["args"]["count"] for step in session.profile())}


class TssaOnCard(Tssa):
    """Inputs and outputs are tensors of PyTorch's on the card; outputs have the shapes of what
    the first run of a copy of the inputs makes."""

    def load(self, inputs: list[Data]) -> Call:
        values, tensors = [], []
        for data in inputs:
            tensors.append(torch.from_numpy(copied(data)).cuda())
            values.append(self.borrow(tensors[-1]))
        call = Call(self.session, values)
        call()
        for made in call.to_python():
            tensors.append(torch.empty_like(torch.from_numpy(made), device="cuda"))
        call.give_outputs([self.borrow(tensor) for tensor in tensors[len(inputs) :]])
        call.tensors = tensors
        torch.cuda.synchronize()
        return call

    def borrow(self, tensor: torch.Tensor) -> Value:
        dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
        size = tensor.numel() * tensor.element_size()
        shape = tuple(tensor.shape)
        return Value.on_device(
            self.context, "cuda", dtype, shape, tensor.data_ptr(), max(size, 1)
        )

    def outputs(self, result: Call) -> list[Any]:
        return [t.cpu().numpy() for t in result.tensors[-self.session.n_outputs :]]


def device_counts(work: dict[str, int]) -> dict[str, int]:
    """By the keys of trace.py; calls of libraries where there are some."""
    counts = {
        "kernels": work["launches"],
        "calls": work["library_calls"],
        "memcpys": work["copies"],
    }
    return {what: count for what, count in counts.items() if count or what != "calls"}
