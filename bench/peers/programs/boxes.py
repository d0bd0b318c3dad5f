# SPDX-License-Identifier: Apache-2.0
"""Small programs that decode or copy boxes."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.peers.programs.micro import Micro


class MultiScaleBbox(Micro):
    """Lists of boxes [n_i, 4], predictions [n_i, 4], strides [] -> list of [n_i, 4]."""

    def decode(self, box: Tensor, pred: Tensor, stride: Tensor) -> Tensor:
        """The corners of one level's boxes."""
        centre = (box[:, 0:2] + box[:, 2:4]) * 0.5 + (pred[:, 0:2] - 0.5) * stride
        half = (box[:, 2:4] - box[:, 0:2]) * 0.5 * pred[:, 2:4].exp()
        cx, cy = centre[:, 0], centre[:, 1]
        hx, hy = half[:, 0], half[:, 1]
        return torch.stack([cx - hx, cy - hy, cx + hx, cy + hy], -1)

    def forward(
        self, boxes: list[Tensor], preds: list[Tensor], strides: list[Tensor]
    ) -> tuple[list[Tensor]]:
        out: list[Tensor] = []
        for box, pred, stride in zip(boxes, preds, strides):
            out.append(self.decode(box, pred, stride))
        return (out,)


class Offset2Bbox(Micro):
    """boxes, offset [n, 4] -> [n, 4].

    The first write covers every column by broadcasting; the others overwrite theirs.
    """

    def forward(self, boxes: Tensor, offset: Tensor) -> tuple[Tensor]:
        x1, y1, x2, y2 = boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]
        w = x2 - x1 + 1.0
        h = y2 - y1 + 1.0
        cx = x1 + w * 0.5
        cy = y1 + h * 0.5

        dx = offset[:, 0::4] / 1.0
        dy = offset[:, 1::4] / 1.0
        dw = (offset[:, 2::4] / 1.0).clamp(max=4.135)
        dh = (offset[:, 3::4] / 1.0).clamp(max=4.135)
        pcx = dx * w.unsqueeze(1) + cx.unsqueeze(1)
        pcy = dy * h.unsqueeze(1) + cy.unsqueeze(1)
        pw = dw.exp() * w.unsqueeze(1)
        ph = dh.exp() * h.unsqueeze(1)

        r = offset.clone()
        r[:] = pcx - pw * 0.5
        r[:, 1::4] = pcy - ph * 0.5
        r[:, 2::4] = pcx + pw * 0.5 - 1.0
        r[:, 3::4] = pcy + ph * 0.5 - 1.0
        return (r,)


class BboxExpand(Micro):
    """t, w [n, 4], labels [k] -> copies of t and w, some rows written again."""

    def forward(self, t: Tensor, w: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        t_copy = t.clone()
        w_copy = w.clone()
        rows: list[int] = labels.tolist()
        for i in rows:
            t_copy[i] = t[i]
            w_copy[i] = w[i]
        return t_copy, w_copy
