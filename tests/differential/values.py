# SPDX-License-Identifier: Apache-2.0
"""Types and values of generated programs, and what is known of a value while it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from onnx import TensorProto

FLOAT, DOUBLE, HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16
INT64, INT32, BOOL = TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL

DTYPES = {
    FLOAT: np.float32,
    DOUBLE: np.float64,
    HALF: np.float16,
    INT64: np.int64,
    INT32: np.int32,
    TensorProto.INT16: np.int16,
    TensorProto.INT8: np.int8,
    TensorProto.UINT64: np.uint64,
    TensorProto.UINT32: np.uint32,
    TensorProto.UINT16: np.uint16,
    TensorProto.UINT8: np.uint8,
    BOOL: np.bool_,
}
ELEMENTS = {np.dtype(dtype): elem for elem, dtype in DTYPES.items()}
MOST_SIZE = 11  # of a dim that is a symbol
FLOATS = frozenset((FLOAT, DOUBLE, HALF))
INTS = frozenset(DTYPES) - FLOATS - {BOOL}
BYTES = frozenset((TensorProto.INT8, TensorProto.UINT8))
UNSIGNED = frozenset(e for e in INTS if np.dtype(DTYPES[e]).kind == "u")

# A dim is a number, or a symbol: of the inputs ("N"), or of what only a run knows ("?3").
Dim = int | str


def limits(elem: int) -> tuple[float, float]:
    """The least and the largest value, of floats the finite ones."""
    if elem == BOOL:
        return 0, 1
    dtype = DTYPES[elem]
    if elem in FLOATS:
        largest = float(np.finfo(dtype).max)
        return -largest, largest
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


@dataclass(frozen=True)
class Type:
    elem: int
    dims: tuple[Dim, ...] | None = ()
    kind: str = "tensor"  # or "sequence", "optional": of such tensors

    def of(self, elem: int) -> Type:
        return replace(self, elem=elem)

    def shaped(self, dims) -> Type:
        return replace(self, dims=tuple(dims))

    @property
    def is_static(self) -> bool:
        return self.dims is not None and all(isinstance(d, int) for d in self.dims)

    @property
    def is_float(self) -> bool:
        return self.elem in FLOATS


@dataclass(frozen=True)
class Facts:
    """What holds of every element, so that only what the standard defines is generated."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = False
    # Everybody computes these bits. Not so where a library computes, or sums are reassociated.
    exact: bool = True
    # Comes from a float that a loop carries and that is compared exactly: sums of it may be
    # reassociated, and are not generated.
    carried: bool = False
    # The sign of a zero is what the standard says; ONNX Runtime's Where makes 0.0 of -0.0.
    zero_sign: bool = True
    below: str | None = None  # an integer that is 0 or more and less than this symbol

    def within(self, low: float, high: float) -> bool:
        return not self.nan and low <= self.low and self.high <= high

    @property
    def finite(self) -> bool:
        return not self.nan and math.isfinite(self.low) and math.isfinite(self.high)


def anything(elem: int) -> Facts:
    if elem in FLOATS:
        return Facts(nan=True)
    return Facts(*limits(elem))


def fit(elem: int, facts: Facts) -> Facts:
    """What exceeds an integer type wraps around; what exceeds a float type is infinite."""
    low, high = limits(elem)
    if facts.low >= low and facts.high <= high and not math.isnan(facts.low + facts.high):
        return facts
    whole = anything(elem)
    return replace(facts, low=whole.low, high=whole.high, nan=whole.nan)


def union(elem: int, several: list[Facts]) -> Facts:
    """Of values that one of these was made of, element by element, without arithmetic."""
    return Facts(
        low=min(f.low for f in several),
        high=max(f.high for f in several),
        nan=any(f.nan for f in several),
        exact=all(f.exact for f in several),
        carried=any(f.carried for f in several),
        zero_sign=all(f.zero_sign for f in several),
    )


def of_array(array: np.ndarray) -> Facts:
    if not array.size:
        return Facts(0, 0)
    numbers = array.astype(object) if array.dtype.kind in "iu" else array.astype(np.float64)
    nan = bool(array.dtype.kind == "f" and np.isnan(array).any())
    if nan:
        return Facts(nan=True)
    return Facts(numbers.min(), numbers.max())


@dataclass(eq=False)
class Value:
    name: str
    type: Type
    facts: Facts


class NoWay(Exception):
    """This cannot be generated here; something else is tried."""
