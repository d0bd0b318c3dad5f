# SPDX-License-Identifier: Apache-2.0
"""libtssa.so from Python, as far as bench and tests need it: no more than ctypes and numpy."""

from __future__ import annotations

import ctypes
import json
import math
import weakref
from collections import Counter
from ctypes import (
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
)

import numpy as np

MAX_RANK = 16
KIND_NONE, KIND_TENSOR, KIND_SEQUENCE, KIND_MAP = range(4)

# onnx.TensorProto.DataType, where numpy has such a type of its own
DTYPES = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
    13: np.uint64,
    14: np.complex64,
    15: np.complex128,
}
NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items()}


class TssaError(Exception):
    pass


class _Options(ctypes.Structure):
    """The library wants to know the size that its caller takes the struct to have."""

    def __init__(self, **members):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **members)


class _ContextOptions(_Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("allocator", c_void_p),
        ("threads", c_int),
        ("memory_limit", c_size_t),
        ("log", c_void_p),
        ("log_user", c_void_p),
    ]


class _ValueInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int),
        ("is_optional", c_int),
        ("dtype", c_int),
        ("rank", c_int),
        ("dims", c_int64 * MAX_RANK),
        ("symbols", c_char_p * MAX_RANK),
        ("has_default", c_int),
    ]


TARGET_ONNX, TARGET_SESSION = 0, 1
COMPILE_OFF, COMPILE_WAIT = 0, 1
PRECISION_EXACT, PRECISION_RELAXED = 0, 1


class _PassRun(ctypes.Structure):
    _fields_ = [
        ("pass_", c_char_p),
        ("seconds", ctypes.c_double),
        ("ops_before", c_size_t),
        ("ops_after", c_size_t),
        ("changed", c_int),
    ]


_PASS_DONE = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_PassRun))


class _OptimizeOptions(_Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("level", c_int),
        ("verify_after_passes", c_int),
        ("dump_pass", c_char_p),
        ("dump", c_void_p),
        ("dump_user", c_void_p),
        ("remark", c_void_p),
        ("remark_user", c_void_p),
        ("passes", c_void_p),
        ("n_passes", c_size_t),
        ("skipped", c_void_p),
        ("n_skipped", c_size_t),
        ("pass_done", _PASS_DONE),
        ("pass_done_user", c_void_p),
        ("target", c_int),
    ]


class _SessionOptions(_Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_char_p),
        ("profile", c_int),
        ("compile", c_int),
        ("data_share", c_double),
        ("remark", c_void_p),
        ("remark_user", c_void_p),
        ("poison", c_int),
        ("dump", c_void_p),
        ("dump_user", c_void_p),
        ("allow_tf32", c_int),
        ("precision", c_int),
        ("no_winograd", c_int),
    ]


class _SessionWork(ctypes.Structure):
    _fields_ = [
        ("launches", c_uint64),
        ("library_calls", c_uint64),
        ("bytes", c_uint64),
        ("allocations", c_uint64),
        ("copies", c_uint64),
        ("copied_bytes", c_uint64),
        ("replays", c_uint64),
        ("waits", c_uint64),
    ]


class _RunOptions(_Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("cancel", c_void_p),
        ("wanted", c_void_p),
        ("stream", c_void_p),
    ]


_WRITE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)

