#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What share of a card's copy bandwidth kernels reach that read 64 MiB and write as much.

    bench/peers/bandwidth.py [--record STEM]

Each program, and PyTorch's copy of the same bytes, is asked for 20 times in a row in one
stream, in alternating blocks, and timed by the card's events; values are on the card. What is
printed is the medians of blocks: us per call, and the time that a copy of the bytes takes as a
share of it. Every program's result is checked against PyTorch's first. Status: 1 when one is
wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch

sys.path[0] = str(Path(__file__).resolve().parents[2])

from bench.peers.modes.tssa import LIBRARY  # noqa: E402
from bench.tssa_ctypes import (  # noqa: E402
    COMPILE_WAIT,
    Call,
    Context,
    Library,
    Model,
    Session,
    Value,
)
from models.lib.builder import Builder  # noqa: E402
from models.programs.normalize import Normalize  # noqa: E402

MIB = 64
SIDE = 4096  # of a square of float32 that is 64 MiB
BLOCKS, CALLS = 7, 20


@dataclass
class Case:
    name: str
    model: onnx.ModelProto
    inputs: list[torch.Tensor]
    expected: Callable[..., torch.Tensor]


def square(name: str, body: Callable, expected: Callable) -> Case:
    """A program of one matrix."""
    g = Builder(name)
    x = g.input("x", np.float32, ["rows", SIDE])
    out = body(g, x)
    g.output(out, "out", list(out_dims(name)))
    return Case(name, g.model(), [torch.randn(SIDE, SIDE, device="cuda")], expected)


def out_dims(name: str) -> tuple[str | int, ...]:
    if name == "argmax":
        return ("rows",)
    return (SIDE, "rows") if name == "transpose" else ("rows", SIDE)


def normalize() -> Case:
    width = SIDE // 3
    source = torch.randn(SIDE, width, 3, device="cuda")
    numbers = [torch.tensor(0.5, device="cuda"), torch.tensor(2.0, device="cuda")]
    return Case(
        "normalize",
        Normalize(SIDE, width, 0.5, 2.0).build(1, 1),
        [source, *numbers],
        lambda x, mean, scale: (x.flip(-1) - mean) * scale,
    )


def cases() -> list[Case]:
    norm = torch.nn.functional.layer_norm
    ones, zeros = np.ones(SIDE, np.float32), np.zeros(SIDE, np.float32)
    return [
        square(
            "relu(2x + 1)", lambda g, x: g.Relu(x * 2.0 + 1.0), lambda x: torch.relu(2 * x + 1)
        ),
        square("exp", lambda g, x: g.Exp(x), torch.exp),
        square("sigmoid", lambda g, x: g.Sigmoid(x), torch.sigmoid),
        square("transpose", lambda g, x: g.Transpose(x, perm=[1, 0]), lambda x: x.t()),
        square("softmax", lambda g, x: g.Softmax(x, axis=-1), lambda x: torch.softmax(x, -1)),
        square(
            "layer_norm",
            lambda g, x: g.LayerNormalization(
                x, g.const(ones, np.float32), g.const(zeros, np.float32), axis=-1
            ),
            lambda x: norm(x, (SIDE,)),
        ),
        square(
            "argmax",
            lambda g, x: g.ArgMax(x, axis=-1, keepdims=0),
            lambda x: torch.argmax(x, -1),
        ),
        normalize(),
    ]


class Program:
    """A case in tssa, whose runs only ask for work."""

    def __init__(self, context: Context, case: Case, stream: torch.cuda.Stream) -> None:
        model = Model(context, case.model.SerializeToString())
        model.optimize(2)
        self.context, self.tensors = context, list(case.inputs)
        self.session = Session(model, False, COMPILE_WAIT, "cuda")
        self.call = Call(
            self.session, [self.borrow(t) for t in case.inputs], stream=stream.cuda_stream
        )
        self.call()
        shapes = [torch.from_numpy(made) for made in self.call.to_python()]
        self.results = [torch.empty_like(made, device="cuda") for made in shapes]
        torch.cuda.synchronize()
        self.call.give_outputs([self.borrow(tensor) for tensor in self.results])

    def borrow(self, tensor: torch.Tensor) -> Value:
        dtype = np.dtype(str(tensor.dtype).removeprefix("torch."))
        size = tensor.numel() * tensor.element_size()
        shape = tuple(tensor.shape)
        return Value.on_device(self.context, "cuda", dtype, shape, tensor.data_ptr(), size)

    def is_right(self, case: Case) -> bool:
        self.call()
        torch.cuda.synchronize()
        expected = case.expected(*case.inputs)
        if expected.dtype == torch.int64:
            return torch.equal(self.results[0], expected)
        return torch.allclose(self.results[0], expected, rtol=1e-4, atol=1e-5)

    def copied_bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in [*self.tensors, *self.results])


def block(call: Callable[[], None], stream: torch.cuda.Stream) -> float:
    """us per call, by the card."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record(stream)
    for _ in range(CALLS):
        call()
    end.record(stream)
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / CALLS


def measure(program: Program, stream: torch.cuda.Stream) -> tuple[list[float], list[float]]:
    """Of the program, and of a copy that reads and writes as many bytes."""
    half = torch.empty(program.copied_bytes() // 2, dtype=torch.uint8, device="cuda")
    to = torch.empty_like(half)

    def copy() -> None:
        with torch.cuda.stream(stream):
            to.copy_(half)

    for call in (program.call, copy):
        block(call, stream)
    pairs = [(block(program.call, stream), block(copy, stream)) for _ in range(BLOCKS)]
    return [p[0] for p in pairs], [p[1] for p in pairs]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", type=Path, metavar="STEM")
    args = parser.parse_args()
    from bench.peers.machine import describe

    context, stream = Context(Library(str(LIBRARY)), 1), torch.cuda.Stream()
    found, wrong = [], False
    for case in cases():
        program = Program(context, case, stream)
        if not program.is_right(case):
            print(f"{case.name}: not what PyTorch computes")
            wrong = True
            continue
        own, copy = measure(program, stream)
        row = {
            "name": case.name,
            "us": float(np.median(own)),
            "copy_us": float(np.median(copy)),
        }
        found.append(row | {"blocks_us": own, "copy_blocks_us": copy})
        share = 100 * row["copy_us"] / row["us"]
        line = f"{case.name:14} {row['us']:7.1f} us   a copy {row['copy_us']:7.1f}"
        print(f"{line}   {share:5.1f} %   {program.session.counts()}", flush=True)
    if args.record:
        record = {"machine": describe("cuda", 1), "mib": MIB, "rows": found}
        args.record.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
