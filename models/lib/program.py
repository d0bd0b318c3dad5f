"""What a workload has to provide."""

from __future__ import annotations

import abc

import numpy as np
import onnx

from models.lib.data import Data, rng_for

Rng = np.random.Generator
Size = int | None  # of an option; None where a program does not have it
Values = list[Data]  # one per input or output of the model


class Program(abc.ABC):
    """One workload: its ONNX form, its inputs, and an independent reference.

    `batch` and `length` are the defaults of the two size options; None means
    that the program has no such option and is always given None.
    """

    #: Seeds the parameters; the same for all sizes of a program.
    name: str
    batch: Size = None
    length: Size = None
    #: Number of test_data_set_K folders to write.
    data_sets: int = 1

    @abc.abstractmethod
    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        """The model in its imperative form, never simplified beforehand."""

    @abc.abstractmethod
    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        """One data set: an array, or a list of arrays, per model input."""

    def data_set(self, k: int, rng: Rng, batch: Size, length: Size) -> Values:
        """The inputs of test_data_set_k, for programs whose sets differ in kind."""
        return self.inputs(rng, batch, length)

    @abc.abstractmethod
    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        """The outputs, computed with numpy from the definition of the workload.

        It must not look at the ONNX graph: it is the oracle for it.
        """

    def rng(self, purpose: str) -> Rng:
        """A generator for parameters, independent of the size options."""
        return rng_for(self.name, purpose)
