# SPDX-License-Identifier: Apache-2.0
"""Where things lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "build/models"
SCRATCH = ROOT / "build/peers"  # logs of the modes, kernels that Inductor built, last run
