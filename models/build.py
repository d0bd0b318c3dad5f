#!/usr/bin/env python3
"""Builds the workload models with their test data.

    models/build.py --out build/models              every standard model
    models/build.py --out build/models lstm_l300    one, at another length
    models/build.py --committed                     refresh models/NAME
    models/build.py --verify-committed              are they up to date?

Each model is written to OUT/NAME as model.onnx, test_data_set_K/input_J.pb and
output_J.pb, and crosscheck.json.  A model whose sources have not changed since
it was built is skipped.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.metadata
import importlib.util
import shutil
import sys
import tempfile
import time
from pathlib import Path

MODELS_DIR = Path(__file__).resolve().parent
sys.path[0] = str(MODELS_DIR.parent)

from models.registry import MODELS, Spec, parse_name  # noqa: E402

STAMP = ".stamp"
COMMITTED_LIMIT = 200 * 1000


def full_name(spec: Spec) -> str:
    """The folder name: the base name and every size that was asked for."""
    name = spec.base
    if spec.batch is not None:
        name += f"_b{spec.batch}"
    if spec.length is not None:
        name += f"_l{spec.length}"
    return name


def _module_file(module: str) -> Path | None:
    path = MODELS_DIR.parent / (module.replace(".", "/") + ".py")
    return path if path.is_file() else None


def source_files(module: str) -> set[Path]:
    """The files of this package that `module` is made from (imports followed)."""
    found: set[Path] = set()
    pending = [_module_file(module)]
    while pending:
        path = pending.pop()
        if path is None or path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module] + [f"{node.module}.{a.name}" for a in node.names]
            elif isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            pending += [_module_file(n) for n in names if n.startswith("models.")]
    return found


def fingerprint(spec: Spec, checked: bool) -> str:
    """A digest of everything the built files depend on."""
    digest = hashlib.sha256()
    digest.update(repr((spec, spec.entry, checked)).encode())
    for package in ["numpy", "onnx"] + (["onnxruntime"] if checked else []):
        digest.update(f"{package} {importlib.metadata.version(package)}".encode())
    sources = source_files(f"models.programs.{spec.entry.module}")
    for path in sorted(sources | {Path(__file__).resolve()}):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def build_model(spec: Spec, out: Path, crosscheck: bool) -> str:
    """Build one model into `out`; returns a one-line summary."""
    from models.lib import data

    name = full_name(spec)
    program = spec.entry.program()
    for option in ("batch", "length"):
        if getattr(spec, option) is not None and getattr(program, option) is None:
            raise data.CheckFailure(f"{spec.base} has no {option} option")
    batch = spec.batch if spec.batch is not None else program.batch
    length = spec.length if spec.length is not None else program.length

    out.mkdir(parents=True, exist_ok=True)
    (out / STAMP).unlink(missing_ok=True)
    model = program.build(batch, length)
    data.save_model(model, out / "model.onnx")
    checker = data.Crosscheck(out) if crosscheck else None
    reports = []
    for stale in out.glob("test_data_set_*"):
        shutil.rmtree(stale)
    for k in range(program.data_sets):
        folder = out / f"test_data_set_{k}"
        rng = data.rng_for(name, "data", k)
        inputs = data.freeze(program.data_set(k, rng, batch, length))
        outputs = program.reference(inputs, batch, length)
        data.save_data_set(model, folder, inputs, outputs)
        if checker:
            reports.append(checker.run(folder))
    nodes = data.count_nodes(model.graph)
    if not checker:
        return f"{nodes} nodes, not cross-checked"
    data.write_report(out / "crosscheck.json", model, checker.version, reports)
    worst = [max(r[key] for d in reports for r in d) for key in ("max_abs", "max_rel")]
    return f"{nodes} nodes, max abs {worst[0]:.1e}, max rel {worst[1]:.1e}"


def build_all(specs: list[Spec], out: Path, crosscheck: bool, force: bool) -> int:
    """Build every model that is out of date; returns the number of failures."""
    failed = skipped = 0
    for spec in specs:
        name, started = full_name(spec), time.monotonic()
        folder = out / name
        stamp = fingerprint(spec, crosscheck)
        stamp_file = folder / STAMP
        if not force and stamp_file.is_file() and stamp_file.read_text() == stamp:
            skipped += 1
            continue
        try:
            summary = build_model(spec, folder, crosscheck)
        except Exception as e:  # report every failing model, not only the first
            failed += 1
            print(f"FAILED {name}: {type(e).__name__}: {e}", file=sys.stderr)
            continue
        stamp_file.write_text(stamp)
        print(f"{name}: {summary} ({time.monotonic() - started:.1f} s)", flush=True)
    print(f"{len(specs) - failed - skipped} built, {skipped} up to date, {failed} failed")
    return failed


def committed_specs() -> list[Spec]:
    """The models kept in the repository."""
    return [Spec(name, None, None) for name, e in MODELS.items() if e.committed]


def build_committed(out: Path, crosscheck: bool) -> int:
    """Regenerate the committed models into `out`."""
    failed = build_all(committed_specs(), out, crosscheck, force=True)
    for spec in committed_specs():
        folder = out / spec.base
        (folder / STAMP).unlink(missing_ok=True)
        size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
        if size > COMMITTED_LIMIT:
            failed += 1
            print(f"FAILED {spec.base}: {size} bytes is too large", file=sys.stderr)
    return failed


def verify_committed(crosscheck: bool) -> int:
    """Compare the committed models with freshly built ones.

    Models and inputs must be identical to the byte.  Expected outputs go through
    exp() and friends, whose last bit depends on the processor, so they are held
    to the usual tolerance.
    """
    from models.lib import data

    with tempfile.TemporaryDirectory() as tmp:
        failed = build_committed(Path(tmp), crosscheck)
        for spec in committed_specs():
            fresh, kept = Path(tmp) / spec.base, MODELS_DIR / spec.base
            try:
                data.compare_folders(fresh, kept)
            except data.CheckFailure as e:
                failed += 1
                print(f"STALE {spec.base}: {e}", file=sys.stderr)
    known = {spec.base for spec in committed_specs()}
    for kept in sorted(MODELS_DIR.glob("*/model.onnx")):
        if kept.parent.name not in known:
            failed += 1
            print(f"STALE {kept.parent.name}: no such committed model", file=sys.stderr)
    if failed:
        print("refresh with: models/build.py --committed", file=sys.stderr)
    else:
        print(f"{len(committed_specs())} committed models are up to date")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="NAME[_bB][_lL]")
    parser.add_argument("--out", type=Path, default=Path("build/models"))
    parser.add_argument("--batch", type=int, help="batch size for the named models")
    parser.add_argument("--length", type=int, help="sequence length likewise")
    parser.add_argument("--all", action="store_true", help="also the non-standard models")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--force", action="store_true", help="rebuild what is up to date")
    parser.add_argument("--no-crosscheck", action="store_true", help="no ONNX Runtime")
    parser.add_argument("--committed", action="store_true")
    parser.add_argument("--verify-committed", action="store_true")
    args = parser.parse_args()
    crosscheck = not args.no_crosscheck

    if args.committed:
        return min(build_committed(MODELS_DIR, crosscheck), 1)
    if args.verify_committed:
        return min(verify_committed(crosscheck), 1)
    names = args.names or [n for n, e in MODELS.items() if e.standard or args.all]
    if args.list:
        print("\n".join(names))
        return 0
    if crosscheck and importlib.util.find_spec("onnxruntime") is None:
        parser.error("onnxruntime is not installed; --no-crosscheck builds without it")
    specs = []
    for name in names:
        try:
            spec = parse_name(name)
        except KeyError:
            parser.error(f"unknown model {name}; --list --all prints the known ones")
        if args.batch or args.length:
            spec = Spec(spec.base, args.batch or spec.batch, args.length or spec.length)
        specs.append(spec)
    return min(build_all(specs, args.out, crosscheck, args.force), 1)


if __name__ == "__main__":
    sys.exit(main())
