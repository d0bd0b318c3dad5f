"""Image normalisation that swaps the colour channels by two column writes.

    dup = src.clone()
    dup[..., 0] = src[..., 2]
    dup[..., 2] = src[..., 0]
    return (dup - mean) * scale

Both reads are of `src`, not of the partly written `dup`.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import uniform
from models.lib.program import Program, Rng, Size, Values


class Normalize(Program):
    """src [height, width, 3], mean and scale scalars -> [height, width, 3].

    `form` is the encoding of the column writes (see idioms.assign_select).
    """

    name = "normalize"

    def __init__(
        self,
        height: int = 800,
        width: int = 1333,
        mean: float = 0.0,
        scale: float = 1.0,
        form: str = "elements",
    ) -> None:
        self.height, self.width = height, width
        self.mean, self.scale, self.form = mean, scale, form

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("normalize")
        src = g.Identity(g.input("src", np.float32, ["height", "width", 3]))
        mean = g.input("mean", np.float32, [])
        scale = g.input("scale", np.float32, [])
        dup = g.Identity(src)
        for to, source in ((0, 2), (2, 0)):
            channel = im.select(g, src, 2, source)
            dup = im.assign_column(g, dup, to, channel, self.form, rank=3)
        g.output((dup - mean) * scale, "out", ["height", "width", 3])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        src = uniform(rng, self.height, self.width, 3)
        return [src, np.array(self.mean, np.float32), np.array(self.scale, np.float32)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        src, mean, scale = inputs
        return [(src[..., ::-1] - mean) * scale]
