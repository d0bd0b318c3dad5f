# SPDX-License-Identifier: Apache-2.0
"""TorchScript with the NNC fuser, which fuses on the CPU only in builds with LLVM."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

from bench.peers.modes.eager import Eager
from bench.peers.program import Value


class Script(Eager):
    def transform(self, module: torch.nn.Module) -> Callable[..., tuple[Value, ...]]:
        torch._C._jit_set_texpr_fuser_enabled(True)
        torch._C._jit_override_can_fuse_on_cpu(torch._C._llvm_enabled())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.jit.script(module)
