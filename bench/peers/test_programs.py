# SPDX-License-Identifier: Apache-2.0
"""Every program agrees with its model, run eagerly and as TorchScript, at several sizes.

Models of other sizes than the standard ones are written to a temporary folder.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from bench.peers import check, data
from bench.peers.paths import MODELS, ROOT
from bench.peers.program import Program
from bench.peers.programs.lstm import LAYERS, Lstm
from bench.peers.programs.micro import Micro
from bench.peers.programs.nasrnn import NasRnn
from bench.peers.programs.seq2seq import GATES, Seq2Seq
from bench.peers.programs.table import PROGRAMS
from models.programs import lstm, nasrnn, seq2seq

BATCH = 4
LENGTH = 100


def build_models(out: Path, names: list[str]) -> None:
    """Write the models NAME_bB and NAME_lL with their data."""
    command = [sys.executable, ROOT / "models/build.py", "--out", out, *names]
    subprocess.run(command, check=True, capture_output=True, text=True)


def runs(module: torch.nn.Module, model: data.ModelData) -> Iterator[data.DataSet]:
    """For each data set the inputs after a call, and the outputs."""
    for data_set in model.sets:
        inputs = [data.to_torch(v) for v in data_set.inputs]
        with torch.inference_mode():
            outputs = module(*inputs)
        yield data.DataSet(
            [data.to_numpy(v) for v in inputs], [data.to_numpy(v) for v in outputs]
        )


class ProgramsTest(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", FutureWarning)  # jit.script is deprecated
        torch.set_num_threads(1)

    def assert_right(self, module: torch.nn.Module, model: data.ModelData) -> None:
        for expected, got in zip(model.sets, runs(module, model)):
            check.check_outputs(model.output_names, got.outputs, expected.outputs)
            check.check_outputs(model.input_names, got.inputs, expected.inputs)

    def assert_agrees(self, program: Program, folder: Path) -> None:
        with self.subTest(folder.name):
            model = data.read_model(folder)
            module = program.make(model.weights)
            self.assert_right(module, model)
            self.assert_right(torch.jit.script(module), model)

    def test_standard_sizes(self) -> None:
        for program in PROGRAMS:
            self.assert_agrees(program, MODELS / program.model_name())

    def test_small_models(self) -> None:
        """They have what the large ones lack: data for every branch, factors other than 1."""
        for program in PROGRAMS:
            folder = ROOT / f"models/{program.model}_small"
            if issubclass(program.module_class(), Micro) and folder.is_dir():
                self.assert_agrees(program, folder)

    def test_other_sizes(self) -> None:
        sized = [(p, p.model_name(batch=BATCH)) for p in PROGRAMS if p.batches]
        sized += [(p, p.model_name(length=LENGTH)) for p in PROGRAMS if p.lengths]
        with tempfile.TemporaryDirectory() as out:
            build_models(Path(out), [name for _, name in sized])
            for program, name in sized:
                self.assert_agrees(program, Path(out) / name)


class StrongWeightsTest(unittest.TestCase):
    """The models' weights are so weak that early layers and some gates hardly count.

    With stronger ones each matters; then the definition in numpy says what is right.
    """

    def setUp(self) -> None:
        self.rng = np.random.default_rng(0)
        torch.set_num_threads(1)

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.normal(0, 0.3, shape).astype(np.float32)

    def assert_close(self, module: torch.nn.Module, inputs: list, expected: list) -> None:
        got = module(*map(torch.from_numpy, inputs))
        for ours, wanted in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), wanted, rtol=1e-4, atol=1e-5)

    def test_nasrnn(self) -> None:
        right = nasrnn.NasRnn(hidden=32, length=4)
        right.w_ih, right.w_hh = self.normal(8, 32, 32), self.normal(8, 32, 32)
        weights = {"w_ih": right.w_ih, "w_hh": right.w_hh}
        inputs = [self.normal(4, 2, 32)]
        self.assert_close(NasRnn(weights), inputs, right.reference(inputs, 2, 4))

    def test_lstm(self) -> None:
        right, weights = lstm.Lstm(hidden=32, length=4), {}
        for name in ("w_ih", "w_hh", "b_ih", "b_hh"):
            strong = self.normal(*getattr(right, name).shape)
            setattr(right, name, strong)
            weights |= {f"{name}_{j}": strong[j] for j in range(LAYERS)}
        inputs = [self.normal(4, 2, 32)]
        self.assert_close(Lstm(weights), inputs, right.reference(inputs, 2, 4))

    def test_seq2seq_unforced(self) -> None:
        """Without `force`, as small here as the logits, the output layer decides."""
        right = seq2seq.Seq2Seq(hidden=32, vocabulary=40, length=6)
        names = ("embedding", "w_ih", "w_hh", "w_out", "b_out")
        right.w_ih, right.w_hh = right.w_ih * 20, right.w_hh * 20
        weights = {name: getattr(right, name) for name in names}
        for k, gate in enumerate(GATES):
            weights |= {f"b_ih_{gate}": right.b_ih[k], f"b_hh_{gate}": right.b_hh[k]}
        shapes = ((6, 1, 32), (6, 1, 40), (1, 32), (1, 32))
        inputs = [self.normal(*shape) for shape in shapes]
        module = Seq2Seq(weights)
        tokens = module(*map(torch.from_numpy, inputs))[0]
        right.tokens = lambda length: tokens.numpy()[:, 0]  # it compares what it decodes
        self.assert_close(module, inputs, right.reference(inputs, 1, 6))


if __name__ == "__main__":
    unittest.main()