# The functions that return a status; their argument types.
_CHECKED = {
    "tssa_context_create": (POINTER(_ContextOptions), POINTER(c_void_p)),
    "tssa_model_load_file": (c_void_p, c_char_p, c_void_p, POINTER(c_void_p)),
    "tssa_model_load_memory": (c_void_p, c_void_p, c_size_t, c_void_p, POINTER(c_void_p)),
    "tssa_model_save_memory": (c_void_p, c_void_p, _WRITE, c_void_p),
    "tssa_model_optimize": (c_void_p, POINTER(_OptimizeOptions)),
    "tssa_model_input": (c_void_p, c_size_t, POINTER(_ValueInfo)),
    "tssa_session_create": (c_void_p, POINTER(_SessionOptions), POINTER(c_void_p)),
    "tssa_session_profile": (c_void_p, _WRITE, c_void_p),
    "tssa_session_counts": (c_void_p, POINTER(_SessionWork)),
    "tssa_session_run_with": (
        c_void_p,
        POINTER(_RunOptions),
        c_size_t,
        c_void_p,
        c_size_t,
        c_void_p,
    ),
    "tssa_tensor_borrow": (
        c_void_p,
        c_int,
        c_int,
        POINTER(c_int64),
        c_void_p,
        c_size_t,
        POINTER(c_void_p),
    ),
    "tssa_tensor_borrow_on": (
        c_void_p,
        c_char_p,
        c_int,
        c_int,
        POINTER(c_int64),
        c_void_p,
        c_size_t,
        POINTER(c_void_p),
    ),
    "tssa_sequence_create": (c_void_p, c_int, c_size_t, c_void_p, POINTER(c_void_p)),
    "tssa_none_create": (c_void_p, POINTER(c_void_p)),
    "tssa_value_element": (c_void_p, c_size_t, POINTER(c_void_p)),
}
_OTHERS = {
    "tssa_status_message": (c_char_p, (c_void_p,)),
    "tssa_status_free": (None, (c_void_p,)),
    "tssa_context_free": (None, (c_void_p,)),
    "tssa_context_memory_peak": (c_size_t, (c_void_p,)),
    "tssa_model_free": (None, (c_void_p,)),
    "tssa_model_input_count": (c_size_t, (c_void_p,)),
    "tssa_model_output_count": (c_size_t, (c_void_p,)),
    "tssa_session_free": (None, (c_void_p,)),
    "tssa_value_free": (None, (c_void_p,)),
    "tssa_value_kind": (c_int, (c_void_p,)),
    "tssa_value_dtype": (c_int, (c_void_p,)),
    "tssa_value_count": (c_size_t, (c_void_p,)),
    "tssa_tensor_rank": (c_int, (c_void_p,)),
    "tssa_tensor_dims": (POINTER(c_int64), (c_void_p,)),
    "tssa_tensor_data": (c_void_p, (c_void_p,)),
}


class Library:
    def __init__(self, path: str):
        self.c = ctypes.CDLL(path)
        for name, argtypes in _CHECKED.items():
            function = getattr(self.c, name)
            function.argtypes, function.restype = argtypes, c_void_p
        for name, (restype, argtypes) in _OTHERS.items():
            function = getattr(self.c, name)
            function.argtypes, function.restype = argtypes, restype

    def check(self, status: int | None) -> None:
        if status:
            message = self.c.tssa_status_message(status).decode()
            self.c.tssa_status_free(status)
            raise TssaError(message)


class _Handle:
    """Owns one C object. It keeps its parent alive, so that the context goes last."""

    def __init__(self, lib: Library, free: str, parent: object | None = None):
        self.lib = lib
        self.pointer = c_void_p()
        self._parent = parent
        self._free = getattr(lib.c, free)

    def _own(self) -> None:
        self._freeing = weakref.finalize(self, self._free, self.pointer)

    def hand_on(self) -> int:
        """To somebody else who frees it."""
        self._freeing.detach()
        return self.pointer.value


class Context(_Handle):
    def __init__(self, lib: Library, threads: int = 0):
        super().__init__(lib, "tssa_context_free")
        options = _ContextOptions(threads=threads)
        lib.check(lib.c.tssa_context_create(byref(options), byref(self.pointer)))
        self._own()

    def memory_peak(self) -> int:
        return self.lib.c.tssa_context_memory_peak(self.pointer)


class Model(_Handle):
    """Of a file, or of bytes, which it keeps."""

    def __init__(self, context: Context, source: str | bytes):
        lib = context.lib
        super().__init__(lib, "tssa_model_free", context)
        self.context, self._content = context, source
        if isinstance(source, bytes):
            status = lib.c.tssa_model_load_memory(
                context.pointer, source, len(source), None, byref(self.pointer)
            )
        else:
            status = lib.c.tssa_model_load_file(
                context.pointer, str(source).encode(), None, byref(self.pointer)
            )
        lib.check(status)
        self._own()
        self.n_outputs = lib.c.tssa_model_output_count(self.pointer)

    def optimize(
        self,
        level: int | None = None,
        target: int = TARGET_SESSION,
        changed: Counter[str] | None = None,
    ) -> None:
        """For sessions, or to be saved. Counts the passes that change something."""
        options = _OptimizeOptions(level=level or 0, target=target)
        if changed is not None:

            def done(_, run) -> None:
                if run.contents.changed:
                    changed[run.contents.pass_.decode()] += 1

            options.pass_done = _PASS_DONE(done)
        options = None if level is None else byref(options)
        self.lib.check(self.lib.c.tssa_model_optimize(self.pointer, options))

    def to_bytes(self) -> bytes:
        """The model as ONNX."""
        pieces: list[bytes] = []
        write = _WRITE(lambda _, data, size: pieces.append(ctypes.string_at(data, size)))
        self.lib.check(self.lib.c.tssa_model_save_memory(self.pointer, None, write, None))
        return b"".join(pieces)

    def input_names(self) -> list[str]:
        names = []
        for i in range(self.lib.c.tssa_model_input_count(self.pointer)):
            info = _ValueInfo()
            self.lib.check(self.lib.c.tssa_model_input(self.pointer, i, byref(info)))
            names.append(info.name.decode())
        return names


