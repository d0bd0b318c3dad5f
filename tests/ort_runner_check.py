"""scripts/ort_runner.py by itself, and as the runtime of tssa-opt --check-runtime.

Usage: ort_runner_check.py TSSA_OPT
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).parent.parent
RUNNER = ROOT / "scripts" / "ort_runner.py"


def tensor(name: str, dtype: int, shape: list | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def save(path: Path, nodes: list, inputs: list, outputs: list, constants: list = ()) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def gather(path: Path) -> Path:
    """out = data[k], and the two as a sequence; `data` has a default."""
    data = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "data")
    nodes = [
        helper.make_node("Gather", ["data", "k"], ["out"]),
        helper.make_node("SequenceConstruct", ["out", "data"], ["both"]),
    ]
    both = helper.make_tensor_sequence_value_info("both", TensorProto.FLOAT, None)
    inputs = [tensor("data", TensorProto.FLOAT, [3]), tensor("k", TensorProto.INT64, [1])]
    return save(path, nodes, inputs, [tensor("out", TensorProto.FLOAT, [1]), both], [data])


def run(*arguments, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, RUNNER, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


def refused(done: subprocess.CompletedProcess, status: int, part: str) -> list[str]:
    good = (
        done.returncode == status
        and done.stderr.count("\n") == 1
        and done.stderr.startswith("ort_runner.py: ")
        and part in done.stderr
        and not done.stdout
    )
    return [] if good else [f"not refused with {status}, {part!r}: {done}"]


def runs(folder: Path) -> list[str]:
    """Values come by number, a default stays, and a sequence is a sequence."""
    model, found = gather(folder / "m.onnx"), []
    for name in ("in", "out"):
        (folder / name).mkdir()
    k = numpy_helper.from_array(np.array([2], np.int64))
    (folder / "in" / "input_1.pb").write_bytes(k.SerializeToString())
    for options in ([], ["--no-optimizations"]):
        done = run(*options, model, folder / "in", folder / "out")
        if done.returncode or done.stderr:
            return [f"did not run: {done}"]
        out = onnx.load_tensor(folder / "out" / "output_0.pb")
        both = onnx.SequenceProto.FromString((folder / "out" / "output_1.pb").read_bytes())
        if numpy_helper.to_array(out).tolist() != [3]:
            found.append(f"output 0: {out}")
        if [x.tolist() for x in numpy_helper.to_list(both)] != [[3], [1, 2, 3]]:
            found.append(f"output 1: {both}")
    return found


def refuses(folder: Path) -> list[str]:
    model = gather(folder / "m.onnx")
    acme = helper.make_node("Magic", ["x"], ["y"], domain="com.acme")
    x, y = (tensor(name, TensorProto.FLOAT, [2]) for name in "xy")
    magic = save(folder / "magic.onnx", [acme], [x], [y])
    (folder / "in").mkdir()
    (folder / "none").mkdir()
    (folder / "none" / "onnxruntime.py").write_text("raise ImportError('No ONNX Runtime')\n")
    found = refused(run(model), 2, "IN_DIR")
    found += refused(run(folder / "missing.onnx", folder, folder), 3, "missing.onnx")
    found += refused(run(magic, folder, folder), 3, "Magic")
    found += refused(
        run(model, folder, folder, PYTHONPATH=f"{folder}/none"), 4, "No ONNX Runtime"
    )
    found += refused(run(model, folder / "in", folder), 5, "k")
    k = numpy_helper.from_array(np.array([7], np.int64))
    (folder / "in" / "input_1.pb").write_bytes(k.SerializeToString())
    found += refused(run(model, folder / "in", folder), 5, "out of data bounds")
    (folder / "in" / "input_1.pb").write_bytes(b"\xff\xff")
    found += refused(run(model, folder / "in", folder), 6, "input_1.pb")
    (folder / "in" / "input_1.pb").write_bytes(
        numpy_helper.from_array(np.array([0], np.int64)).SerializeToString()
    )
    return found + refused(run(model, folder / "in", folder / "nowhere"), 6, "nowhere")


def check(
    tool: str, folder: Path, model: Path, **environment: str
) -> subprocess.CompletedProcess:
    runtime = shlex.join([sys.executable, str(RUNNER)])
    command = [tool, model, folder / "new.onnx", "--check", "1", "--check-runtime", runtime]
    where = {**os.environ, "TMPDIR": str(folder / "tmp"), **environment}
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.run(command, capture_output=True, text=True, env=where, timeout=120)


def is_runtime(tool: str, folder: Path) -> list[str]:
    """What tssa cannot run (a tree, and a ZipMap) is checked by ONNX Runtime."""
    tree = helper.make_node(
        "TreeEnsembleClassifier",
        ["x"],
        ["label", "scores"],
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[0.5, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        class_treeids=[0, 0, 0, 0],
        class_nodeids=[1, 1, 2, 2],
        class_ids=[0, 1, 0, 1],
        class_weights=[0.9, 0.1, 0.2, 0.8],
        classlabels_int64s=[0, 1],
    )
    zipmap = helper.make_node(
        "ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]
    )
    keys = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(keys))
    outputs = [tensor("label", TensorProto.INT64, ["N"]), maps]
    graph = helper.make_graph(
        [tree, zipmap], "g", [tensor("x", TensorProto.FLOAT, ["N", 1])], outputs
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
    model = folder / "tree.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), model)
    done, found = check(tool, folder, model), []
    if done.returncode or "checked with" not in done.stdout:
        found.append(f"not checked: {done}")
    (folder / "onnxruntime.py").write_text("raise ImportError('No ONNX Runtime')\n")
    done = check(tool, folder, model, PYTHONPATH=str(folder))
    for part in ("not checked: ", "TreeEnsembleClassifier", "No ONNX Runtime"):
        if done.returncode != 7 or part not in done.stderr:
            found.append(f"{part!r} is missing: {done}")
    if list((folder / "tmp").glob("tssa-check-*")):
        found.append("temporary files are left")
    return found


def main() -> int:
    tool = sys.argv[1]
    passed, failed = 0, 0
    tests = {
        "runs": runs,
        "refuses": refuses,
        "is_runtime": lambda folder: is_runtime(tool, folder),
    }
    for name, test in tests.items():
        with tempfile.TemporaryDirectory() as folder:
            found = test(Path(folder))
        for line in found:
            print(f"FAIL {name}: {line}")
        passed += not found
        failed += bool(found)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
