"""Constants of the detectors: pyramid levels, anchors, thresholds and caps.

A parameter set describes a whole workload.  The paper's sizes are the defaults; the
`small_*` sets are the same programs on fewer levels and classes, so that model and
data are small enough to be committed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

IMAGE = 320.0  # pixels on each side; boxes are clamped to [0, IMAGE]

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Level:
    """One level of the feature pyramid: size x size cells, `stride` pixels apart."""

    size: int
    stride: int
    base: tuple[Box, ...] = ()  # base boxes (x1, y1, x2, y2); empty for anchor-free

    @property
    def cells(self) -> int:
        return self.size * self.size

    @property
    def rows(self) -> int:
        """Number of anchors on this level."""
        return self.cells * max(len(self.base), 1)

    @property
    def base_boxes(self) -> np.ndarray:
        """Base boxes as float32 (A, 4)."""
        return np.array(self.base, np.float32).reshape(-1, 4)


@dataclass(frozen=True)
class Detector:
    """What all detectors share."""

    levels: tuple[Level, ...]
    classes: int
    score: float  # a candidate needs a score above this
    iou: float  # overlap above which the weaker box goes
    cap: int = 1000  # candidates per level that reach suppression
    limit: int = 100  # detections per image
    batched: int = 10000  # with this many candidates, classes are suppressed in turn

    @property
    def anchors(self) -> int:
        """Anchors per cell; 1 for an anchor-free detector."""
        return max(len(self.levels[0].base), 1)


@dataclass(frozen=True)
class Yolov3(Detector):
    confidence: float = 0.005  # least objectness


@dataclass(frozen=True)
class Ssd(Detector):
    """Single Shot Detector: softmax scores, background is the last class."""


@dataclass(frozen=True)
class Yolact(Detector):
    top: int = 200  # candidates per class in fast suppression
    coefs: int = 32  # mask coefficients per anchor
    proto: int = 80  # prototype masks are proto x proto


@dataclass(frozen=True)
class PointDetector(Detector):
    """A detector without anchors: one point per cell, distances to the box edges."""

    offset: float = 0.5  # of the point inside its cell


@dataclass(frozen=True)
class Fcos(PointDetector):
    """Fully convolutional one-stage detector: scores weighted by centre-ness."""


@dataclass(frozen=True)
class Rtmdet(PointDetector):
    """Real-time detector: as FCOS without centre-ness, points in the cell corners."""

    offset: float = 0.0


def centred_box(centre: float, width: float, height: float) -> Box:
    """The box of the given size around (centre, centre)."""
    return (
        centre - width / 2,
        centre - height / 2,
        centre + width / 2,
        centre + height / 2,
    )


def _yolov3_level(size: int, stride: int, sizes: tuple[tuple[int, int], ...]) -> Level:
    return Level(size, stride, tuple(centred_box(stride / 2, w, h) for w, h in sizes))


def _ssd_level(size: int, stride: int, least: float, greatest: float) -> Level:
    """Six boxes: the two squares first, then the four other ratios at the small scale."""
    boxes = [
        centred_box(stride / 2, least * scale / math.sqrt(r), least * scale * math.sqrt(r))
        for scale in (1.0, math.sqrt(greatest / least))
        for r in (1.0, 1 / 2, 2.0, 1 / 3, 3.0)
    ]
    return Level(size, stride, tuple(boxes[i] for i in (0, 5, 1, 2, 3, 4)))


def _yolact_level(size: int, stride: int) -> Level:
    side = 3.0 * stride
    return Level(
        size,
        stride,
        tuple(
            centred_box(stride / 2, side / math.sqrt(r), side * math.sqrt(r))
            for r in (0.5, 1.0, 2.0)
        ),
    )


_YOLOV3_LEVELS = (
    _yolov3_level(10, 32, ((116, 90), (156, 198), (373, 326))),
    _yolov3_level(20, 16, ((30, 61), (62, 45), (59, 119))),
    _yolov3_level(40, 8, ((10, 13), (16, 30), (33, 23))),
)

_SSD_LEVELS = (
    _ssd_level(20, 16, 48, 100),
    _ssd_level(10, 32, 100, 150),
    _ssd_level(5, 64, 150, 202),
    _ssd_level(3, 107, 202, 253),
    _ssd_level(2, 160, 253, 304),
    _ssd_level(1, 320, 304, 320),
)

_YOLACT_LEVELS = tuple(
    _yolact_level(size, stride)
    for size, stride in ((40, 8), (20, 16), (10, 32), (5, 64), (3, 128))
)

_FCOS_LEVELS = (
    Level(40, 8),
    Level(20, 16),
    Level(10, 32),
    Level(5, 64),
    Level(3, 128),
)


def yolov3() -> Yolov3:
    return Yolov3(_YOLOV3_LEVELS, classes=80, score=0.05, iou=0.45)


def ssd() -> Ssd:
    return Ssd(_SSD_LEVELS, classes=80, score=0.02, iou=0.45)


def yolact() -> Yolact:
    return Yolact(_YOLACT_LEVELS, classes=80, score=0.05, iou=0.5)


def fcos() -> Fcos:
    return Fcos(_FCOS_LEVELS, classes=80, score=0.025, iou=0.5)


def rtmdet() -> Rtmdet:
    return Rtmdet(_FCOS_LEVELS[:3], classes=80, score=0.05, iou=0.5)


def small_yolov3() -> Yolov3:
    return Yolov3(_YOLOV3_LEVELS[:2], classes=4, score=0.05, iou=0.45)


def small_ssd() -> Ssd:
    return Ssd(_SSD_LEVELS[1:5], classes=8, score=0.02, iou=0.45, cap=10)


def small_yolact() -> Yolact:
    return Yolact(
        _YOLACT_LEVELS[2:],
        classes=8,
        score=0.05,
        iou=0.5,
        cap=100,
        top=40,
        coefs=4,
        proto=32,
    )


def small_fcos() -> Fcos:
    return Fcos(_FCOS_LEVELS[1:4], classes=8, score=0.025, iou=0.5, cap=10)


def small_rtmdet() -> Rtmdet:
    return Rtmdet(_FCOS_LEVELS[1:3], classes=8, score=0.05, iou=0.5, cap=10)