class Value(_Handle):
    """A tensor over an array's memory, or whatever came out of a run."""

    def __init__(self, context: Context, array: np.ndarray | None = None):
        lib = context.lib
        super().__init__(lib, "tssa_value_free", context)
        self.array = array
        if array is None:
            return
        if array.dtype not in NUMBERS or not array.flags["C_CONTIGUOUS"]:
            raise TssaError(f"cannot borrow an array of {array.dtype}")
        dims = (c_int64 * MAX_RANK)(*array.shape)
        lib.check(
            lib.c.tssa_tensor_borrow(
                context.pointer,
                NUMBERS[array.dtype],
                array.ndim,
                dims,
                array.ctypes.data,
                array.nbytes,
                byref(self.pointer),
            )
        )
        self._own()

    @classmethod
    def of(cls, context: Context, value: np.ndarray | list[np.ndarray] | None) -> Value:
        """A tensor, a sequence of tensors, over the memory of arrays, or an empty optional."""
        if value is None:
            none = cls(context)
            context.lib.check(
                context.lib.c.tssa_none_create(context.pointer, byref(none.pointer))
            )
            none._own()
            return none
        if not isinstance(value, list):
            return cls(context, value)
        sequence, elements = cls(context), [cls(context, array) for array in value]
        sequence.array = value
        pointers = (c_void_p * max(len(elements), 1))(*[e.pointer for e in elements])
        dtype = NUMBERS[value[0].dtype] if value else NUMBERS[np.dtype(np.float32)]
        create = context.lib.c.tssa_sequence_create
        context.lib.check(
            create(context.pointer, dtype, len(value), pointers, byref(sequence.pointer))
        )
        sequence._own()
        return sequence

    @classmethod
    def on_device(
        cls,
        context: Context,
        device: str,
        dtype: np.dtype,
        shape: tuple,
        address: int,
        size: int,
    ) -> Value:
        """A tensor over memory of a device, which the caller keeps."""
        value = cls(context)
        dims = (c_int64 * MAX_RANK)(*shape)
        borrow = context.lib.c.tssa_tensor_borrow_on
        number, rank = NUMBERS[np.dtype(dtype)], len(shape)
        context.lib.check(
            borrow(
                context.pointer,
                device.encode(),
                number,
                rank,
                dims,
                address,
                size,
                byref(value.pointer),
            )
        )
        value._own()
        return value

    def to_python(self) -> np.ndarray | list | None:
        """A copy: an array, a list of arrays, or None for an empty optional."""
        c = self.lib.c
        kind = c.tssa_value_kind(self.pointer)
        if kind == KIND_NONE:
            return None
        if kind == KIND_SEQUENCE:
            elements = []
            for i in range(c.tssa_value_count(self.pointer)):
                element = Value(self._parent)
                self.lib.check(c.tssa_value_element(self.pointer, i, byref(element.pointer)))
                element._own()
                elements.append(element.to_python())
            return elements
        number = c.tssa_value_dtype(self.pointer)
        if kind != KIND_TENSOR or number not in DTYPES:
            raise TssaError(f"cannot show a value of kind {kind} and type {number}")
        shape = c.tssa_tensor_dims(self.pointer)[: c.tssa_tensor_rank(self.pointer)]
        result = np.empty(shape, DTYPES[number])
        if result.nbytes:
            ctypes.memmove(result.ctypes.data, c.tssa_tensor_data(self.pointer), result.nbytes)
        return result


