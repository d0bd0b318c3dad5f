# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: the model as it is, all of its own optimizations."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from bench.peers import trace
from bench.peers.modes.base import Runner, Task, Unsupported
from models.lib.data import Data


class Ort(Runner):
    """Inputs and outputs are bound where all are tensors, so that a call copies nothing."""

    def __init__(self, task: Task, provider: str) -> None:
        super().__init__(task)
        if provider not in onnxruntime.get_available_providers():
            raise Unsupported(f"ONNX Runtime {onnxruntime.__version__} has no {provider} here")
        self.provider = provider
        self.session = self.make_session(self.options())
        self.run = self.session._sess.run_with_iobinding

    def options(self) -> onnxruntime.SessionOptions:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = self.task.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return options

    def make_session(self, options: onnxruntime.SessionOptions) -> Any:
        providers = list(dict.fromkeys([self.provider, "CPUExecutionProvider"]))
        path = str(self.task.model.path)
        session = onnxruntime.InferenceSession(path, options, providers=providers)
        if self.provider not in session.get_providers():
            raise Unsupported(f"ONNX Runtime could not load its {self.provider}")
        return session

    def load(self, inputs: list[Data]) -> Any:
        names = self.task.model.input_names
        if self.task.model.has_sequences:
            return {name: copied(value) for name, value in zip(names, inputs)}
        binding = self.session.io_binding()
        for name, value in zip(names, inputs):
            array = onnxruntime.OrtValue.ortvalue_from_numpy(copied(value), self.task.device)
            binding.bind_ortvalue_input(name, array)
        for name in self.task.model.output_names:
            binding.bind_output(name, self.task.device)
        return binding

    def call(self, loaded: Any) -> Any:
        if isinstance(loaded, dict):
            return self.session.run(None, loaded)
        self.run(loaded._iobinding, None)
        return loaded

    def outputs(self, result: Any) -> list[Data]:
        return result if isinstance(result, list) else result.copy_outputs_to_cpu()

    def counts(self, loaded: Any) -> dict[str, int]:
        options = self.options()
        options.enable_profiling = True
        with tempfile.TemporaryDirectory() as folder:
            options.profile_file_prefix = str(Path(folder) / "profile")
            session = self.make_session(options)
            names = self.task.model.input_names
            session.run(None, dict(zip(names, self.task.model.sets[0].inputs)))
            return trace.ort_counts(Path(session.end_profiling()))


def copied(value: Data) -> Data:
    if isinstance(value, list):
        return [copied(element) for element in value]
    return np.array(value, order="C")
