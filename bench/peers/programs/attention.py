# SPDX-License-Identifier: Apache-2.0
"""Autoregressive attention with key and value caches that are filled in place."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.peers.program import Weights


class Attention(torch.nn.Module):
    """x [B, heads, 1, D], k, v [B, heads, S, D] -> k, v, x.

    The first 32 positions of the caches are filled; each step fills the next one.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        for name in ("w_q", "w_k", "w_v", "w_o"):  # [heads, D, D]
            self.register_buffer(name, torch.tensor(weights[name]))

    def forward(self, x: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, heads, length, depth = k.size()
        k = k + 0.0
        v = v + 0.0
        for g in range(32, length):
            q = torch.matmul(x, self.w_q)
            k[:, :, g, :] = torch.matmul(x, self.w_k).reshape(batch, heads, depth)
            v[:, :, g, :] = torch.matmul(x, self.w_v).reshape(batch, heads, depth)
            a = torch.matmul(k, q.transpose(3, 2)).transpose(3, 2)  # [B, heads, 1, S]
            a *= 0.125
            a = torch.softmax(a, 3)  # over all positions: there is no mask
            x = torch.matmul(torch.matmul(a, v), self.w_o)
        return k.clone(), v.clone(), x.clone()