class Session(_Handle):
    def __init__(
        self,
        model: Model,
        profile: bool = False,
        compile: int = COMPILE_OFF,
        device: str | None = None,
        precision: int = PRECISION_EXACT,
    ):
        lib = model.lib
        super().__init__(lib, "tssa_session_free", model.context)
        self.context, self.n_outputs = model.context, model.n_outputs
        self._content = model._content  # of the model, which may be freed: this may not
        name = device.encode() if device else None
        options = byref(
            _SessionOptions(device=name, profile=profile, compile=compile, precision=precision)
        )
        lib.check(lib.c.tssa_session_create(model.pointer, options, byref(self.pointer)))
        self._own()

    def profile(self) -> list[dict]:
        """The steps of all runs since the session was made, as Chrome trace events."""
        pieces: list[bytes] = []
        write = _WRITE(lambda _, text, size: pieces.append(ctypes.string_at(text, size)))
        self.lib.check(self.lib.c.tssa_session_profile(self.pointer, write, None))
        return json.loads(b"".join(pieces))

    def counts(self) -> dict[str, int]:
        """What the last run asked of the device; of one that does not count an error."""
        work = _SessionWork()
        self.lib.check(self.lib.c.tssa_session_counts(self.pointer, byref(work)))
        return {name: getattr(work, name) for name, _ in work._fields_}

    def run(self, inputs: list[Value | None]) -> list[Value]:
        call = Call(self, inputs)
        call()
        return call.outputs()


class Call:
    """A prepared run: arguments are laid out once; calling it runs the model.

    With `prebound`, the tensors that the first run made are written again by later ones.
    Without, every call frees the results of the one before and gets new ones.  With `stream`,
    the handle of one of the device's streams, a call that is a replay returns before its work
    is done.
    """

    def __init__(
        self,
        session: Session,
        inputs: list[Value | None],
        prebound: bool = False,
        stream: int | None = None,
    ):
        c = session.lib.c
        self._options = byref(_RunOptions(stream=stream)) if stream else None
        self._keep = (session, inputs)
        self._session, self._lib, self._prebound = session, session.lib, prebound
        self._inputs = (c_void_p * max(len(inputs), 1))(
            *[value.pointer if value else None for value in inputs]
        )
        self._outputs = (c_void_p * max(session.n_outputs, 1))()
        self._arguments = (
            session.pointer,
            self._options,
            len(inputs),
            self._inputs,
            session.n_outputs,
            self._outputs,
        )
        self._function = c.tssa_session_run_with
        self._free = c.tssa_value_free
        weakref.finalize(self, _free_all, c.tssa_value_free, self._outputs)

    def __call__(self) -> None:
        if not self._prebound:
            for i, output in enumerate(self._outputs):
                if output:
                    self._free(output)
                    self._outputs[i] = None
        status = self._function(*self._arguments)
        if status:
            self._lib.check(status)

    def give_outputs(self, values: list[Value]) -> None:
        """What later calls write to, in place of what this one made."""
        for i, value in enumerate(values):
            if self._outputs[i]:
                self._free(self._outputs[i])
            self._outputs[i] = value.hand_on()
        self._prebound = True

    def again(self) -> None:
        """A run into the tensors of the last one, overwritten before; other results are new."""
        for i, output in enumerate(self._outputs):
            if output and not self._overwrite(output):
                self._free(output)
                self._outputs[i] = None
        self._lib.check(self._function(*self._arguments))

    def _overwrite(self, value: int) -> bool:
        """False for what is no tensor of numbers."""
        c = self._lib.c
        if c.tssa_value_kind(value) != KIND_TENSOR or c.tssa_value_dtype(value) not in DTYPES:
            return False
        shape = c.tssa_tensor_dims(value)[: c.tssa_tensor_rank(value)]
        size = math.prod(shape) * np.dtype(DTYPES[c.tssa_value_dtype(value)]).itemsize
        if size:
            ctypes.memset(c.tssa_tensor_data(value), 0x5A, size)
        return True

    def to_python(self) -> list:
        """Copies of the results."""
        copies = []
        for output in self._outputs[: self._session.n_outputs]:
            value = Value(self._session.context)
            value.pointer = c_void_p(output)
            copies.append(value.to_python())
        return copies

    def outputs(self) -> list[Value]:
        """Hands the results over; the next call makes new ones."""
        values = []
        for i, output in enumerate(self._outputs):
            value = Value(self._session.context)
            value.pointer = c_void_p(output)
            value._own()
            values.append(value)
            self._outputs[i] = None
        return values


def _free_all(free, outputs) -> None:
    for i, output in enumerate(outputs):
        if output:
            free(output)
            outputs[i] = None
