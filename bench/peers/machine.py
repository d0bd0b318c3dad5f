# SPDX-License-Identifier: Apache-2.0
"""Where and with what figures were taken."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from bench import versus_ort

PACKAGES = ("torch", "torchvision", "triton", "onnxruntime", "openvino", "onnx", "numpy")
CARD = (
    "name",
    "driver_version",
    "memory.total",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "power.limit",
)


def describe(device: str, threads: int) -> dict[str, Any]:
    about = versus_ort.host()
    about["threads"] = threads
    about["device"] = device
    about["versions"] = versions()
    about["clocks_mhz"] = clocks()
    if device == "cuda" and (found := card()):
        about["card"] = found
    return about


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    compiler = first_line(["g++", "--version"])
    return found | ({"g++": compiler} if compiler else {})


def clocks() -> list[int]:
    """Of each core, now."""
    text = Path("/proc/cpuinfo").read_text()
    return [round(float(mhz)) for mhz in re.findall(r"cpu MHz\s*: ([\d.]+)", text)]


def card() -> dict[str, str]:
    query = ["nvidia-smi", f"--query-gpu={','.join(CARD)}", "--format=csv,noheader"]
    line = first_line(query)
    return dict(zip(CARD, line.split(", "))) if line else {}


def first_line(command: list[str]) -> str:
    """Of its output; empty where there is no such command or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return lines[0].strip() if lines else ""


def load_average() -> float:
    return os.getloadavg()[0]
