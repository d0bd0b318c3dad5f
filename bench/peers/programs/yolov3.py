# SPDX-License-Identifier: Apache-2.0
"""YOLOv3: three levels, three anchors per cell, objectness times class scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bench.peers.program import Weights
from bench.peers.programs.detection import anchor_columns, anchors_of, centred_boxes, suppress


class Yolov3(nn.Module):
    """Detections of every image from raw prediction maps."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.strides = [32, 16, 8]
        sizes = [
            [(116, 90), (156, 198), (373, 326)],
            [(30, 61), (62, 45), (59, 119)],
            [(10, 13), (16, 30), (33, 23)],
        ]
        bases = [centred_boxes(stride / 2, level) for stride, level in zip(self.strides, sizes)]
        self.register_buffer("bases", torch.stack(bases))
        self.confidence = 0.005
        self.score = 0.05
        self.iou = 0.45
        self.limit = 100

    def anchors(self, preds: list[Tensor]) -> Tensor:
        """The anchors of all levels (N, 4)."""
        return torch.cat(anchors_of(preds, self.strides, self.bases))

    def level(self, pred: Tensor, stride: int) -> tuple[Tensor, Tensor]:
        """One map as rows (B, n, 85) and its strides (n).

        The two centre offsets of a row are activated in place: in the copy, not the map.
        """
        rows = pred.permute(0, 2, 3, 1).reshape(pred.size(0), -1, 85).clone()
        rows[..., 0:2].sigmoid_()
        one = torch.full([1], stride, dtype=torch.int64, device=pred.device)
        return rows, one.expand(rows.size(1))

    def read(self, preds: list[Tensor]) -> tuple[Tensor, Tensor]:
        """All levels as rows (B, N, 85) and the stride of each row (N)."""
        rows: list[Tensor] = []
        strides: list[Tensor] = []
        for pred, stride in zip(preds, self.strides):
            level_rows, level_strides = self.level(pred, stride)
            rows.append(level_rows)
            strides.append(level_strides)
        return torch.cat(rows, dim=1), torch.cat(strides)

    def corners(self, raw: Tensor, centre: Tensor, half: Tensor) -> Tensor:
        """Boxes (B, N, 4) from their centres and half sizes (B, N, 2)."""
        return torch.stack(
            [
                centre[..., 0] - half[..., 0],
                centre[..., 1] - half[..., 1],
                centre[..., 0] + half[..., 0],
                centre[..., 1] + half[..., 1],
            ],
            dim=-1,
        )

    def decode(self, raw: Tensor, strides: Tensor, anchors: Tensor) -> Tensor:
        """Boxes (B, N, 4) from regressions whose centre offsets are in (0, 1)."""
        low, high = anchors[:, 0:2], anchors[:, 2:4]
        centre = (low + high) * 0.5 + (raw[..., 0:2] - 0.5) * strides.unsqueeze(-1)
        half = (high - low) * 0.5 * raw[..., 2:4].exp()
        return self.corners(raw, centre, half)

    def image(self, box: Tensor, cls: Tensor, obj: Tensor) -> tuple[Tensor, Tensor]:
        """Detections of one image from boxes (N, 4), padded scores (N, 81), objectness (N)."""
        sure = obj >= self.confidence
        box, cls, obj = box[sure], cls[sure], obj[sure]
        boxes = box.unsqueeze(1).expand(box.size(0), 80, 4).reshape(-1, 4)
        scores = cls[:, :80]
        labels = torch.arange(80, device=box.device).repeat(box.size(0))
        # The class score alone is tested, before objectness weighs it.
        valid = torch.nonzero((scores > self.score).reshape(-1)).squeeze(1)
        weighted = (scores * obj.unsqueeze(1)).reshape(-1)
        return suppress(boxes[valid], weighted[valid], labels[valid], self.iou, self.limit)

    def forward(
        self, pred_0: Tensor, pred_1: Tensor, pred_2: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Lists of detections (K, 5) and labels (K), one per image."""
        preds = [pred_0, pred_1, pred_2]
        anchors = self.anchors(preds)
        rows, strides = self.read(preds)
        obj = rows[..., 4].sigmoid()
        cls = rows[..., 5:85].sigmoid()
        box = self.decode(rows[..., 0:4], strides, anchors)
        # A column for a background that is never used, as other detectors have it.
        cls = torch.cat([cls, torch.zeros_like(cls[..., :1])], dim=-1)
        dets: list[Tensor] = []
        labels: list[Tensor] = []
        for one_box, one_cls, one_obj in zip(box.split(1), cls.split(1), obj.split(1)):
            found = self.image(one_box.squeeze(0), one_cls.squeeze(0), one_obj.squeeze(0))
            dets.append(found[0])
            labels.append(found[1])
        return dets, labels


class Yolov3Unrolled(Yolov3):
    """The same without a loop over the levels, and with boxes written column by column."""

    def anchors(self, preds: list[Tensor]) -> Tensor:
        """The anchors of all levels (N, 4)."""
        anchors_0 = anchor_columns(10, 10, 32, self.bases[0])
        anchors_1 = anchor_columns(20, 20, 16, self.bases[1])
        anchors_2 = anchor_columns(40, 40, 8, self.bases[2])
        return torch.cat([anchors_0, anchors_1, anchors_2])

    def read(self, preds: list[Tensor]) -> tuple[Tensor, Tensor]:
        """All levels as rows (B, N, 85) and the stride of each row (N)."""
        rows_0, strides_0 = self.level(preds[0], 32)
        rows_1, strides_1 = self.level(preds[1], 16)
        rows_2, strides_2 = self.level(preds[2], 8)
        rows = torch.cat([rows_0, rows_1, rows_2], dim=1)
        return rows, torch.cat([strides_0, strides_1, strides_2])

    def corners(self, raw: Tensor, centre: Tensor, half: Tensor) -> Tensor:
        """Boxes (B, N, 4), written into a copy of the regressions."""
        boxes = raw.clone()
        boxes[..., 0] = centre[..., 0] - half[..., 0]
        boxes[..., 1] = centre[..., 1] - half[..., 1]
        boxes[..., 2] = centre[..., 0] + half[..., 0]
        boxes[..., 3] = centre[..., 1] + half[..., 1]
        return boxes
