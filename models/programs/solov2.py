"""SOLOv2 post-processing: instance masks from dynamic kernels, ranked by matrix NMS.

Every grid cell of five levels predicts class scores and a 1x1 convolution kernel;
convolving the shared mask features with the kernel of a cell gives its mask.

    strides = ones(cells)
    strides[0:e0] *= 8;  strides[e0:e1] *= 8;  ...;  strides[e3:e4] *= 32

is the imperative part: a chain of in-place products over adjacent ranges.  A mask
must cover more pixels than the stride of its cell.  Matrix NMS then lowers a score
by the overlap with better masks of the same class, instead of removing it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.lib.data import CheckFailure, normal
from models.lib.nn import sigmoid
from models.lib.program import Program, Rng, Size, Values

SCORE = 0.1
MASK = 0.5
SIGMA = 2.0
KEEP_SCORE = 0.05
STRIDES = (8.0, 8.0, 16.0, 32.0, 32.0)
FORMS = ("elements", "nd", "concat", "elements", "concat")  # of the range writes


@dataclass(frozen=True)
class Config:
    """Sizes; the defaults are those of the network."""

    grids: tuple[int, ...] = (40, 36, 24, 16, 12)
    classes: int = 80
    channels: int = 128
    side: int = 80  # of the mask features
    before: int = 500  # masks that enter matrix NMS
    limit: int = 100  # masks in the result
    objects: int = 40


SMALL = Config(
    grids=(10, 8, 6, 4, 3), classes=5, channels=8, side=20, before=24, limit=8, objects=12
)


class SoloV2(Program):
    """cls_l [1, C, g, g], kernel_l [1, D, g, g], feats [1, D, s, s] of one image
    -> scores [K], labels [K] int64, masks [K, s, s] bool, by descending score.
    """

    name = "solov2"

    def __init__(self, small: bool = False) -> None:
        self.config = SMALL if small else Config()

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        config = self.config
        g = Builder("solov2")
        maps = [
            g.SequenceConstruct(
                *[
                    g.input(f"{kind}_{k}", np.float32, [1, width, size, size])
                    for k, size in enumerate(config.grids)
                ]
            )
            for kind, width in (("cls", config.classes), ("kernel", config.channels))
        ]
        feats = g.input("feats", np.float32, [1, config.channels, config.side, config.side])
        cls, kernels = self._rows(g, *maps)

        mask = cls > SCORE
        scores = im.mask_select(g, cls, mask, "gather")
        where = im.permute(g, g.NonZero(mask), [1, 0])  # [n, 2]: cell, class
        cells, labels = im.select(g, where, 1, 0), im.select(g, where, 1, 1)
        kernels = im.gather_rows(g, kernels, cells)
        strides = im.gather_rows(g, self._strides(g), cells)

        kernels = im.reshape(g, kernels, [-1, config.channels, 1, 1])
        soft = g.Sigmoid(im.squeeze(g, g.Conv(feats, kernels), 0))  # [n, s, s]
        masks = soft > MASK
        area = _sum(g, g.cast(masks, np.float32))
        large = area > strides
        masks, soft, area, scores, labels = (
            im.mask_select(g, t, large, "rows") for t in (masks, soft, area, scores, labels)
        )
        scores = scores * (_sum(g, soft * g.cast(masks, np.float32)) / area)

        scores, order = _best(g, scores, config.before)
        masks, area, labels = (im.gather_rows(g, t, order) for t in (masks, area, labels))
        scores = scores * self._decay(g, masks, area, labels)

        good = scores >= KEEP_SCORE
        scores, labels, masks = (
            im.mask_select(g, t, good, "rows") for t in (scores, labels, masks)
        )
        scores, order = _best(g, scores, config.limit)
        g.output(scores, "scores", ["detections"])
        g.output(im.gather_rows(g, labels, order), "labels", ["detections"])
        g.output(
            im.gather_rows(g, masks, order),
            "masks",
            ["detections", config.side, config.side],
        )
        return g.model()

    def _rows(self, g: Builder, cls: Value, kernels: Value) -> tuple[Value, Value]:
        """Class scores [cells, C] and kernels [cells, D] of all levels."""

        def level(i: Value, scores: Value, rows: Value) -> list[Value]:
            found = []
            for seq, width in ((cls, self.config.classes), (kernels, self.config.channels)):
                last = im.permute(g, im.at(g, seq, i), [0, 2, 3, 1])
                found.append(im.reshape(g, last, [-1, width]))
            return [
                im.append(g, scores, g.Sigmoid(found[0])),
                im.append(g, rows, g.Identity(found[1])),
            ]

        start = [g.empty_sequence(np.float32)] * 2
        lists = g.loop(level, start, trip=len(self.config.grids))
        scores, rows = (g.ConcatFromSequence(seq, axis=0) for seq in lists)
        return scores, rows

    def _strides(self, g: Builder) -> Value:
        """The stride of every cell, written range by range: [cells]."""
        ends = [int(e) for e in np.cumsum(np.square(self.config.grids))]
        strides = g.full([ends[-1]], 1, np.float32)
        for start, end, factor, form in zip([0, *ends], ends, STRIDES, FORMS):
            part = im.slice_(g, strides, start, end, axis=0) * factor
            strides = im.assign_slice(g, strides, part, start, end, axis=0, form=form, rank=1)
        return strides

    def _decay(self, g: Builder, masks: Value, area: Value, labels: Value) -> Value:
        """The factor of matrix NMS for masks [n, s, s] in descending order: [n]."""
        flat = g.cast(im.reshape(g, masks, [0, -1]), np.float32)
        overlap = flat @ im.permute(g, flat, [1, 0])
        shape = g.Shape(overlap)
        areas = im.expand(g, area, shape)
        iou = overlap / (areas + im.permute(g, areas, [1, 0]) - overlap)
        classes = im.expand(g, labels, shape)
        same = g.cast(g.Equal(classes, im.permute(g, classes, [1, 0])), np.float32)
        above = g.const(1)  # in place: only pairs (better, worse) count
        iou = g.Trilu(iou, above, upper=1) * g.Trilu(same, above, upper=1)
        worst = g.ReduceMax(iou, g.const([0]), keepdims=0)
        worst = im.permute(g, im.expand(g, worst, shape), [1, 0])
        decay = g.Exp(iou * iou * -SIGMA) / g.Exp(worst * worst * -SIGMA)
        return g.ReduceMin(decay, g.const([0]), keepdims=0)

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        # A mask is a disc around its cell: r^2 - (x - cx)^2 - (y - cy)^2, plus noise,
        # written as a product of features (1, x, y, x^2 + y^2, ...) and a kernel.  All
        # values are small multiples of powers of two, so the product is exact in
        # whatever order it is summed, and never zero: masks are unambiguous.
        config = self.config

        def rounded(x: np.ndarray, bits: int) -> np.ndarray:
            return np.rint(x * 2.0**bits) / 2.0**bits

        def noise(*shape: int) -> np.ndarray:
            return rounded(normal(rng, config.channels - 4, *shape, std=1 / 16), 5)

        at = np.arange(config.side) / 16
        y, x = np.meshgrid(at, at, indexing="ij")
        disc = np.stack([np.ones_like(x), x, y, x * x + y * y])
        feats = np.concatenate([disc, noise(config.side, config.side)])

        extent = config.side / 16
        cls, kernels = [], []
        for size in config.grids:
            centre = rounded((np.arange(size) + 0.5) * extent / size, 4)
            cy, cx = np.meshgrid(centre, centre, indexing="ij")
            radius = extent / size * rng.uniform(0.5, 2.5, (size, size))
            bias = rounded(radius**2 - cx * cx - cy * cy, 8) + 2.0**-14
            disc = 8 * np.stack([bias, 2 * cx, 2 * cy, -np.ones_like(cx)])
            kernel = np.concatenate([disc, noise(size, size)])
            kernels.append(kernel[None].astype(np.float32))
            cls.append(normal(rng, 1, config.classes, size, size, mean=-6.0))
        for _ in range(config.objects):
            level = rng.integers(len(config.grids))
            label = rng.integers(config.classes)
            row, column = rng.integers(0, config.grids[level] - 1, 2)
            near = np.ix_([0], [label], [row, row + 1], [column, column + 1])
            cls[level][near] = normal(rng, 1, 1, 2, 2, mean=0.0, std=1.5)
        return [*cls, *kernels, feats[None].astype(np.float32)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        levels = len(self.config.grids)
        feats = inputs[-1][0].astype(np.float64)
        found = []  # score, label, soft mask
        for cls, kernel, stride in zip(inputs[:levels], inputs[levels:], STRIDES):
            scores = sigmoid(cls[0].astype(np.float64))
            _apart("score", scores, SCORE)
            for row, column, label in np.argwhere(scores.transpose(1, 2, 0) > SCORE):
                weights = kernel[0, :, row, column].astype(np.float64)
                soft = sigmoid(np.tensordot(weights, feats, axes=1))
                mask = soft > MASK
                if mask.sum() > stride:
                    confidence = scores[label, row, column] * soft[mask].mean()
                    found.append((confidence, int(label), mask))
        found.sort(key=lambda item: -item[0])
        found = found[: self.config.before]
        _distinct([score for score, _, _ in found])

        # overlaps[j][i]: of mask j with the better mask i of the same class
        overlaps = [
            [
                (mask & better).sum() / (mask | better).sum() if label == other else 0.0
                for _, other, better in found[:j]
            ]
            for j, (_, label, mask) in enumerate(found)
        ]
        worst = [max(row, default=0.0) for row in overlaps]
        kept = []
        for (score, label, mask), row in zip(found, overlaps):
            # Of all n pairs only those with a better mask can lower the score.
            factors = [np.exp(SIGMA * (w * w - o * o)) for o, w in zip(row, worst)]
            kept.append((score * min([1.0, *factors]), label, mask))
        _apart("decayed score", np.array([k[0] for k in kept]), KEEP_SCORE)
        kept = [k for k in kept if k[0] >= KEEP_SCORE]
        kept.sort(key=lambda item: -item[0])
        _distinct([score for score, _, _ in kept])
        scores, labels, masks = zip(*kept[: self.config.limit])
        return [np.array(scores, np.float32), np.array(labels, np.int64), np.stack(masks)]


def _sum(g: Builder, x: Value) -> Value:
    """The sum over the last two axes of x [n, s, s]: [n]."""
    return g.ReduceSum(x, g.const([1, 2]), keepdims=0)


def _best(g: Builder, x: Value, cap: int) -> tuple[Value, Value]:
    """The `cap` largest values of x [n] (at least one), descending, with positions."""
    count = g.Min(g.Shape(x), g.const([cap]))
    return g.op("TopK", x, count, outputs=2, axis=0, largest=1, sorted=1)


def _apart(what: str, values: np.ndarray, threshold: float) -> None:
    """Refuse data on which rounding could decide a comparison."""
    if values.size and np.abs(values - threshold).min() < 1e-6:
        raise CheckFailure(f"a {what} is within rounding of {threshold}")


def _distinct(descending: list[float]) -> None:
    """Refuse data on which rounding could decide an order."""
    if len(descending) > 1 and (-np.diff(descending)).min() < 1e-7:
        raise CheckFailure("two scores are within rounding of each other")
