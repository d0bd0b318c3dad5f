# SPDX-License-Identifier: Apache-2.0
"""Rows incremented one by one in a loop."""

from __future__ import annotations

import torch

from bench.peers.programs.micro import Micro


class GetStarted(Micro):
    """Each iteration touches one row, so none needs another's result."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor]:
        b = b.clone()
        for i in range(int(n)):
            b[i] = b[i] + 1
        return (b,)
