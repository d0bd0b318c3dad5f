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

import torch

from bench.peers import check, data
from bench.peers.paths import MODELS, ROOT
from bench.peers.program import Program
from bench.peers.programs.micro import Micro
from bench.peers.programs.table import PROGRAMS

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
            if issubclass(program.make, Micro) and folder.is_dir():
                self.assert_agrees(program, folder)

    def test_other_sizes(self) -> None:
        sized = [(p, p.model_name(batch=BATCH)) for p in PROGRAMS if p.batches]
        sized += [(p, p.model_name(length=LENGTH)) for p in PROGRAMS if p.lengths]
        with tempfile.TemporaryDirectory() as out:
            build_models(Path(out), [name for _, name in sized])
            for program, name in sized:
                self.assert_agrees(program, Path(out) / name)


if __name__ == "__main__":
    unittest.main()
