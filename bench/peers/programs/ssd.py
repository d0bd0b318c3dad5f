# SPDX-License-Identifier: Apache-2.0
"""SSD: six levels, six anchors per cell, softmax scores with the background last."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench.peers.program import Weights
from bench.peers.programs.detection import (
    DeltaDecoder,
    anchor_columns,
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

    def priors_of(self, maps: list[Tensor]) -> list[Tensor]:
        """The anchors of each level."""
        return anchors_of(maps, self.strides, self.bases)

    def clamp(self, boxes: Tensor) -> None:
        """Cut boxes off at the image's edges, in place."""
        clamp_to_image(boxes)

    def level(self, cls: Tensor, box: Tensor, priors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes, scores and classes of one level's candidates."""
        deltas = map_rows(box, 4)
        probabilities = map_rows(cls, 81).softmax(-1)[:, :-1]
        scores, classes, rows = filter_topk(probabilities, self.score, self.cap)
        boxes = self.decode(priors[rows], deltas[rows])
        self.clamp(boxes)
        return boxes, scores, classes

    def image(
        self, cls: list[Tensor], box: list[Tensor], priors: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Detections and labels of one image: all levels together through suppression."""
        boxes: list[Tensor] = []
        scores: list[Tensor] = []
        classes: list[Tensor] = []
        for level_cls, level_box, level_priors in zip(cls, box, priors):
            found_boxes, found_scores, found_classes = self.level(
                level_cls, level_box, level_priors
            )
            boxes.append(found_boxes)
            scores.append(found_scores)
            classes.append(found_classes)
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
        priors = self.priors_of(cls)
        dets: list[Tensor] = []
        labels: list[Tensor] = []
        for b in range(cls_0.size(0)):
            found = self.image(image_of(cls, b), image_of(box, b), priors)
            dets.append(found[0])
            labels.append(found[1])
        return dets, labels


class SsdUnrolled(Ssd):
    """The same without a loop over the levels."""

    def priors_of(self, maps: list[Tensor]) -> list[Tensor]:
        """The anchors of each level, filled column by column."""
        return [
            anchor_columns(20, 20, 16, self.bases[0]),
            anchor_columns(10, 10, 32, self.bases[1]),
            anchor_columns(5, 5, 64, self.bases[2]),
            anchor_columns(3, 3, 107, self.bases[3]),
            anchor_columns(2, 2, 160, self.bases[4]),
            anchor_columns(1, 1, 320, self.bases[5]),
        ]

    def clamp(self, boxes: Tensor) -> None:
        """All four columns at once."""
        boxes.clamp_(min=0.0, max=320.0)

    def image(
        self, cls: list[Tensor], box: list[Tensor], priors: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Detections and labels of one image."""
        boxes_0, scores_0, classes_0 = self.level(cls[0], box[0], priors[0])
        boxes_1, scores_1, classes_1 = self.level(cls[1], box[1], priors[1])
        boxes_2, scores_2, classes_2 = self.level(cls[2], box[2], priors[2])
        boxes_3, scores_3, classes_3 = self.level(cls[3], box[3], priors[3])
        boxes_4, scores_4, classes_4 = self.level(cls[4], box[4], priors[4])
        boxes_5, scores_5, classes_5 = self.level(cls[5], box[5], priors[5])
        boxes = torch.cat([boxes_0, boxes_1, boxes_2, boxes_3, boxes_4, boxes_5])
        scores = torch.cat([scores_0, scores_1, scores_2, scores_3, scores_4, scores_5])
        classes = torch.cat([classes_0, classes_1, classes_2, classes_3, classes_4, classes_5])
        return suppress(boxes, scores, classes, self.iou, self.limit)
