# SPDX-License-Identifier: Apache-2.0
"""Outputs against the expected ones: rtol 1e-3, atol 1e-5, everything but floats equal."""

from __future__ import annotations

from models.lib.data import CheckFailure, Data, compare

__all__ = ["CheckFailure", "check_inputs", "check_outputs"]


def check_outputs(names: list[str], got: list[Data], expected: list[Data]) -> None:
    """Raises CheckFailure that says where they differ.

    A detector's module returns a list of one element where its model, made for one image,
    has a plain tensor.
    """
    if len(got) != len(expected):
        raise CheckFailure(f"{len(got)} outputs, expected {len(expected)}")
    for name, ours, wanted in zip(names, got, expected):
        if isinstance(ours, list) and not isinstance(wanted, list) and len(ours) == 1:
            ours = ours[0]
        compare(name, ours, wanted)


def check_inputs(after: list[Data] | None, before: list[Data]) -> None:
    """Raises CheckFailure where a call wrote its inputs."""
    for k, (ours, given) in enumerate(zip(after or [], before)):
        try:
            compare(f"input {k}", ours, given)
        except CheckFailure as error:
            raise CheckFailure(f"an input was written: {error}") from None
