"""What a workload has to provide."""

from __future__ import annotations

import abc

import numpy as np
import onnx

from models.lib.data import Data, rng_for


class Program(abc.ABC):
    """One workload: its ONNX form, its inputs, and an independent reference.

    `batch` and `length` are the defaults of the two size options; None means
    that the program has no such option and is always given None.
    """

    #: Seeds the parameters; the same for all sizes of a program.
    name: str
    batch: int | None = None
    length: int | None = None
    #: Number of test_data_set_K folders to write.
    data_sets: int = 1

    @abc.abstractmethod
    def build(self, batch: int | None, length: int | None) -> onnx.ModelProto:
        """The model in its imperative form, never simplified beforehand."""

    @abc.abstractmethod
    def inputs(
        self, rng: np.random.Generator, batch: int | None, length: int | None
    ) -> list[Data]:
        """One data set: an array, or a list of arrays, per model input."""

    def data_set(
        self, k: int, rng: np.random.Generator, batch: int | None, length: int | None
    ) -> list[Data]:
        """The inputs of test_data_set_k, for programs whose sets differ in kind."""
        return self.inputs(rng, batch, length)

    @abc.abstractmethod
    def reference(
        self, inputs: list[Data], batch: int | None, length: int | None
    ) -> list[Data]:
        """The outputs, computed with numpy from the definition of the workload.

        It must not look at the ONNX graph: it is the oracle for it.
        """

    def rng(self, purpose: str) -> np.random.Generator:
        """A generator for parameters, independent of the size options."""
        return rng_for(self.name, purpose)
