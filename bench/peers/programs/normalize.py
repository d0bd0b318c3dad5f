# SPDX-License-Identifier: Apache-2.0
"""Image normalisation that swaps the colour channels by two column writes."""

from __future__ import annotations

from torch import Tensor

from bench.peers.programs.micro import Micro


class Normalize(Micro):
    """src [height, width, 3], mean and scale scalars -> [height, width, 3]."""

    def forward(self, src: Tensor, mean: Tensor, scale: Tensor) -> tuple[Tensor]:
        src = src.clone()
        dup = src.clone()
        dup[..., 0] = src[..., 2]
        dup[..., 2] = src[..., 0]
        return ((dup - mean) * scale,)
