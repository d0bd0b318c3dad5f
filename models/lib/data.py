"""Seeding, the standard test-data layout, and the check against ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from models.lib.builder import count_nodes

# A model input or output: a tensor, or a list of tensors for an ONNX sequence.
Data = np.ndarray | list[np.ndarray]

RTOL = 1e-3
ATOL = 1e-5


class CheckFailure(Exception):
    """The reference and ONNX Runtime disagree, or the data do not fit the model."""


def rng_for(*parts: object) -> np.random.Generator:
    """A generator seeded by names only, the same on every machine."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))


def normal(
    rng: np.random.Generator, *shape: int, mean: float = 0.0, std: float = 1.0
) -> np.ndarray:
    """float32 samples of N(mean, std)."""
    return (rng.standard_normal(shape) * std + mean).astype(np.float32)


def uniform(
    rng: np.random.Generator, *shape: int, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """float32 samples of U[low, high)."""
    return (rng.random(shape) * (high - low) + low).astype(np.float32)


def save_model(model: onnx.ModelProto, path: Path) -> None:
    """Write the model; the bytes depend on its contents only."""
    path.write_bytes(model.SerializeToString(deterministic=True))


def encode(name: str, value: Data) -> bytes:
    """A tensor as TensorProto, a list as SequenceProto."""
    if not isinstance(value, list):
        # order="C" and not ascontiguousarray, which turns scalars into vectors
        tensor = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return tensor.SerializeToString(deterministic=True)
    seq = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.TENSOR)
    for k, item in enumerate(value):
        seq.tensor_values.append(
            numpy_helper.from_array(np.asarray(item, order="C"), f"{name}_{k}")
        )
    return seq.SerializeToString(deterministic=True)


