# SPDX-License-Identifier: Apache-2.0
"""Processes that judge programs, started again when a program ends one or never ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic

from .coverage import features
from .generate import generate
from .judge import STAGES, Finding, Judge, Verdict, as_case

CONTEXT = multiprocessing.get_context("fork")
TIME_LIMIT = 30.0  # seconds for one program
AT_REST = len(STAGES)


def work(library: str, connection: Connection, stage) -> None:
    """Answers each request with its verdict. What a dying runtime says is of no use."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

    def tell(number: int) -> None:
        stage.value = number

    judge = Judge(library, tell)
    while True:
        request = connection.recv()
        try:
            connection.send(answered(judge, request))
        except Exception:
            connection.send((traceback.format_exc(), None))
        stage.value = AT_REST


def answered(judge: Judge, request):
    """Of a seed or a program: a verdict (of a stage), its "values", its text "as rewritten"."""
    if isinstance(request, int):
        case = generate(request)
        return judge.judge(case), features(case.model)
    what, *case = request
    ways = {"values": judge.values, "as rewritten": judge.rewritten}
    if what not in ways:
        return judge.judge(as_case(*case), what), None
    try:
        return ways[what](as_case(*case)), None
    except Exception:
        return None, None


class Worker:
    def __init__(self, library: str):
        self.library = library
        self.start()

    def start(self) -> None:
        self.connection, theirs = CONTEXT.Pipe()
        self.stage = CONTEXT.Value("i", AT_REST, lock=False)
        arguments = (self.library, theirs, self.stage)
        self.process = CONTEXT.Process(target=work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.request, self.since = None, 0.0

    def send(self, request) -> None:
        self.request, self.since = request, monotonic()
        self.connection.send(request)

    def receive(self) -> tuple[Verdict, dict | None]:
        """The answer, when there is one, or the process has ended or had its time."""
        try:
            if not self.connection.poll(max(0.0, self.since + TIME_LIMIT - monotonic())):
                return self.blame("hung"), None
            answer = self.connection.recv()
        except (EOFError, OSError):
            return self.blame("crashed"), None
        if isinstance(answer[0], str):
            raise RuntimeError(f"{self.request}: {answer[0]}")
        return answer

    def blame(self, kind: str) -> Verdict:
        """What the stage says in which the process was. It is started again."""
        stage = self.stage.value
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        self.start()
        if stage == AT_REST:
            raise RuntimeError(f"a worker ended by itself, with {code}")
        if stage <= 1:
            return Verdict(refused=f"ONNX Runtime {kind}")
        return Verdict(findings=[Finding(STAGES[stage], kind, f"exit status {code}")])

    def ask(self, request) -> Verdict:
        self.send(request)
        return self.receive()[0]

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def judged(library: str, seeds, jobs: int, until: float | None):
    """(seed, verdict, features) of each program, in the order in which they are done."""
    workers = [Worker(library) for _ in range(jobs)]
    seeds, busy = iter(seeds), {}

    def next_for(worker: Worker) -> None:
        seed = None if until and monotonic() > until else next(seeds, None)
        if seed is None:
            worker.stop()
        else:
            worker.send(seed)
            busy[worker.connection] = worker

    for worker in workers:
        next_for(worker)
    while busy:
        ready = wait(list(busy), timeout=1.0)
        late = [c for c, w in busy.items() if monotonic() > w.since + TIME_LIMIT]
        for connection in {*ready, *late}:
            worker = busy.pop(connection)
            seed = worker.request
            verdict, features = worker.receive()
            yield seed, verdict, features
            next_for(worker)
