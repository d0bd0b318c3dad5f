# SPDX-License-Identifier: Apache-2.0
"""The steps that the detectors share: anchors, the score filter, decoding, suppression.

Plain eager code with views, in-place writes and data-dependent branches, annotated so that
`torch.jit.script` takes it.  Functions cannot see a Python module's constants there, so what
is the same for all detectors stands as a literal or a default.

Each detector has two forms of the same mathematics: one that loops over the levels, and an
`Unrolled` one with the levels written out by hand and tensors filled column by column.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torchvision.ops import nms


def centred_boxes(centre: float, sizes: list[tuple[float, float]]) -> Tensor:
    """Base boxes (A, 4) of the given widths and heights around (centre, centre)."""
    edges = [[centre + k * side / 2 for k in (-1, 1) for side in size] for size in sizes]
    return torch.tensor(edges, dtype=torch.float32)


def cell_corners(height: int, width: int, step: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """x and y (height * width) of every cell's corner, row by row."""
    x = torch.arange(width, device=like.device).to(like.dtype) * step
    y = torch.arange(height, device=like.device).to(like.dtype) * step
    return x.repeat(height), y.view(-1, 1).repeat(1, width).view(-1)


def anchor_grid(height: int, width: int, stride: int, base: Tensor) -> Tensor:
    """Every base box (A, 4) moved to every cell: (height * width * A, 4), cell-major."""
    x, y = cell_corners(height, width, stride, base)
    shifts = torch.stack([x, y, x, y], dim=-1)
    return (base.unsqueeze(0) + shifts.unsqueeze(1)).view(-1, 4)


def anchor_columns(height: int, width: int, stride: int, base: Tensor) -> Tensor:
    """The same, with the cells' corners written column by column."""
    x, y = cell_corners(height, width, stride, base)
    shifts = torch.zeros([height * width, 4], dtype=base.dtype, device=base.device)
    shifts[:, 0] = x
    shifts[:, 1] = y
    shifts[:, 2] = x
    shifts[:, 3] = y
    return (base.unsqueeze(0) + shifts.unsqueeze(1)).view(-1, 4)


def anchors_of(maps: list[Tensor], strides: list[int], bases: Tensor) -> list[Tensor]:
    """Anchors of each level, for maps (B, C, S, S) and base boxes (levels, A, 4)."""
    grids: list[Tensor] = []
    for level, (feature, stride) in enumerate(zip(maps, strides)):
        grids.append(anchor_grid(feature.size(2), feature.size(3), stride, bases[level]))
    return grids


def image_of(maps: list[Tensor], image: int) -> list[Tensor]:
    """One image's share of every map (a view)."""
    return [feature[image] for feature in maps]


def map_rows(feature: Tensor, width: int) -> Tensor:
    """A map (A * width, S, S) as one row of `width` per anchor: (S * S * A, width)."""
    return feature.permute(1, 2, 0).reshape(-1, width)


def filter_topk(scores: Tensor, threshold: float, cap: int) -> tuple[Tensor, Tensor, Tensor]:
    """The at most `cap` best of scores (n, C) above the threshold, best first.

    Returns their values, classes and rows; how many there are depends on the data.
    """
    passed = scores > threshold
    values = scores[passed]
    places = torch.nonzero(passed)
    values, order = values.topk(min(cap, values.size(0)))
    places = places[order]
    return values, places[:, 1], places[:, 0]


def clamp_to_image(boxes: Tensor) -> None:
    """Clamp x, then y of boxes (m, 4) to 320 pixels, in place through strided views."""
    boxes[:, 0::2].clamp_(min=0.0, max=320.0)
    boxes[:, 1::2].clamp_(min=0.0, max=320.0)


class DeltaDecoder(nn.Module):
    """Boxes from priors and the four numbers a network regresses against them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(4))
        self.register_buffer("sigmas", torch.tensor([0.1, 0.1, 0.2, 0.2]))

    def forward(self, priors: Tensor, deltas: Tensor) -> Tensor:
        """Decode deltas (m, 4) against priors (m, 4); not yet clamped to the image."""
        scaled = deltas * self.sigmas + self.means
        centre = (priors[:, :2] + priors[:, 2:]) * 0.5
        size = priors[:, 2:] - priors[:, :2]
        # The largest change of a side is by a factor of 1 / 0.016.
        growth = scaled[:, 2:].clamp(min=-4.135166556742356, max=4.135166556742356)
        middle = centre + size * scaled[:, :2]
        half = size * growth.exp() * 0.5
        return torch.cat([middle - half, middle + half], dim=-1)


def _suppress_by_class(boxes: Tensor, scores: Tensor, classes: Tensor, iou: float) -> Tensor:
    """Survivors of suppression in one class after the other, best first."""
    kept = torch.zeros_like(scores, dtype=torch.bool)
    kept_scores = torch.zeros_like(scores)
    present = torch.unique(classes)
    for k in range(present.size(0)):
        members = torch.nonzero(classes == present[k]).view(-1)
        survivors = members[nms(boxes[members], scores[members], iou)]
        kept[survivors] = True
        kept_scores[survivors] = scores[survivors]
    keep = torch.nonzero(kept).view(-1)
    return keep[kept_scores[keep].argsort(descending=True)]


def suppress(
    boxes: Tensor,
    scores: Tensor,
    classes: Tensor,
    iou: float,
    limit: int,
    batched: int = 10000,
) -> tuple[Tensor, Tensor]:
    """Detections (K, 5) and labels (K): the best `limit` that no better one overlaps.

    Boxes of different classes are moved apart so that one suppression serves all; from
    `batched` boxes on, each class has its own instead.
    """
    if boxes.size(0) == 0:
        return torch.cat([boxes, scores.unsqueeze(1)], dim=-1), classes
    offset = classes.to(boxes.dtype) * (boxes.max() + 1)
    apart = boxes + offset.unsqueeze(1)
    if boxes.size(0) < batched:
        keep = nms(apart, scores, iou)
    else:
        keep = _suppress_by_class(apart, scores, classes, iou)
    dets = torch.cat([boxes[keep], scores[keep].unsqueeze(1)], dim=-1)
    return dets[:limit], classes[keep][:limit]
