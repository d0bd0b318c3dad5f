# SPDX-License-Identifier: Apache-2.0
"""YOLACT: five levels, three anchors per cell, fast suppression, a mask per detection."""

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
    image_of,
    map_rows,
)


def _base_boxes(stride: int) -> Tensor:
    """Three boxes of equal area, three strides wide, wide to tall: (3, 4)."""
    side = 3 * stride
    sizes = [(side / math.sqrt(ratio), side * math.sqrt(ratio)) for ratio in (0.5, 1.0, 2.0)]
    return centred_boxes(stride / 2, sizes)


def overlaps(boxes: Tensor) -> Tensor:
    """IoU of all pairs within each class: boxes (C, n, 4) to (C, n, n)."""
    area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    low = torch.max(boxes[:, :, None, :2], boxes[:, None, :, :2])
    high = torch.min(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    extent = (high - low).clamp(min=0)
    shared = extent[..., 0] * extent[..., 1]
    union = area[:, :, None] + area[:, None, :] - shared
    return shared / union.clamp(min=1e-6)


def padded(first: Tensor, second: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Both ends of intervals in order, widened by a pixel, inside [0, size]."""
    low = torch.min(first, second)
    high = torch.max(low, second)
    return (low - 1).clamp(min=0), (high + 1).clamp(max=size)


def crop(masks: Tensor, boxes: Tensor) -> Tensor:
    """Masks (h, w, K) zeroed outside boxes (K, 4), taken in mask pixels as they are."""
    height, width, count = masks.shape
    left, right = padded(boxes[:, 0], boxes[:, 2], width)
    top, bottom = padded(boxes[:, 1], boxes[:, 3], height)
    column = torch.arange(width, device=masks.device, dtype=boxes.dtype).view(1, -1, 1)
    row = torch.arange(height, device=masks.device, dtype=boxes.dtype).view(-1, 1, 1)
    column = column.expand(height, width, count)
    row = row.expand(height, width, count)
    inside = (column >= left) & (column < right) & (row >= top) & (row < bottom)
    return masks * inside.to(masks.dtype)


class Yolact(nn.Module):
    """Detections and instance masks of every image."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.strides = [8, 16, 32, 64, 128]
        self.register_buffer("bases", torch.stack([_base_boxes(s) for s in self.strides]))
        self.decode = DeltaDecoder()
        self.cap = 1000
        self.top = 200
        self.iou = 0.5
        self.score = 0.05
        self.limit = 100

    def priors_of(self, maps: list[Tensor]) -> list[Tensor]:
        """The anchors of each level."""
        return anchors_of(maps, self.strides, self.bases)

    def clamp(self, boxes: Tensor) -> None:
        """Cut boxes off at the image's edges, in place."""
        clamp_to_image(boxes)

    def level(
        self, box: Tensor, cls: Tensor, coef: Tensor, priors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes, scores (m, 81) and coefficients of one level's best rows of any class."""
        scores = map_rows(cls, 81).softmax(-1)
        deltas = map_rows(box, 4)
        coefs = map_rows(coef, 32)
        best = scores[:, :80].max(dim=1)[0]
        rows = best.topk(min(self.cap, best.size(0)))[1]
        boxes = self.decode(priors[rows], deltas[rows])
        self.clamp(boxes)
        return boxes, scores[rows], coefs[rows]

    def fast_suppress(
        self, boxes: Tensor, scores: Tensor, coefs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Detections, labels and coefficients that no better box of the class overlaps.

        A box that goes can still suppress others; so one matrix per class decides.
        """
        ranked, order = scores[:, :80].t().sort(dim=1, descending=True)
        ranked, order = ranked[:, : self.top], order[:, : self.top]
        boxes, coefs = boxes[order], coefs[order]
        iou = overlaps(boxes)
        iou.triu_(diagonal=1)
        worst = iou.max(dim=1)[0]
        keep = (worst <= self.iou) & (ranked > self.score)
        labels = torch.arange(80, device=keep.device).unsqueeze(1).expand_as(keep)[keep]
        boxes, coefs, ranked = boxes[keep], coefs[keep], ranked[keep]
        ranked, order = ranked.sort(descending=True)
        ranked, order = ranked[: self.limit], order[: self.limit]
        dets = torch.cat([boxes[order], ranked.unsqueeze(1)], dim=1)
        return dets, labels[order], coefs[order]

    def image(
        self, box: list[Tensor], cls: list[Tensor], coef: list[Tensor], priors: list[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Detections, labels and coefficients of one image."""
        boxes: list[Tensor] = []
        scores: list[Tensor] = []
        coefs: list[Tensor] = []
        for level_box, level_cls, level_coef, level_priors in zip(box, cls, coef, priors):
            found = self.level(level_box, level_cls, level_coef, level_priors)
            boxes.append(found[0])
            scores.append(found[1])
            coefs.append(found[2])
        return self.fast_suppress(torch.cat(boxes), torch.cat(scores), torch.cat(coefs))

    def masks(self, proto: Tensor, coefs: Tensor, dets: Tensor) -> Tensor:
        """Masks (K, h, w) of one image: prototypes (h, w, 32) mixed, activated, cropped."""
        mixed = (proto @ coefs.t()).sigmoid()
        return crop(mixed, dets[:, :4]).permute(2, 0, 1).contiguous()

    def forward(
        self,
        box_0: Tensor,
        box_1: Tensor,
        box_2: Tensor,
        box_3: Tensor,
        box_4: Tensor,
        cls_0: Tensor,
        cls_1: Tensor,
        cls_2: Tensor,
        cls_3: Tensor,
        cls_4: Tensor,
        coef_0: Tensor,
        coef_1: Tensor,
        coef_2: Tensor,
        coef_3: Tensor,
        coef_4: Tensor,
        proto: Tensor,
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
        """Lists of detections, labels, coefficients and masks, one per image."""
        box = [box_0, box_1, box_2, box_3, box_4]
        cls = [cls_0, cls_1, cls_2, cls_3, cls_4]
        coef = [coef_0, coef_1, coef_2, coef_3, coef_4]
        priors = self.priors_of(cls)
        dets: list[Tensor] = []
        labels: list[Tensor] = []
        coefs: list[Tensor] = []
        masks: list[Tensor] = []
        for b in range(proto.size(0)):
            found = self.image(image_of(box, b), image_of(cls, b), image_of(coef, b), priors)
            dets.append(found[0])
            labels.append(found[1])
            coefs.append(found[2])
        pixels = proto.permute(0, 2, 3, 1).contiguous()
        for b in range(proto.size(0)):
            masks.append(self.masks(pixels[b], coefs[b], dets[b]))
        return dets, labels, coefs, masks


class YolactUnrolled(Yolact):
    """The same without a loop over the levels."""

    def priors_of(self, maps: list[Tensor]) -> list[Tensor]:
        """The anchors of each level, filled column by column."""
        return [
            anchor_columns(40, 40, 8, self.bases[0]),
            anchor_columns(20, 20, 16, self.bases[1]),
            anchor_columns(10, 10, 32, self.bases[2]),
            anchor_columns(5, 5, 64, self.bases[3]),
            anchor_columns(3, 3, 128, self.bases[4]),
        ]

    def clamp(self, boxes: Tensor) -> None:
        """All four columns at once."""
        boxes.clamp_(min=0.0, max=320.0)

    def image(
        self, box: list[Tensor], cls: list[Tensor], coef: list[Tensor], priors: list[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Detections, labels and coefficients of one image."""
        boxes_0, scores_0, coefs_0 = self.level(box[0], cls[0], coef[0], priors[0])
        boxes_1, scores_1, coefs_1 = self.level(box[1], cls[1], coef[1], priors[1])
        boxes_2, scores_2, coefs_2 = self.level(box[2], cls[2], coef[2], priors[2])
        boxes_3, scores_3, coefs_3 = self.level(box[3], cls[3], coef[3], priors[3])
        boxes_4, scores_4, coefs_4 = self.level(box[4], cls[4], coef[4], priors[4])
        boxes = torch.cat([boxes_0, boxes_1, boxes_2, boxes_3, boxes_4])
        scores = torch.cat([scores_0, scores_1, scores_2, scores_3, scores_4])
        coefs = torch.cat([coefs_0, coefs_1, coefs_2, coefs_3, coefs_4])
        return self.fast_suppress(boxes, scores, coefs)
