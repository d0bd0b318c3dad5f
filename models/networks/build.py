#!/usr/bin/env python3
"""Builds whole networks, with drawn weights and test data, by PyTorch's exporter, and copies
the official "light" models of the onnx package.

    models/networks/build.py --out build/networks            all of them
    models/networks/build.py --out build/networks resnet18   one
    models/networks/build.py --list

Each network is written to OUT/NAME as model.onnx, network.json (its class), and
test_data_set_0/input_J.pb, output_J.pb.  Outputs are what ONNX Runtime computes of the
file with its optimizations off, and are held against PyTorch's where their shapes are
equal: what a detector keeps may turn on the last bit.  One that is there is skipped,
unless --force says otherwise.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[0] = str(ROOT)

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402

from models.lib import data  # noqa: E402
from models.networks import light  # noqa: E402
from models.networks.registry import NETWORKS, Network  # noqa: E402

OPSET = 17
TOLERANCE = 2e-3  # of the largest element: exporter, rewriting and summation differ
HALF_TOLERANCE = 5e-2


class Calibration:
    """What onnxruntime.quantization reads: the one data set there is."""

    def __init__(self, feed: dict[str, np.ndarray]) -> None:
        self.feeds = iter([feed])

    def get_next(self):
        return next(self.feeds, None)


def quantize_static(prepared: Path, path: Path, feed: dict[str, np.ndarray]) -> None:
    from onnxruntime import quantization

    quantization.quantize_static(
        str(prepared),
        str(path),
        Calibration(feed),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )


def quantize_dynamic(prepared: Path, path: Path, feed: dict[str, np.ndarray]) -> None:
    """Weights of 7 bits, as is advised for processors without VNNI, where ONNX Runtime adds
    products in pairs that saturate."""
    from onnxruntime import quantization

    quantization.quantize_dynamic(
        str(prepared), str(path), weight_type=quantization.QuantType.QUInt8, reduce_range=True
    )


def quantize(how: str, path: Path, feed: dict[str, np.ndarray]) -> None:
    """Replaces the file by one whose products are of bytes."""
    from onnxruntime import quantization

    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quantization.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        {"static": quantize_static, "dynamic": quantize_dynamic}[how](prepared, path, feed)


def run_plainly(path: Path, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


def farthest(network: Network, got: list[np.ndarray], wanted: list[np.ndarray]) -> str:
    """How far the file is from PyTorch's module; raises where that is too far."""
    if network.quantized:
        return "quantized"
    if any(a.shape != b.shape for a, b in zip(got, wanted)):
        if network.kind != "detector":
            raise data.CheckFailure("shapes are not PyTorch's")
        return "finds " + " and ".join(str(found[0].shape[0]) for found in (got, wanted))
    worst = 0.0
    for a, b in zip(got, wanted):
        scale = max(float(np.abs(b).max(initial=0)), 1e-6)
        far = np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)
        worst = max(worst, float(far) / scale)
    if network.kind != "detector" and worst > (HALF_TOLERANCE if network.half else TOLERANCE):
        raise data.CheckFailure(f"differs from PyTorch by {worst:.1e} of the largest element")
    return f"within {worst:.0e} of PyTorch"


def build(name: str, network: Network, folder: Path) -> str:
    # What the exporter knows of attention is its parts.
    torch.backends.mha.set_fastpath_enabled(False)
    torch.manual_seed(int(data.rng_for(name, "weights").integers(1 << 31)))
    rng = torch.Generator().manual_seed(int(data.rng_for(name, "data").integers(1 << 31)))
    inputs = network.inputs(rng)
    module = network.module(inputs).eval()
    if network.half:
        module = module.half()
        inputs = tuple(x.half() if x.is_floating_point() else x for x in inputs)
    with torch.no_grad():
        wanted = module(*inputs)
    wanted = [x.numpy() for x in (wanted if isinstance(wanted, tuple) else (wanted,))]

    path = folder / "model.onnx"
    names = [f"input_{k}" for k in range(len(inputs))]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, inputs, str(path), opset_version=OPSET, input_names=names, dynamo=False
        )
    feed = dict(zip(names, (x.numpy() for x in inputs)))
    if network.quantized:
        quantize(network.quantized, path, feed)
    model = onnx.load(path)
    feed = {given.name: feed[given.name] for given in model.graph.input}
    outputs = run_plainly(path, feed)
    said = farthest(network, outputs, wanted)
    data.save_data_set(model, folder / "test_data_set_0", list(feed.values()), outputs)
    (folder / "network.json").write_text(json.dumps({"kind": network.kind}) + "\n")
    return f"{data.count_nodes(model.graph)} nodes, {said}"


def build_all(names: list[str], out: Path, force: bool) -> int:
    failed = 0
    for name in names:
        started, folder = time.monotonic(), out / name
        if folder.exists() and not force:
            continue
        with tempfile.TemporaryDirectory(dir=out, ignore_cleanup_errors=True) as making:
            try:
                if name in NETWORKS:
                    summary = build(name, NETWORKS[name], Path(making))
                else:
                    summary = light.copy(name, Path(making))
            except Exception as e:  # report every one that fails, not only the first
                failed += 1
                print(f"FAILED {name}: {type(e).__name__}: {e}", file=sys.stderr)
                continue
            if folder.exists():
                shutil.rmtree(folder)
            Path(making).rename(folder)
        print(f"{name}: {summary} ({time.monotonic() - started:.1f} s)", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("build/networks"))
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--force", action="store_true", help="rebuild what is there")
    args = parser.parse_args()
    kinds = {name: network.kind for name, network in NETWORKS.items()}
    kinds |= dict.fromkeys(light.names(), light.KIND)
    if args.list:
        for name, kind in kinds.items():
            print(f"{name}  ({kind})")
        return 0
    if unknown := [name for name in args.names if name not in kinds]:
        parser.error(f"no network is called {unknown[0]}; --list names them")
    logging.disable(logging.WARNING)
    args.out.mkdir(parents=True, exist_ok=True)
    return 1 if build_all(args.names or list(kinds), args.out, args.force) else 0


if __name__ == "__main__":
    raise SystemExit(main())