def save_data_set(
    model: onnx.ModelProto, folder: Path, inputs: list[Data], outputs: list[Data]
) -> None:
    """Write input_K.pb and output_K.pb after checking them against the model."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, infos, values in (
        ("input", model.graph.input, inputs),
        ("output", model.graph.output, outputs),
    ):
        if len(infos) != len(values):
            raise CheckFailure(f"{len(values)} {kind}s for {len(infos)} declared")
        for k, (info, value) in enumerate(zip(infos, values)):
            _check_type(info, value)
            (folder / f"{kind}_{k}.pb").write_bytes(encode(info.name, value))


def freeze(values: list[Data]) -> list[Data]:
    """Make arrays read-only, so that a reference cannot change its inputs."""
    for value in values:
        for array in value if isinstance(value, list) else [value]:
            array.setflags(write=False)
    return values


def load_data(path: Path, type_proto: onnx.TypeProto) -> Data:
    """Read one .pb written by save_data_set."""
    raw = path.read_bytes()
    if type_proto.HasField("sequence_type"):
        return [
            numpy_helper.to_array(t) for t in onnx.SequenceProto.FromString(raw).tensor_values
        ]
    return numpy_helper.to_array(TensorProto.FromString(raw))


def _check_type(info: onnx.ValueInfoProto, value: Data) -> None:
    """The value must have the declared kind, element type, rank and fixed dims."""
    is_seq = info.type.HasField("sequence_type")
    if is_seq != isinstance(value, list):
        raise CheckFailure(f"{info.name}: tensor where a sequence is declared, or reverse")
    tensor = info.type.sequence_type.elem_type.tensor_type if is_seq else info.type.tensor_type
    want = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    for item in value if is_seq else [value]:
        if not isinstance(item, np.ndarray):
            raise CheckFailure(f"{info.name}: {type(item).__name__} is not an array")
        if item.dtype != want:
            raise CheckFailure(f"{info.name}: {item.dtype}, declared {want}")
        if tensor.HasField("shape"):
            dims = tensor.shape.dim
            fits = len(dims) == item.ndim and all(
                not d.HasField("dim_value") or d.dim_value == n
                for d, n in zip(dims, item.shape)
            )
            if not fits:
                raise CheckFailure(f"{info.name}: shape {item.shape} is not as declared")


def compare(name: str, got: Data, want: Data) -> dict[str, Any]:
    """Compare two values; returns the differences, raises CheckFailure if too large.

    Floats: |got - want| <= ATOL + RTOL * |want|.  Everything else: equal.
    The relative difference is taken over |want| > ATOL only.
    """
    if isinstance(want, list) != isinstance(got, list):
        raise CheckFailure(f"{name}: tensor against sequence")
    pairs = list(zip(got, want)) if isinstance(want, list) else [(got, want)]
    if isinstance(want, list) and len(got) != len(want):
        raise CheckFailure(f"{name}: {len(got)} elements, expected {len(want)}")
    report = {"name": name, "max_abs": 0.0, "max_rel": 0.0}
    for k, (g, w) in enumerate(pairs):
        where = f"{name}[{k}]" if isinstance(want, list) else name
        g = np.asarray(g)
        if g.dtype != w.dtype or g.shape != w.shape:
            raise CheckFailure(f"{where}: {g.dtype}{g.shape}, expected {w.dtype}{w.shape}")
        if g.dtype.kind != "f":
            if not np.array_equal(g, w):
                raise CheckFailure(f"{where}: {np.sum(g != w)} elements differ")
            continue
        if not np.isfinite(w).all():
            raise CheckFailure(f"{where}: the reference is not finite")
        a, b = g.astype(np.float64), w.astype(np.float64)
        diff = np.abs(a - b)
        bad = ~(diff <= ATOL + RTOL * np.abs(b))
        if bad.any():
            worst = np.unravel_index(np.argmax(np.where(bad, diff, 0)), diff.shape)
            raise CheckFailure(
                f"{where}: {bad.sum()} of {bad.size} elements differ; at "
                f"{tuple(map(int, worst))} {a[worst]!r}, expected {b[worst]!r}"
            )
        if diff.size:
            report["max_abs"] = max(report["max_abs"], float(diff.max()))
            large = np.abs(b) > ATOL
            if large.any():
                rel = float((diff[large] / np.abs(b[large])).max())
                report["max_rel"] = max(report["max_rel"], rel)
    return report


class Crosscheck:
    """Runs a saved model in ONNX Runtime and compares its saved data sets."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime as ort  # only here: --no-crosscheck works without it

        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.version = ort.__version__
        path = folder / "model.onnx"
        self.graph = onnx.load(path).graph
        self.session = ort.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )

    def run(self, data_set: Path) -> list[dict[str, Any]]:
        """Differences per output; raises CheckFailure."""
        feed, expected = (
            {
                info.name: load_data(data_set / f"{kind}_{k}.pb", info.type)
                for k, info in enumerate(infos)
            }
            for kind, infos in (("input", self.graph.input), ("output", self.graph.output))
        )
        got = self.session.run(list(expected), feed)
        return [compare(n, a, b) for a, (n, b) in zip(got, expected.items())]


def write_report(
    path: Path, model: onnx.ModelProto, version: str, data_sets: list[list[dict]]
) -> None:
    """crosscheck.json: model size and the differences of every data set."""
    report = {
        "nodes": count_nodes(model.graph),
        "reference": f"numpy {np.__version__}",
        "checked_against": f"onnxruntime {version}",
        "rtol": RTOL,
        "atol": ATOL,
        "data_sets": data_sets,
    }
    path.write_text(json.dumps(report, indent=1) + "\n")


def compare_folders(fresh: Path, kept: Path) -> None:
    """Raise CheckFailure unless `kept` holds the same model and data as `fresh`."""

    def files(folder: Path) -> list[str]:
        wanted = [folder / "model.onnx", *folder.glob("test_data_set_*/*.pb")]
        return sorted(str(f.relative_to(folder)) for f in wanted if f.is_file())

    if files(fresh) != files(kept):
        raise CheckFailure(f"{kept} lacks files or has stale ones")
    model = onnx.load(fresh / "model.onnx")
    for name in files(fresh):
        if (fresh / name).read_bytes() == (kept / name).read_bytes():
            continue
        stem = Path(name).stem
        if not stem.startswith("output_"):
            raise CheckFailure(f"{name} differs")
        type_proto = model.graph.output[int(stem.split("_")[1])].type
        compare(name, load_data(kept / name, type_proto), load_data(fresh / name, type_proto))
