# SPDX-License-Identifier: Apache-2.0
"""What the micro programs share."""

from __future__ import annotations

import torch

from bench.peers.program import Weights


class Micro(torch.nn.Module):
    """A program without weights."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
