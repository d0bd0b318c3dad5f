# SPDX-License-Identifier: Apache-2.0
"""FCOS: five levels, one point per cell, distances to the box edges, centre-ness."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bench.peers.program import Weights
from bench.peers.programs.detection import (
    clamp_to_image,
    filter_topk,
    image_of,
    map_rows,
    suppress,
)


def point_grid(height: int, width: int, stride: int, like: Tensor) -> Tensor:
    """The middle of every cell (height * width, 2), written column by column."""
    x = (torch.arange(width, device=like.device) + 0.5) * stride
    y = (torch.arange(height, device=like.device) + 0.5) * stride
    points = torch.zeros([height * width, 2], dtype=like.dtype, device=like.device)
    points[:, 0] = x.repeat(height)
    points[:, 1] = y.view(-1, 1).repeat(1, width).view(-1)
    return points


class Fcos(nn.Module):
    """Detections of every image from class, distance and centre-ness maps."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.strides = [8, 16, 32, 64, 128]
        self.score = 0.025
        self.cap = 1000
        self.iou = 0.5
        self.limit = 100

    def points_of(self, maps: list[Tensor]) -> list[Tensor]:
        """The points of each level."""
        grids: list[Tensor] = []
        for feature, stride in zip(maps, self.strides):
            grids.append(point_grid(feature.size(2), feature.size(3), stride, feature))
        return grids

    def decode(self, points: Tensor, reach: Tensor) -> Tensor:
        """Boxes (m, 4) that reach left, top, right and bottom of points (m, 2)."""
        boxes = torch.stack(
            [
                points[:, 0] - reach[:, 0],
                points[:, 1] - reach[:, 1],
                points[:, 0] + reach[:, 2],
                points[:, 1] + reach[:, 3],
            ],
            dim=-1,
        )
        clamp_to_image(boxes)
        return boxes

    def level(
        self, cls: Tensor, box: Tensor, ctr: Tensor, grid: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Distances, points, centre-ness, scores and classes of one level's candidates."""
        distances = map_rows(box, 4)
        centred = ctr.permute(1, 2, 0).reshape(-1).sigmoid()
        scores, classes, rows = filter_topk(map_rows(cls, 80).sigmoid(), self.score, self.cap)
        return distances[rows], grid[rows], centred[rows], scores, classes

    def finish(
        self, reach: Tensor, points: Tensor, centred: Tensor, scores: Tensor, classes: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Detections and labels from all levels; scores are weighted after the filter."""
        boxes = self.decode(points, reach)
        scores *= centred
        return suppress(boxes, scores, classes, self.iou, self.limit)

    def image(
        self, cls: list[Tensor], box: list[Tensor], ctr: list[Tensor], grids: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Detections and labels of one image."""
        reach: list[Tensor] = []
        points: list[Tensor] = []
        centred: list[Tensor] = []
        scores: list[Tensor] = []
        classes: list[Tensor] = []
        for level_cls, level_box, level_ctr, grid in zip(cls, box, ctr, grids):
            found = self.level(level_cls, level_box, level_ctr, grid)
            reach.append(found[0])
            points.append(found[1])
            centred.append(found[2])
            scores.append(found[3])
            classes.append(found[4])
        return self.finish(
            torch.cat(reach),
            torch.cat(points),
            torch.cat(centred),
            torch.cat(scores),
            torch.cat(classes),
        )

    def forward(
        self,
        cls_0: Tensor,
        cls_1: Tensor,
        cls_2: Tensor,
        cls_3: Tensor,
        cls_4: Tensor,
        box_0: Tensor,
        box_1: Tensor,
        box_2: Tensor,
        box_3: Tensor,
        box_4: Tensor,
        ctr_0: Tensor,
        ctr_1: Tensor,
        ctr_2: Tensor,
        ctr_3: Tensor,
        ctr_4: Tensor,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Lists of detections (K, 5) and labels (K), one per image."""
        cls = [cls_0, cls_1, cls_2, cls_3, cls_4]
        box = [box_0, box_1, box_2, box_3, box_4]
        ctr = [ctr_0, ctr_1, ctr_2, ctr_3, ctr_4]
        grids = self.points_of(cls)
        dets: list[Tensor] = []
        labels: list[Tensor] = []
        for b in range(cls_0.size(0)):
            found = self.image(image_of(cls, b), image_of(box, b), image_of(ctr, b), grids)
            dets.append(found[0])
            labels.append(found[1])
        return dets, labels


class FcosUnrolled(Fcos):
    """The same without a loop over the levels, and with boxes written column by column."""

    def five_grids(self, like: Tensor) -> list[Tensor]:
        """The points of each level."""
        return [
            point_grid(40, 40, 8, like),
            point_grid(20, 20, 16, like),
            point_grid(10, 10, 32, like),
            point_grid(5, 5, 64, like),
            point_grid(3, 3, 128, like),
        ]

    def points_of(self, maps: list[Tensor]) -> list[Tensor]:
        """The points of each level; as published, computed twice and used once."""
        self.five_grids(maps[0])
        return self.five_grids(maps[0])

    def decode(self, points: Tensor, reach: Tensor) -> Tensor:
        """Boxes (m, 4), written into a copy of the distances and clamped as a whole."""
        boxes = reach.clone()
        boxes[:, 0] = points[:, 0] - reach[:, 0]
        boxes[:, 1] = points[:, 1] - reach[:, 1]
        boxes[:, 2] = points[:, 0] + reach[:, 2]
        boxes[:, 3] = points[:, 1] + reach[:, 3]
        boxes.clamp_(min=0.0, max=320.0)
        return boxes

    def image(
        self, cls: list[Tensor], box: list[Tensor], ctr: list[Tensor], grids: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Detections and labels of one image."""
        reach_0, points_0, centred_0, scores_0, classes_0 = self.level(
            cls[0], box[0], ctr[0], grids[0]
        )
        reach_1, points_1, centred_1, scores_1, classes_1 = self.level(
            cls[1], box[1], ctr[1], grids[1]
        )
        reach_2, points_2, centred_2, scores_2, classes_2 = self.level(
            cls[2], box[2], ctr[2], grids[2]
        )
        reach_3, points_3, centred_3, scores_3, classes_3 = self.level(
            cls[3], box[3], ctr[3], grids[3]
        )
        reach_4, points_4, centred_4, scores_4, classes_4 = self.level(
            cls[4], box[4], ctr[4], grids[4]
        )
        return self.finish(
            torch.cat([reach_0, reach_1, reach_2, reach_3, reach_4]),
            torch.cat([points_0, points_1, points_2, points_3, points_4]),
            torch.cat([centred_0, centred_1, centred_2, centred_3, centred_4]),
            torch.cat([scores_0, scores_1, scores_2, scores_3, scores_4]),
            torch.cat([classes_0, classes_1, classes_2, classes_3, classes_4]),
        )
