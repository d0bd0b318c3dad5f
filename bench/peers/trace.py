# SPDX-License-Identifier: Apache-2.0
"""What one call of a program does.

operators   PyTorch on the CPU: operators that the program itself calls, views among them,
            and fused kernels; not those that operators call
kernels     CUDA: kernels that ran
memcpys     CUDA: copies and fills that ran
calls       CUDA: calls of libraries, where what they ran is not counted itself (tssa)
nodes       ONNX Runtime: nodes that ran, those of subgraphs at each iteration
graphs      torch.compile: how many graphs were compiled, for all shapes
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

OPERATOR = re.compile(r"[A-Za-z_]\w*::\w+|graph_\d+_\w+")


def torch_counts(call: Callable[[], Any], device: str) -> dict[str, int]:
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities = [ProfilerActivity.CUDA]
        profiled(call, activities)  # the first one may miss events
    events = profiled(call, activities)
    if device == "cpu":
        return {"operators": sum(is_outer_operator(event) for event in events)}
    names = [e.name for e in events if e.device_type == torch.autograd.DeviceType.CUDA]
    copies = sum(name.startswith(("Memcpy", "Memset")) for name in names)
    return {"kernels": len(names) - copies, "memcpys": copies}


def profiled(call: Callable[[], Any], activities: list[ProfilerActivity]) -> list[Any]:
    with profile(activities=activities) as profiler:
        call()
    return list(profiler.events())


def is_outer_operator(event: Any) -> bool:
    if not OPERATOR.fullmatch(event.name):
        return False
    parent = event.cpu_parent
    while parent is not None:
        if OPERATOR.fullmatch(parent.name):
            return False
        parent = parent.cpu_parent
    return True


def ort_counts(path: Path) -> dict[str, int]:
    """From the profile of one run."""
    events = json.loads(path.read_text())
    ran = [e for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]
    return {"nodes": len(ran)}


def peak_device_bytes(call: Callable[[], Any]) -> int:
    """Of PyTorch's own allocator."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def host_bytes(key: str) -> int:
    """Of this process: VmRSS is what is resident now, VmHWM the most that ever was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0
