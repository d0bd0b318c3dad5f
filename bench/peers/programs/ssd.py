# SPDX-License-Identifier: Apache-2.0
"""SSD: six levels, six anchors per cell, softmax scores with the background last."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench.peers.program import Weights
from bench.peers.programs.detection import (
    DeltaDecoder,
    anchors_of,
    centred_boxes,
    clamp_to_image,
    filter_topk,
    image_of,
    map_rows,
    suppress,
)


def _base_boxes(stride: int, least: float, greatest: float) -> Tensor:
    """Both squares, then the small one stretched to four other ratios: (6, 4)."""
    scales = (1.0, math.sqrt(greatest / least))
    ratios = (1.0, 1 / 2, 2.0, 1 / 3, 3.0)
    sizes = [
        (least * scale / math.sqrt(ratio), least * scale * math.sqrt(ratio))
        for scale in scales
        for ratio in ratios
    ]
    return centred_boxes(stride / 2, [sizes[i] for i in (0, 5, 1, 2, 3, 4)])


class Ssd(nn.Module):
    """Detections of every image from class and box maps."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.strides = [16, 32, 64, 107, 160, 320]
        least = [48, 100, 150, 202, 253, 304]
        greatest = [100, 150, 202, 253, 304, 320]
        bases = [_base_boxes(*sizes) for sizes in zip(self.strides, least, greatest)]
        self.register_buffer("bases", torch.stack(bases))
        self.decode = DeltaDecoder()
        self.score = 0.02
        self.cap = 1000
        self.iou = 0.45
        self.limit = 100

    def level(self, cls: Tensor, box: Tensor, priors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes, scores and classes of one level's candidates."""
        deltas = map_rows(box, 4)
        probabilities = map_rows(cls, 81).softmax(-1)[:, :-1]
        scores, classes, rows = filter_topk(probabilities, self.score, self.cap)
        boxes = self.decode(priors[rows], deltas[rows])
        clamp_to_image(boxes)
        return boxes, scores, classes

    def image(
        self, cls: list[Tensor], box: list[Tensor], priors: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Detections and labels of one image: all levels together through suppression."""
        boxes: list[Tensor] = []
        scores: list[Tensor] = []
        classes: list[Tensor] = []
        for level_cls, level_box, level_priors in zip(cls, box, priors):
            found = self.level(level_cls, level_box, level_priors)
            boxes.append(found[0])
            scores.append(found[1])
            classes.append(found[2])
        return suppress(
            torch.cat(boxes), torch.cat(scores), torch.cat(classes), self.iou, self.limit
        )

    def forward(
        self,
        cls_0: Tensor,
        cls_1: Tensor,
        cls_2: Tensor,
        cls_3: Tensor,
        cls_4: Tensor,
        cls_5: Tensor,
        box_0: Tensor,
        box_1: Tensor,
        box_2: Tensor,
        box_3: Tensor,
        box_4: Tensor,
        box_5: Tensor,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Lists of detections (K, 5) and labels (K), one per image."""
        cls = [cls_0, cls_1, cls_2, cls_3, cls_4, cls_5]
        box = [box_0, box_1, box_2, box_3, box_4, box_5]
        priors = anchors_of(cls, self.strides, self.bases)
        dets: list[Tensor] = []
        labels: list[Tensor] = []
        for b in range(cls_0.size(0)):
            found = self.image(image_of(cls, b), image_of(box, b), priors)
            dets.append(found[0])
            labels.append(found[1])
        return dets, labels
