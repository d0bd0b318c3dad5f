# SPDX-License-Identifier: Apache-2.0
"""tssa's own runtime: libtssa.so of build/release."""

from __future__ import annotations

from typing import Any

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
            self.session = Session(self.model, compile=self.compile)
        except TssaError as error:
            raise Unsupported(str(error)) from None

    def load(self, inputs: list[Data]) -> Call:
        values = [Value.of(self.context, copied(value)) for value in inputs]
        return Call(self.session, values, prebound=not self.task.model.has_sequences)

    def call(self, loaded: Call) -> Call:
        loaded()
        return loaded

    def outputs(self, result: Call) -> list[Any]:
        return [value.to_python() for value in result.outputs()]

    def counts(self, loaded: Call) -> dict[str, int]:
        session = Session(self.model, profile=True, compile=self.compile)
        first_set = self.task.model.sets[0].inputs
        session.run([Value.of(self.context, copied(value)) for value in first_set])
        return {"steps": sum(step["args"]["count"] for step in session.profile())}
