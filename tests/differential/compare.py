# SPDX-License-Identifier: Apache-2.0
"""Are two results of one output the same?

Kind, shape, element type, integers, NaN and infinities exactly. Floats to the bit, the sign of
zero included, unless the generator says of the output that a library computes it or that sums
may be reassociated: then within RTOL of the number and ATOL of the largest one in the tensor.
"""

from __future__ import annotations

import numpy as np

RTOL = {2: 1e-2, 4: 1e-4, 8: 1e-8}  # by bytes of the element
ATOL = {2: 1e-2, 4: 1e-5, 8: 1e-9}


def difference(actual, expected, exact: bool, zero_sign: bool) -> tuple[str, str] | None:
    """What differs ("shape", "value", ...), and a line that tells more."""
    if expected is None or actual is None:
        return None if actual is expected else ("kind", "one of them is empty")
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            return "kind", "sequences of different lengths"
        found = (difference(a, e, exact, zero_sign) for a, e in zip(actual, expected))
        return next((f for f in found if f), None)
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.dtype != expected.dtype:
        return "type", f"{actual.dtype}, not {expected.dtype}"
    if actual.shape != expected.shape:
        return "shape", f"{actual.shape}, not {expected.shape}"
    wrong = differing(actual, expected, exact, zero_sign)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f" at {list(at)}" if at else ""
    values = f"{actual[at]!r}, not {expected[at]!r}"
    both_zero = actual.dtype.kind == "f" and not (actual[wrong].any() or expected[wrong].any())
    return ("zero sign" if both_zero else "value"), values + where


def differing(
    actual: np.ndarray, expected: np.ndarray, exact: bool, zero_sign: bool
) -> np.ndarray:
    if expected.dtype.kind != "f":
        return actual != expected
    nan = np.isnan(expected)
    wrong = np.isnan(actual) != nan
    with np.errstate(all="ignore"):
        if exact:
            wrong |= ~nan & (actual != expected)
        else:
            wrong |= ~nan & ~close(actual, expected)
    if zero_sign:
        zeros = (actual == 0) & (expected == 0)
        wrong |= zeros & (np.signbit(actual) != np.signbit(expected))
    return wrong


def close(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    size = expected.dtype.itemsize
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(e[np.isfinite(e)])
    largest = max(1.0, finite.max()) if finite.size else 1.0
    return (a == e) | (np.abs(a - e) <= ATOL[size] * largest + RTOL[size] * np.abs(e))
