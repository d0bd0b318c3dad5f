# SPDX-License-Identifier: Apache-2.0
"""OpenVINO on the CPU: the model as it is, in full precision, tuned for latency."""

from __future__ import annotations

from typing import Any

import openvino

from bench.peers.modes.base import Runner, Task
from bench.peers.modes.ort import copied
from models.lib.data import Data


class OpenVino(Runner):
    """Each copy of the inputs has a request of its own."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        settings = {
            "INFERENCE_NUM_THREADS": task.threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
        }
        self.compiled = openvino.Core().compile_model(str(task.model.path), "CPU", settings)

    def load(self, inputs: list[Data]) -> Any:
        request = self.compiled.create_infer_request()
        arrays = [copied(value) for value in inputs]
        used = {name for port in self.compiled.inputs for name in port.get_names()}
        for name, array in zip(self.task.model.input_names, arrays):
            if name in used:
                request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        return request, arrays  # whose memory the request reads

    def call(self, loaded: Any) -> Any:
        loaded[0].infer(share_outputs=True)
        return loaded[0]

    def outputs(self, result: Any) -> list[Data]:
        ports = range(len(self.compiled.outputs))
        return [result.get_output_tensor(k).data.copy() for k in ports]
