# SPDX-License-Identifier: Apache-2.0
"""Rows incremented one by one in a loop."""

from __future__ import annotations

import torch

from bench.peers.program import Weights


class GetStarted(torch.nn.Module):
    """Each iteration touches one row, so none needs another's result."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()

    def forward(self, a: torch.Tensor, b: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor]:
        b = b.clone()
        for i in range(int(n)):
            b[i] = b[i] + 1
        return (b,)
