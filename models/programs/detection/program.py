"""The detectors as `Program`s for the model builder."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx

from models.lib.data import Data
from models.lib.program import Program
from models.programs.detection import fcos, params, reference, rtmdet, ssd, yolact, yolov3
from models.programs.detection import inputs as images
from models.programs.detection.inputs import Scene

_BUILDERS = {
    "yolov3": yolov3.build,
    "ssd": ssd.build,
    "yolact": yolact.build,
    "fcos": fcos.build,
    "rtmdet": rtmdet.build,
}

# One scene per data set: the usual one, a crowded one, and next to nothing.
_SCENES = (Scene(), Scene(objects=20), Scene(objects=1, quiet=4.0))
_SMALL_SCENES = (Scene(objects=7, quiet=4.0), Scene(objects=0, quiet=6.0))


class Detection(Program):
    """One network in one form; inputs are named maps, outputs dets, labels, ..."""

    batch = 1

    def __init__(
        self, network: str, unrolled: bool, small: bool = False, **changes: object
    ) -> None:
        """`changes` are fields of the parameter set that get another value."""
        self.name = network
        self.unrolled = unrolled
        standard = getattr(params, f"small_{network}" if small else network)()
        self.params = dataclasses.replace(standard, **changes)
        self.scenes = _SMALL_SCENES if small else _SCENES
        self.data_sets = len(self.scenes)

    def build(self, batch: int, length: int | None) -> onnx.ModelProto:
        form = "unrolled" if self.unrolled else "loop"
        return _BUILDERS[self.name](self.params, f"{self.name}_{form}", self.unrolled, batch)

    def data_set(
        self, k: int, rng: np.random.Generator, batch: int, length: int | None
    ) -> list[Data]:
        """Set 0 tiles one image over the batch, the others have different images."""
        if k == 0:
            maps = images.tiled(images.image(self.params, rng, self.scenes[k]), batch)
        else:
            maps = images.stacked(
                [images.image(self.params, rng, self.scenes[k]) for _ in range(batch)]
            )
        return list(maps.values())

    def inputs(self, rng: np.random.Generator, batch: int, length: int | None) -> list[Data]:
        return self.data_set(0, rng, batch, length)

    def reference(self, inputs: list[Data], batch: int, length: int | None) -> list[Data]:
        names = images.map_names(self.params)
        found = reference.detect(self.params, dict(zip(names, inputs, strict=True)))
        if batch == 1:
            return list(found[0])
        return [list(values) for values in zip(*found)]
