# SPDX-License-Identifier: Apache-2.0
"""Ten LSTM layers whose states live in two buffers, written in place."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.peers.program import Weights

LAYERS = 10


class Cell(torch.nn.Module):
    """One layer: v [B, H] or [1, B, H], states [1, B, H] -> the new states."""

    def __init__(self, weights: Weights, layer: int) -> None:
        super().__init__()
        for name in ("w_ih", "w_hh", "b_ih", "b_hh"):  # [4, H, H] and [4, 1, H]
            self.register_buffer(name, torch.tensor(weights[f"{name}_{layer}"]))

    def forward(self, v: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        ih = torch.matmul(v, self.w_ih) + self.b_ih  # [4, B, H]
        hh = torch.matmul(h, self.w_hh) + self.b_hh
        i = torch.sigmoid(ih[0] + hh[0])
        f = torch.sigmoid(ih[1] + hh[1])
        g = torch.tanh(ih[2] + hh[2])
        o = torch.sigmoid(ih[3] + hh[3])
        c = f * c + i * g
        h = o * torch.tanh(c)
        return c, h


class Lstm(torch.nn.Module):
    """x [L, B, H] -> the last layer's hidden state [1, B, H]."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Cell(weights, j) for j in range(LAYERS))

    def forward(self, x: Tensor) -> tuple[Tensor]:
        states = [len(self.layers), 1, x.size(1), x.size(2)]
        cells = torch.zeros(states, device=x.device)
        hiddens = torch.zeros(states, device=x.device)
        for t in range(x.size(0)):
            v = x[t]
            for j, layer in enumerate(self.layers):
                c, h = layer(v, cells[j], hiddens[j])
                cells[j] = c
                hiddens[j] = h
                v = h
        return (hiddens[-1],)
