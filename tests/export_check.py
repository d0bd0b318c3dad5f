# SPDX-License-Identifier: Apache-2.0
"""Models through the exporter, unoptimized.

ONNX's checker takes what it took before, the signature is the same, and what is read back is
written as the same file. At other opsets the checker takes what is written.

Usage: export_check.py LIBTSSA FOLDER...
"""

import ctypes
import sys
import tempfile
from pathlib import Path

import onnx

OPSETS = (9, 11, 13, 17, 21)


class SaveOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("opset", ctypes.c_int64),
        ("save_as_external_data", ctypes.c_int),
        ("external_data_name", ctypes.c_char_p),
        ("external_data_threshold", ctypes.c_size_t),
    ]


class Refused(Exception):
    pass


class Library:
    """The few functions of tssa.h that are needed here."""

    def __init__(self, path: str) -> None:
        self.lib = ctypes.CDLL(path)
        pointer = ctypes.c_void_p
        for name in ("context_create", "model_load_file", "model_save_file"):
            getattr(self.lib, f"tssa_{name}").restype = pointer
        self.lib.tssa_status_message.argtypes = [pointer]
        self.lib.tssa_status_message.restype = ctypes.c_char_p
        self.lib.tssa_status_free.argtypes = [pointer]
        self.lib.tssa_model_free.argtypes = [pointer]
        self.lib.tssa_model_load_file.argtypes = [pointer, ctypes.c_char_p, pointer, pointer]
        self.lib.tssa_model_save_file.argtypes = [pointer, ctypes.c_char_p, pointer]
        self.context = pointer()
        self.must(self.lib.tssa_context_create(None, ctypes.byref(self.context)))

    def must(self, status: int | None) -> None:
        if status:
            message = self.lib.tssa_status_message(status).decode()
            self.lib.tssa_status_free(status)
            raise Refused(message)

    def load(self, path: Path) -> ctypes.c_void_p:
        model = ctypes.c_void_p()
        name = str(path).encode()
        self.must(self.lib.tssa_model_load_file(self.context, name, None, ctypes.byref(model)))
        return model

    def save(self, model: ctypes.c_void_p, path: Path, opset: int = 0) -> None:
        options = SaveOptions(struct_size=ctypes.sizeof(SaveOptions), opset=opset)
        name = str(path).encode()
        self.must(self.lib.tssa_model_save_file(model, name, ctypes.byref(options)))

    def free(self, model: ctypes.c_void_p) -> None:
        self.lib.tssa_model_free(model)


def complaint(path: Path) -> str | None:
    """What the checker says; None: nothing."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        return str(error).strip().split("\n")[0]
    return None


def signature(path: Path) -> list[bytes]:
    """Inputs and outputs. Before IR 4 constants are inputs too; a dim of -1 is unknown."""
    model = onnx.load(path, load_external_data=False)
    constants = {t.name for t in model.graph.initializer} if model.ir_version < 4 else set()
    found = []
    for info in [*model.graph.input, *model.graph.output]:
        if info.name in constants:
            continue
        for dim in info.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.ClearField("dim_value")
        found.append(info.SerializeToString(deterministic=True))
    return found


def problems(library: Library, path: Path, folder: Path) -> list[str]:
    first, second, other = folder / "first.onnx", folder / "second.onnx", folder / "other.onnx"
    model = library.load(path)
    found = []
    good = complaint(path) is None
    try:
        library.save(model, first)
        again = library.load(first)
        library.save(again, second)
        library.free(again)
        if first.read_bytes() != second.read_bytes():
            found.append("written again, it is another file")
        if good and (said := complaint(first)):
            found.append(said)
        if signature(path) != signature(first):
            found.append("the signature changes")
    except Refused as refusal:
        found.append(str(refusal))
    for opset in OPSETS:
        try:
            library.save(model, other, opset)
        except Refused:
            continue
        if good and (said := complaint(other)):
            found.append(f"opset {opset}: {said}")
    library.free(model)
    return found


def memory() -> str | None:
    """Every file is synced, which takes long on a disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    library = Library(sys.argv[1])
    paths = sorted(p for folder in sys.argv[2:] for p in Path(folder).rglob("*.onnx"))
    passed, failed, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        for path in paths:
            try:
                found = problems(library, path, Path(folder))
            except Refused:  # it does not load: the importer's tests know why
                skipped += 1
                continue
            for line in found:
                print(f"{path}: {line}")
            passed += not found
            failed += bool(found)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
