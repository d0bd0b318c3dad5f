# SPDX-License-Identifier: Apache-2.0
"""What a mode has to provide: a Runner, made and used in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.peers.data import ModelData
from bench.peers.program import Program
from models.lib.data import Data


class Unsupported(Exception):
    """The mode cannot run the program here; the message says why."""


@dataclass(frozen=True)
class Task:
    program: Program
    model: ModelData
    device: str  # "cpu" or "cuda"
    threads: int


class Runner:
    """One program, made ready. Raises Unsupported where it cannot be."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def load(self, inputs: list[Data]) -> Any:
        """A copy of the inputs in the runtime's own form; not timed."""
        raise NotImplementedError

    def call(self, loaded: Any) -> Any:
        """What is timed: when it returns, the results are there."""
        raise NotImplementedError

    def outputs(self, result: Any) -> list[Data]:
        """What call() returned, copied out."""
        raise NotImplementedError

    def inputs(self, loaded: Any) -> list[Data] | None:
        """What load() returned, copied out, where calls could have written it."""
        return None

    def device_bytes(self, loaded: Any) -> int | None:
        """The most of a card's memory that was given out during a call, where it can be told.
        Calls it."""
        return None

    def counts(self, loaded: Any) -> dict[str, int]:
        """What one call did: see trace.py for the keys. Calls it."""
        return {}
