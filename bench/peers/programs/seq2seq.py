# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding with an LSTM cell: a while loop that stops on its own data."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.peers.program import Weights

GATES = ("i", "f", "g", "o")


class Cell(torch.nn.Module):
    """x, h, c [B, H] -> the new h and c."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        biases = [f"{side}_{gate}" for side in ("b_ih", "b_hh") for gate in GATES]
        for name in ("w_ih", "w_hh", *biases):  # [4, H, H]; the biases [H]
            self.register_buffer(name, torch.tensor(weights[name]))

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        ih = torch.matmul(x, self.w_ih)  # [4, B, H]
        hh = torch.matmul(h, self.w_hh)
        i = torch.sigmoid((ih[0] + self.b_ih_i) + (hh[0] + self.b_hh_i))
        f = torch.sigmoid((ih[1] + self.b_ih_f) + (hh[1] + self.b_hh_f))
        g = torch.tanh((ih[2] + self.b_ih_g) + (hh[2] + self.b_hh_g))
        o = torch.sigmoid((ih[3] + self.b_ih_o) + (hh[3] + self.b_hh_o))
        c = f * c + i * g
        h = o * torch.tanh(c)
        return h, c


class Seq2Seq(torch.nn.Module):
    """enc [L, B, H], force [L, B, V], h, c [B, H] -> tokens [L, B] int64, h [B, H].

    Only the sizes of `enc` are used.  Token 1 starts a sequence and token 0 ends it.
    """

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.cell = Cell(weights)
        for name in ("embedding", "w_out", "b_out"):  # [V, H], [V, H], [V]
            self.register_buffer(name, torch.tensor(weights[name]))

    def step(
        self, tok: Tensor, h: Tensor, c: Tensor, force: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One token: the new tok, h and c."""
        h, c = self.cell(self.embedding[tok], h, c)
        logits = torch.nn.functional.linear(h, self.w_out, self.b_out) + force
        return logits.argmax(1), h, c

    def forward(
        self, enc: Tensor, force: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        length, batch = enc.size(0), enc.size(1)
        out = torch.zeros([length, batch], dtype=torch.int64, device=enc.device)
        tok = torch.full([batch], 1, dtype=torch.int64, device=enc.device)
        pos = 0
        going = True
        while going:
            tok, h, c = self.step(tok, h, c, force[pos])
            out[pos] = tok
            pos += 1
            going = bool(tok.max() > 0) and pos < length
        return out, h
