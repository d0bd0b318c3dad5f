#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the programs in PyTorch, ONNX Runtime, OpenVINO and tssa.

bench/peers/run.py --check-only --only ssd     are the modules right?
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT)

import torch  # noqa: E402

from bench.peers import check, data  # noqa: E402
from bench.peers.program import Program  # noqa: E402
from bench.peers.programs.table import PROGRAMS  # noqa: E402


def check_program(program: Program, folder: Path) -> None:
    model = data.read_model(folder)
    module = program.make(model.weights)
    for name, function in (("eager", module), ("jit.script", torch.jit.script(module))):
        for k, data_set in enumerate(model.sets):
            inputs = [data.to_torch(v) for v in data_set.inputs]
            with torch.inference_mode():
                outputs = [data.to_numpy(v) for v in function(*inputs)]
            check.check_outputs(model.output_names, outputs, data_set.outputs)
            for before, after in zip(data_set.inputs, inputs):
                check.compare("an input was written", data.to_numpy(after), before)
            print(f"{program.name} {name} data set {k}: right", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="WORD", default=[""])
    parser.add_argument("--models", type=Path, default=ROOT / "build/models")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--check-only", action="store_true")
    args = parser.parse_args()
    failed = 0
    for program in PROGRAMS:
        if not any(word in program.name for word in args.only):
            continue
        try:
            name = program.model_name(args.batch, args.length)
            check_program(program, args.models / name)
        except Exception as error:
            failed += 1
            text = str(error).strip() or type(error).__name__
            print(f"{program.name}: {type(error).__name__}: {text}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
