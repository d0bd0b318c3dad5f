# SPDX-License-Identifier: Apache-2.0
"""A process for each mode of a program, so that one that crashes or hangs ends alone.

All of them are made ready first; then they are asked in turn, one block of calls each, and
sleep in between.  They are forked from a process that has imported PyTorch but never
called it, because its threads and its CUDA context would not survive the fork.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.peers import trace
from bench.peers.check import CheckFailure, check_inputs, check_outputs
from bench.peers.modes.base import Task, Unsupported
from bench.peers.modes.table import Mode
from bench.peers.timing import Probe, move_to, time_calls
from bench.versus_ort import copy_time, time_block

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of malloc.h
COPIES = 3  # of the inputs, used in turn
# Lines that say only that, or where, something went wrong.
EMPTY_WORDS = re.compile(r"\s*$|Traceback|\s|Exception from |Check '|The following operation")
TOO_SLOW = {"prepare": "no third result", "check": "no results of all data sets"}
LONGEST_REASON = 200


class Failed(Exception):
    """The mode gave no result; `kind` is unsupported, wrong, slow, crashed or error."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


# ---- The process of a mode -----------------------------------------------------------


class Bench:
    """What a worker is asked to do, by the names of its methods."""

    def __init__(self, mode: Mode, task: Task | None) -> None:
        self.mode, self.task = mode, task
        self.probe = Probe()
        self.cores = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def prepare(self) -> dict[str, float]:
        """Seconds from nothing to the first result, and to the third."""
        first_set = self.task.model.sets[0].inputs
        before = trace.host_bytes("VmRSS")
        start = time.perf_counter()
        self.runner = self.mode.start(self.task)
        self.copies = [self.runner.load(first_set) for _ in range(COPIES)]
        taken = []
        for loaded in self.copies:
            self.runner.call(loaded)
            taken.append(time.perf_counter() - start)
        self.resident = before
        gc.collect()
        gc.freeze()  # what is there stays; to look at it before each block takes 0.1 s
        return {"first_s": taken[0], "third_s": taken[-1]}

    def check(self) -> None:
        """All data sets; raises CheckFailure."""
        names = self.task.model.output_names
        for k, data_set in enumerate(self.task.model.sets):
            loaded = self.runner.load(data_set.inputs)
            outputs = self.runner.outputs(self.runner.call(loaded))
            try:
                check_outputs(names, outputs, data_set.outputs)
                check_inputs(self.runner.inputs(loaded), data_set.inputs)
            except CheckFailure as error:
                raise CheckFailure(f"data set {k}: {error}") from None

    def block(self, runs: int, seconds: float) -> tuple[np.ndarray, np.ndarray | None]:
        """Nanoseconds of each call, and how fast its core was, where it has only one."""
        turn, call = itertools.cycle(self.copies), self.runner.call
        gc.collect()
        gc.disable()
        try:
            if self.task.threads > 1:
                return time_block(lambda: call(next(turn)), runs, seconds), None
            move_to(next(self.cores))
            return time_calls(lambda: call(next(turn)), runs, seconds, self.probe)
        finally:
            gc.enable()

    def counts(self) -> dict[str, int]:
        return self.runner.counts(self.copies[0])

    def memory(self) -> dict[str, int]:
        if self.task.device == "cuda":
            held = self.runner.device_bytes(self.copies[0])
            return {} if held is None else {"device_bytes": held}
        return {"host_bytes": trace.host_bytes("VmHWM") - self.resident}

    def warm_inductor(self) -> None:
        torch.compile(lambda x: torch.sin(x) + 1)(torch.ones(64))

    def pace_us(self) -> float:
        """Of the same work on each core at once; on a core in turn, where one is enough."""
        threads = torch.get_num_threads()
        if threads == 1:
            move_to(next(self.cores))
            return self.probe()
        values = torch.linspace(-1, 1, 32768 * threads)
        return float(np.median(time_block(lambda: torch.exp(values), 41, 1.0))) / 1e3

    def copy_us(self, count: int) -> float:
        """To copy so many bytes."""
        return device_copy_time(count) if self.task.device == "cuda" else copy_time(count)


def device_copy_time(count: int) -> float:
    """Microseconds, the best of many."""
    source = torch.ones(max(count, 1), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(50):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) * 1e3)
    return best


def answer(bench: Bench, what: str, args: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "done", getattr(bench, what)(*args)
    except Unsupported as error:
        return "unsupported", str(error)
    except CheckFailure as error:
        return "wrong", str(error)
    except Exception as error:
        sys.excepthook(*sys.exc_info())  # all of it into the log
        return "error", reason_of(error)


def serve(connection: Connection, mode: Mode, task: Task | None, log: Path) -> None:
    """Never returns. Ends when the parent has closed its end."""
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    keep_memory()
    bench = Bench(mode, task)
    with torch.inference_mode():
        while True:
            try:
                what, *args = connection.recv()
            except EOFError:
                os._exit(0)
            connection.send(answer(bench, what, tuple(args)))


def keep_memory() -> None:
    """Memory once used stays with the process, whatever the runtime.  Else glibc hands large
    tensors back to the system after each call and gets them again page by page, which takes
    as long as the program and, under a hypervisor, some other time in each block."""
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(M_MMAP_MAX, 0)
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def reason_of(error: Exception) -> str:
    """One line of what may be pages: the first that says something."""
    lines = [line.strip() for line in str(error).splitlines() if not EMPTY_WORDS.match(line)]
    lines = lines or [type(error).__name__]
    said = 0  # lines that end so lead to the next; the last of them says what it is about
    while lines[said].endswith(":") and said + 1 < len(lines):
        said += 1
    whole = " ".join(lines[max(said - 1, 0) : said + 1])
    return whole if len(whole) <= LONGEST_REASON else shortened(lines[said])


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."


# ---- The parent's end ----------------------------------------------------------------


class Worker:
    def __init__(self, mode: Mode, task: Task | None, log: Path) -> None:
        self.mode, self.task, self.log = mode, task, log
        self.connection, theirs = multiprocessing.Pipe()
        log.parent.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self.connection.close()
            in_child(lambda: serve(theirs, mode, task, log))
        theirs.close()

    def ask(self, seconds: float, what: str, *args: Any) -> Any:
        """Raises Failed; then the worker is no more."""
        try:
            self.connection.send((what, *args))
            if not self.connection.poll(seconds):
                self.close()
                what = TOO_SLOW.get(what, f"{what} not done")
                raise Failed("slow", f"{what} within {seconds:.0f} s")
            kind, result = self.connection.recv()
        except (EOFError, OSError):
            raise Failed("crashed", self.crash()) from None
        if kind != "done":
            self.close()
            raise Failed(kind, result)
        return result

    def crash(self) -> str:
        """How the process ended, and its last line."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return shortened(f"crashed, {how}" + (f": {lines[-1].strip()}" if lines else ""))

    def close(self) -> None:
        self.connection.close()
        if self.pid:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has not come to setsid
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


def in_child(work: Callable[[], None]) -> None:
    """Runs in the forked process, which must not return into what the parent does."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the parent
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)
