# SPDX-License-Identifier: Apache-2.0
"""A recurrent cell found by architecture search: eight gates, read by select views."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.peers.program import Weights


class NasRnn(torch.nn.Module):
    """x [L, B, H] -> c + m [B, H]."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        for name in ("w_ih", "w_hh"):  # [8, H, H], input x hidden per gate
            self.register_buffer(name, torch.tensor(weights[name]))

    def cell(self, x: Tensor, c: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
        """One step: the new c and m."""
        ih = torch.matmul(x, self.w_ih)  # [8, B, H]
        hh = torch.matmul(m.reshape(x.size(0), -1), self.w_hh)
        a0 = torch.sigmoid(ih[0] + hh[0])
        a1 = torch.relu(ih[1] + hh[1])
        a2 = torch.sigmoid(ih[2] + hh[2])
        a3 = torch.relu(ih[3] + hh[3])
        a4 = torch.tanh(ih[4] + hh[4])
        a5 = torch.sigmoid(ih[5] + hh[5])
        a6 = torch.tanh(ih[6] + hh[6])
        a7 = torch.sigmoid(ih[7] + hh[7])

        b0 = torch.tanh(a0 * a1)
        b1 = torch.tanh(a2 + a3)
        b2 = torch.tanh(a4 * a5)
        b3 = torch.sigmoid(a6 + a7)

        c = torch.tanh(b0 + c) * b1
        m = torch.tanh(c * torch.tanh(b2 + b3))
        return c, m

    def forward(self, x: Tensor) -> tuple[Tensor]:
        c = torch.zeros([x.size(1), x.size(2)], device=x.device)
        m = torch.zeros([x.size(1), x.size(2)], device=x.device)
        for t in range(x.size(0)):
            c, m = self.cell(x[t], c, m)
        return (c + m,)
