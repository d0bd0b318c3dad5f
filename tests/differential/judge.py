# SPDX-License-Identifier: Apache-2.0
"""Runs a program in every way there is, and says where they disagree.

The reference is the original in ONNX Runtime without optimizations.  Compared with it are the
original in tssa at -O0 and -O2, and what tssa-opt -O2 writes, in ONNX Runtime without and with
optimizations (the latter only where the original's results do not depend on them).  At -O2 tssa
runs it with compiled kernels as well, on two threads, and on devices with memory of their own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime

from .compare import difference
from .generate import Case, Output
from .text import program_text

LEVELS = onnxruntime.GraphOptimizationLevel
PLAIN, OPTIMIZED = LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_ALL
REWRITE_LEVEL = 2
CARD = "TSSA_CUDA_LIBRARIES" in os.environ  # a driver made for tests, which needs no card
# What such a device adds up in another order than the CPU.
EXPANDED = (b"RNN", b"GRU", b"LSTM")

# The stages, in order. In the first a program that fails, or kills the runtime, is discarded.
REFERENCE, REFERENCE_OPTIMIZED = "original", "original, optimized"
STAGES = (
    REFERENCE,
    REFERENCE_OPTIMIZED,
    "tssa -O0",
    "tssa -O2",
    "rewriting",
    "rewritten",
    "rewritten, optimized",
)


@dataclass
class Finding:
    stage: str
    kind: str  # "value", "shape", ..., "failed", "refused", "crashed", "hung"
    detail: str
    output: str = ""
    set: int = 0

    def __str__(self) -> str:
        where = f"{self.output}: " if self.output else ""
        return f"{self.stage}: {self.kind}: {where}{self.detail}"

    def is_like(self, other: Finding) -> bool:
        return (self.stage, self.kind) == (other.stage, other.kind)


@dataclass
class Verdict:
    refused: str = ""  # why ONNX Runtime did not run the original
    findings: list[Finding] = field(default_factory=list)
    passes: Counter = field(default_factory=Counter)  # those that changed something
    unstable: str = ""  # how ONNX Runtime's optimizations change the original's results


def one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:600] if lines else type(error).__name__


def ort_session(content: bytes, level) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run_ort(content: bytes, level, sets: list[dict]) -> list[list]:
    session = ort_session(content, level)
    names = {i.name for i in session.get_inputs()}
    results = []
    for inputs in sets:
        given = {name: value for name, value in inputs.items() if name in names}
        results.append(session.run(None, given))
    return results


class Judge:
    """Holds the library. `stage` is told what comes next, so that a crash can be blamed."""

    def __init__(self, library: str, stage: Callable[[int], None] = lambda number: None):
        import tssa_ctypes  # of the bench folder

        self.tssa = tssa_ctypes
        loaded = tssa_ctypes.Library(library)
        self.context = tssa_ctypes.Context(loaded, threads=1)
        self.two_threads = tssa_ctypes.Context(loaded, threads=2)  # some passes are for several
        self.stage = stage

    def judge(self, case: Case, only: str = "") -> Verdict:
        """Of all stages, or of one and of what it is compared with."""
        content = case.model.SerializeToString()
        verdict = Verdict()
        chosen = STAGES.index(only) if only else None
        self.stage(0)
        try:
            reference = run_ort(content, PLAIN, case.sets)
        except Exception as error:
            verdict.refused = one_line(error)
            return verdict
        if chosen in (None, 6):
            self.stage(1)
            try:
                again = run_ort(content, OPTIMIZED, case.sets)
                verdict.unstable = str(self.compared(case, "", again, reference) or "")
            except Exception as error:
                verdict.unstable = one_line(error)
        for number, way in ((2, self.run_plain), (3, self.run_optimized)):
            if chosen in (None, number):
                self.stage(number)
                self.check(verdict, number, case, reference, lambda way=way: way(content, case))
        if chosen is None or chosen >= 4:
            self.judge_rewritten(verdict, case, content, reference, chosen)
        return verdict

    def judge_rewritten(
        self, verdict: Verdict, case: Case, content: bytes, reference: list, chosen: int | None
    ) -> None:
        self.stage(4)
        try:
            rewritten = self.rewrite(content, verdict)
        except self.tssa.TssaError as error:
            verdict.findings.append(Finding(STAGES[4], "failed", one_line(error)))
            return
        for number, level in ((5, PLAIN), (6, OPTIMIZED)):
            if chosen not in (None, number) or (number == 6 and verdict.unstable):
                continue
            self.stage(number)
            run = lambda level=level: run_ort(rewritten, level, case.sets)  # noqa: E731
            self.check(verdict, number, case, reference, run)

    def values(self, case: Case) -> list:
        """What ONNX Runtime makes of the first set."""
        return run_ort(case.model.SerializeToString(), PLAIN, case.sets)[0]

    def rewritten(self, case: Case) -> list[str]:
        """The text of what is written, in a list: a text alone is a worker's error."""
        content = self.rewrite(case.model.SerializeToString(), Verdict())
        return [program_text(onnx.ModelProto.FromString(content))]

    def check(self, verdict: Verdict, number: int, case: Case, reference: list, run) -> None:
        try:
            results = run()
        except self.tssa.TssaError as error:
            found = Finding(STAGES[number], "failed", one_line(error))
        except Exception as error:
            kind = "refused" if "run" not in str(error)[:80] else "failed"
            found = Finding(STAGES[number], kind, one_line(error))
        else:
            found = self.compared(case, STAGES[number], results, reference)
        if found:
            verdict.findings.append(found)

    def compared(
        self, case: Case, stage: str, results: list[list], reference: list[list]
    ) -> Finding | None:
        for k, (actual, expected) in enumerate(zip(results, reference)):
            for info, a, e in zip(case.model.graph.output, actual, expected):
                promise = case.outputs.get(info.name, Output(True, True))
                found = difference(a, e, promise.exact, promise.zero_sign)
                if found:
                    return Finding(stage, *found, info.name, k)
        return None

    # ---- tssa ----

    def load(self, content: bytes, context=None):
        return self.tssa.Model(context or self.context, content)

    def run_tssa(
        self, model, case: Case, device: str | None = None, kernels: bool = False
    ) -> list[list]:
        when = self.tssa.COMPILE_WAIT if kernels else self.tssa.COMPILE_OFF
        session = self.tssa.Session(model, device=device, compile=when)
        names = model.input_names()
        results = []
        for inputs in case.sets:
            values = [self.tssa.Value.of(model.context, contiguous(inputs[n])) for n in names]
            call = self.tssa.Call(session, values, prebound=True)
            call()
            first = call.to_python()
            call.again()
            results.append(call.to_python())
            self.same(results[-1], first, "the run into memory that is given")
        return results

    def same(self, results: list, first: list, what: str) -> None:
        if any(difference(a, b, True, True) for a, b in zip(results, first)):
            raise RuntimeError(f"{what} differs from the one before")

    def run_plain(self, content: bytes, case: Case) -> list[list]:
        return self.run_tssa(self.load(content), case)

    def run_optimized(self, content: bytes, case: Case) -> list[list]:
        model = self.load(content)
        model.optimize(REWRITE_LEVEL)
        results = self.run_tssa(model, case)
        there = self.run_tssa(model, case, device="emulated")
        if any(op in content for op in EXPANDED):
            found = self.compared(case, "", there, results)
            if found:
                raise RuntimeError(f"on a device with memory of its own: {found}")
        else:
            for first, second in zip(results, there):
                self.same(second, first, "the run on a device with memory of its own")
        for compiled, first in zip(self.run_tssa(model, case, kernels=True), results):
            self.same(compiled, first, "the run with kernels")
        if CARD:
            self.run_on_card(model, case, results)
        model = self.load(content, self.two_threads)
        model.optimize(REWRITE_LEVEL)
        for threads, first in zip(self.run_tssa(model, case), results):
            self.same(threads, first, "the run on two threads")
        return results

    def run_on_card(self, model, case: Case, results: list[list]) -> None:
        """Often enough for runs to be recorded, and replayed."""
        often = Case(case.model, case.outputs, case.sets * 3)
        there = self.run_tssa(model, often, device="cuda", kernels=True)
        found = self.compared(case, "", there, results * 3)
        if found:
            raise RuntimeError(f"the run on a card: {found}")

    def rewrite(self, content: bytes, verdict: Verdict) -> bytes:
        model = self.load(content)
        model.optimize(REWRITE_LEVEL, self.tssa.TARGET_ONNX, verdict.passes)
        return model.to_bytes()


def contiguous(value: np.ndarray | list | None) -> np.ndarray | list | None:
    if value is None:
        return None
    if isinstance(value, list):
        return [contiguous(v) for v in value]
    return np.ascontiguousarray(value).reshape(value.shape)


def as_case(model: bytes, outputs: dict, sets: list[dict]) -> Case:
    return Case(onnx.ModelProto.FromString(model), outputs, sets)
