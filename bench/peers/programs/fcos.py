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


def decode(points: Tensor, reach: Tensor) -> Tensor:
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

    def image(
        self, cls: list[Tensor], box: list[Tensor], ctr: list[Tensor], grids: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Detections and labels of one image; scores are weighted after the filter."""
        reach: list[Tensor] = []
        points: list[Tensor] = []
        centred: list[Tensor] = []
        scores: list[Tensor] = []
        classes: list[Tensor] = []
        for level_cls, level_box, level_ctr, grid in zip(cls, box, ctr, grids):
            distances = map_rows(level_box, 4)
            centredness = level_ctr.permute(1, 2, 0).reshape(-1).sigmoid()
            found = filter_topk(map_rows(level_cls, 80).sigmoid(), self.score, self.cap)
            scores.append(found[0])
            classes.append(found[1])
            reach.append(distances[found[2]])
            points.append(grid[found[2]])
            centred.append(centredness[found[2]])
        boxes = decode(torch.cat(points), torch.cat(reach))
        weighted = torch.cat(scores)
        weighted *= torch.cat(centred)
        return suppress(boxes, weighted, torch.cat(classes), self.iou, self.limit)

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
