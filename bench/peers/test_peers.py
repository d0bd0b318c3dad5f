# SPDX-License-Identifier: Apache-2.0
"""The harness: wrong modules are found out, modes that fail are reported, tables are made.

build/peers-venv/bin/python -m unittest bench.peers.test_peers
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from bench.peers import data, measure, pace, record, report, timing, visits, worker
from bench.peers.effort import LEAST_CALLS, Effort
from bench.peers.errors import UsageError
from bench.peers.modes.base import Runner, Task, Unsupported
from bench.peers.modes.table import Mode, modes_of
from bench.peers.paths import MODELS, ROOT
from bench.peers.program import Case, Program
from bench.peers.programs.table import PROGRAMS
from bench.versus_ort import time_block
from models.lib.data import Data

FAKE_CUDA = ROOT / "build/release/tests/fake_cuda_new"  # a driver for tests; docs/cuda.md
RUN = [sys.executable, str(ROOT / "bench/peers/run.py")]
BY_NAME = {program.name: program for program in PROGRAMS}
MODE_BY_NAME = {mode.name: mode for mode in modes_of("cpu")}

# A program, a constant in the file of its module, and a wrong one.
WRONG = [
    ("yolov3", "self.iou = 0.45", "self.iou = 0.9"),
    ("ssd", "self.iou = 0.45", "self.iou = 0.9"),
    ("yolact", "self.limit = 100", "self.limit = 10"),
    ("fcos", "self.limit = 100", "self.limit = 3"),
    ("lstm", "LAYERS = 10", "LAYERS = 9"),
    ("seq2seq_50", "torch.full([batch], 1,", "torch.full([batch], 2,"),
    ("attention", "a *= 0.125", "a *= 0.25"),
    ("get_started", "b[i] + 1", "b[i] + 1.01"),
    ("normalize", "dup[..., 0] = src[..., 2]", "dup[..., 0] = src[..., 1]"),
    ("offset2bbox", "max=4.135", "max=0.5"),
    ("t_dataflow", "a[1] = b[1]", "a[1] = b[2]"),
    ("view_example", "c += 2", "c += 3"),
]


def task_of(program: Program, threads: int = 1, device: str = "cpu") -> Task:
    return Task(program, data.read_model(MODELS / program.model_name()), device, threads)


@dataclass(frozen=True)
class Changed(Program):
    """A program with another constant in its module's source."""

    right: str = ""
    wrong: str = ""

    def module_class(self) -> type[torch.nn.Module]:
        file, name = self.module.split(".")
        path = ROOT / f"bench/peers/programs/{file}.py"
        source = path.read_text()
        if self.right not in source:
            raise ValueError(f"{path} has no {self.right}")
        module = types.ModuleType("changed")
        sys.modules["changed"] = module
        exec(compile(source.replace(self.right, self.wrong), path, "exec"), module.__dict__)
        return getattr(module, name)


def changed(program: Program, right: str, wrong: str) -> Program:
    return Changed(program.name, program.model, program.module, right=right, wrong=wrong)


@dataclass(frozen=True)
class FakeMode(Mode):
    """A mode that does `what` when it is made ready."""

    what: Callable[[Task], Any] = print

    def start(self, task: Task) -> Runner:
        self.what(task)
        return Echo(task)


class Echo(Runner):
    """Gives the expected outputs of the first data set."""

    def load(self, inputs: list[Data]) -> Any:
        return inputs

    def call(self, loaded: Any) -> Any:
        time.sleep(1e-5)
        return loaded

    def outputs(self, result: Any) -> list[Data]:
        return self.task.model.sets[0].outputs


def fake(name: str, what: Callable[[Task], Any] = lambda task: None, after: str = "") -> Mode:
    return FakeMode(name, name, "none", after=after, what=what)


def refuse(task: Task) -> None:
    raise Unsupported("this cannot be")


def break_down(task: Task) -> None:
    raise RuntimeError("\nTraceback of something:\n  File somewhere\nthe point of it\nmore")


def crash(task: Task) -> None:
    print("the last words", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def always_quiet() -> pace.Pace:
    return pace.Pace(lambda: 1.0, 0.0)


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def rows(self, modes: list[Mode], task: Task, limit: float = 60) -> list[dict[str, Any]]:
        effort = Effort(0.3, limit)
        with measure.workers_of() as workers:
            rows = list(measure.make_ready(modes, task, effort, self.folder, workers))
            found = measure.time_all(workers, effort, always_quiet(), {})
        return [row | found.get(row["mode"], {}) for row in rows]


class WrongConstants(InFolder):
    def check(self, task: Task) -> str | None:
        """How eager mode failed, if it did."""
        eager, effort = [MODE_BY_NAME["eager"]], Effort(0.01, 60)
        with measure.workers_of() as workers:
            (row,) = measure.make_ready(eager, task, effort, self.folder, workers)
        return row.get("failed")

    def test_a_wrong_constant_is_found_out(self) -> None:
        for name, right, wrong in WRONG:
            with self.subTest(name):
                task = task_of(changed(BY_NAME[name], right, wrong))
                self.assertEqual(self.check(task), "wrong")

    def test_the_right_ones_pass(self) -> None:
        for name, right, _ in WRONG:
            with self.subTest(name):
                task = task_of(changed(BY_NAME[name], right, right))
                self.assertIsNone(self.check(task))


class Modes(InFolder):
    def test_what_cannot_run_has_a_reason_and_the_others_go_on(self) -> None:
        modes = [
            fake("refuses", refuse),
            fake("breaks", break_down),
            fake("crashes", crash),
            fake("hangs", lambda task: time.sleep(60)),
            fake("follows", after="hangs"),
            fake("works"),
        ]
        rows = {row["mode"]: row for row in self.rows(modes, task_of(BY_NAME["lstm"]), 5)}
        self.assertEqual(rows["refuses"]["reason"], "this cannot be")
        self.assertEqual(rows["breaks"]["reason"], "the point of it")
        self.assertEqual(rows["crashes"]["reason"], "crashed, SIGSEGV: the last words")
        self.assertIn("within 5 s", rows["hangs"]["reason"])
        self.assertEqual(rows["follows"]["reason"], "not tried: hangs was too slow")
        self.assertGreater(rows["works"]["median"], 10)
        self.assertGreaterEqual(rows["works"]["runs"], LEAST_CALLS)

    def test_a_mode_that_crashes_while_it_is_timed(self) -> None:
        with measure.workers_of() as workers:
            task, effort = task_of(BY_NAME["lstm"]), Effort(0.01, 60)
            modes = [fake("dies"), fake("works")]
            list(measure.make_ready(modes, task, effort, self.folder, workers))
            os.kill(workers["dies"].pid, signal.SIGKILL)
            found = measure.time_all(workers, effort, always_quiet(), {})
        self.assertEqual(found["dies"]["reason"], "crashed, SIGKILL")
        self.assertIn("median", found["works"])

    def test_reasons_are_one_line(self) -> None:
        self.assertEqual(worker.reason_of(ValueError("")), "ValueError")
        error = RuntimeError("Exception from a.cpp:1:\nIn x:\ny changed:\nwas 1\n\n more")
        self.assertEqual(worker.reason_of(error), "y changed: was 1")
        self.assertLessEqual(len(worker.reason_of(ValueError("x" * 999))), 200)


class TssaOnACard(InFolder):
    """tssa's mode wants a driver, which one for tests will do, and nothing of PyTorch's."""

    def measure(self, libraries: Path) -> dict[str, Any]:
        """get_started at level 2."""
        modes = [mode for mode in modes_of("cuda") if mode.name == "tssa-O2"]
        task = task_of(BY_NAME["get_started"], device="cuda")
        with mock.patch.dict(os.environ, {"TSSA_CUDA_LIBRARIES": str(libraries)}):
            (row,) = self.rows(modes, task)
        return row

    @unittest.skipUnless(FAKE_CUDA.exists(), "make build makes the driver for tests")
    def test_it_is_checked_timed_and_counted(self) -> None:
        row = self.measure(FAKE_CUDA)
        self.assertGreater(row["median"], 10)
        self.assertEqual(row["counts"]["kernels"], 1)
        self.assertGreaterEqual(row["counts"]["memcpys"], 2)
        self.assertNotIn("device_bytes", row)

    def test_without_a_driver_it_has_a_reason(self) -> None:
        row = self.measure(self.folder)
        self.assertEqual(row["failed"], "unsupported")
        self.assertIn("no CUDA driver", row["reason"])

    @unittest.skipUnless(FAKE_CUDA.exists(), "make build makes the driver for tests")
    def test_a_run_of_it_alone_wants_no_card_of_pytorch(self) -> None:
        command = [*RUN, "--device", "cuda", "--quick", "--patience", "0"]
        command += ["--only", "get_started", "--record", str(self.folder / "x")]
        command += ["--modes", "tssa-O2"]
        there = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TSSA_CUDA_LIBRARIES": FAKE_CUDA}
        done = subprocess.run(command, env=there, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.folder / "x.md").read_text()
        self.assertIn("outputs of tssa -O2 are in the host's memory", " ".join(text.split()))
        done = subprocess.run([*command, "eager"], env=there, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no CUDA device here for eager", done.stderr)


class Quiet(InFolder):
    def timed(
        self, read: Callable[[], float], patience: float, known: float | None = None
    ) -> measure.Row:
        """With two threads, whose pace is read from outside."""
        task, effort = task_of(BY_NAME["lstm"], 2), Effort(0.05, 60)
        with measure.workers_of() as workers:
            list(measure.make_ready([fake("works")], task, effort, self.folder, workers))
            calm = pace.Pace(read, patience, known)
            return measure.time_all(workers, effort, calm, {})["works"]

    def test_blocks_between_slow_readings_are_timed_again(self) -> None:
        readings = itertools.cycle([1.0, 1.0, 1.05, 1.5])  # two blocks, of which one counts
        row = self.timed(lambda: next(readings), 60.0)
        self.assertEqual(row["quiet_runs"], row["runs"])
        self.assertGreaterEqual(row["runs"], LEAST_CALLS)
        self.assertGreaterEqual(row["all_runs"], 1.8 * row["runs"])

    def test_patience_ends_and_the_least_loud_count(self) -> None:
        readings = itertools.chain([1.0], itertools.cycle([1.5, 1.5, 1.5, 2.0, 2.0, 2.0]))
        row = self.timed(lambda: next(readings), 0.1)
        self.assertEqual(row["quiet_runs"], 0)
        self.assertGreaterEqual(row["runs"], LEAST_CALLS)
        self.assertLess(row["runs"], row["all_runs"])
        self.assertGreater(row["median"], 10)

    def test_which_calls_count(self) -> None:
        def row_of(*blocks: tuple[int, list[float]], ns: int = 1000) -> measure.Row:
            calm = pace.Pace(lambda: 1.0, 0.0)
            calm.take()
            found = measure.Blocks(Effort(0.0, 60), 1)
            for count, readings in blocks:
                readings = np.repeat(readings, count)
                found.done.append(measure.Block((ns * readings).astype(int), readings))
            return found.summary(calm)

        row = row_of(*[(10, [1.0, 1.5])] * 20)  # enough are quiet
        self.assertEqual((row["runs"], row["quiet_runs"], row["all_runs"]), (200, 200, 400))
        row = row_of(*[(10, [1.0, 1.5, 3.0])] * 8)  # 80 are quiet
        self.assertEqual((row["runs"], row["quiet_runs"]), (160, 80))
        row = row_of((1000, [1.0, 2.0]), *[(10, [3.0 + k]) for k in range(9)])  # of six blocks
        self.assertEqual((row["runs"], row["quiet_runs"]), (2050, 1000))
        row = row_of(*[(1, [1.0, 2.0, 2.0])] * 6, ns=10**8)  # slow ones, until they take 2 s
        self.assertEqual((row["runs"], row["quiet_runs"]), (18, 6))
        row = row_of(*[(1, [1.0, 2.0, 2.0])] * 6, ns=4 * 10**8)
        self.assertEqual((row["runs"], row["quiet_runs"]), (6, 6))

    def test_one_thread_reads_the_pace_itself(self) -> None:
        readings = iter([1.0, 1.0, 3.0, 1.0])
        samples, seen = timing.time_calls(
            lambda: time.sleep(0.0015), 3, 1.0, lambda: next(readings)
        )
        self.assertEqual(seen.tolist(), [1.0, 3.0, 3.0])
        self.assertGreater(samples.min(), 1.5e6)
        readings = iter([1.0, 2.0])
        samples, seen = timing.time_calls(lambda: None, 100, 1.0, lambda: next(readings))
        self.assertEqual((len(samples), set(seen)), (100, {2.0}))
        samples, _ = timing.time_calls(lambda: time.sleep(0.002), 100, 0.0, lambda: 1.0)
        self.assertEqual(len(samples), 3)

    def test_a_machine_that_is_never_quiet_is_found_out(self) -> None:
        row = self.timed(lambda: 1.5, 0.1, known=1.0)
        self.assertEqual(row["quiet_runs"], 0)
        row = self.timed(lambda: 1.5, 0.1)
        self.assertEqual(row["quiet_runs"], row["runs"])

    def test_an_odd_fast_reading_is_not_what_quiet_is(self) -> None:
        readings = itertools.chain([0.5], itertools.repeat(1.0))
        steady = pace.Pace(lambda: next(readings), 0.0)
        told = [steady.take() <= steady.limit() for _ in range(200)]
        self.assertFalse(told[1])
        self.assertTrue(told[-1])

    def test_patience_is_shared(self) -> None:
        calm = pace.Pace(lambda: 1.0, 120.0)
        calm.begin_round()
        calm.share(3)
        self.assertEqual(calm.patience, 20.0)
        calm.patience = -10.0  # it lost more than its part
        calm.share(2)
        self.assertEqual(calm.patience, 15.0)
        calm.share(1)
        self.assertEqual(calm.patience, 30.0)
        self.assertEqual(calm.left(), 90.0)
        calm.begin_round()
        calm.share(1)
        self.assertEqual((calm.patience, calm.left()), (45.0, 90.0))

    def test_threads_rest_after_a_block(self) -> None:
        values = torch.linspace(-1, 1, 65536 * torch.get_num_threads())
        time_block(lambda: torch.exp(values), 100, 1.0)
        used, start = time.process_time(), time.monotonic()
        time.sleep(0.02)
        self.assertLess(time.process_time() - used, 0.5 * (time.monotonic() - start))

    def test_waiting(self) -> None:
        readings = iter([1.0, 1.5, 1.5, 1.0])
        calm = pace.Pace(lambda: next(readings), 0.0)
        self.assertEqual(calm.wait(), 1.0)
        self.assertEqual(calm.wait(), 1.5)
        calm.patience = 10.0
        self.assertEqual(calm.wait(), 1.0)
        self.assertLess(calm.patience, 10.0)


class Rounds(InFolder):
    """Of two programs, with two threads, their pace read from outside. Calls take no time."""

    def setUp(self) -> None:
        super().setUp()
        at_once = mock.patch.object(
            worker, "time_block", lambda call, runs, seconds: np.full(runs, 100_000)
        )
        at_once.start()  # in the workers too: they are forked
        self.addCleanup(at_once.stop)

    def measure(
        self, modes: list[Mode], read: Callable[[], float], least_part: float = 0.1
    ) -> None:
        self.visited = [self.case_of(name, modes) for name in ("lstm", "attention")]
        titles = {mode.name: mode.title for mode in modes}
        kept = record.Record(self.folder / "some", example()["machine"] | {"modes": titles})
        with mock.patch.object(visits, "LEAST_PART", least_part):
            visits.measure_in_rounds(self.visited, pace.Pace(read, 6.0, 1.0), kept)
        content = json.loads((self.folder / "some.json").read_text())
        self.rows = {(row["model"], row["mode"]): row for row in content["rows"]}
        self.text = (self.folder / "some.md").read_text()

    def case_of(self, name: str, modes: list[Mode]) -> visits.Visits:
        task = task_of(BY_NAME[name], 2)
        case = Case(task.program, 1, 50)
        return visits.Visits(case, modes, Effort(0.05, 60), lambda: task, self.folder)

    def counts(self) -> list[int]:
        return [case.count for case in self.visited]

    def loud_at_first(self) -> float:
        """In the first round."""
        return 1.0 if all(self.counts()) else 1.5

    def test_quiet_programs_are_visited_once(self) -> None:
        self.measure([fake("works"), fake("refuses", refuse)], lambda: 1.0)
        self.assertEqual(self.counts(), [1, 1])
        self.assertNotIn("more than once", self.text)

    def test_a_loud_program_is_visited_again(self) -> None:
        self.measure([fake("works"), fake("refuses", refuse)], self.loud_at_first)
        self.assertEqual(self.counts(), [2, 2])
        for model in ("lstm", "attention"):
            row = self.rows[model, "works"]
            self.assertEqual(row["quiet_runs"], row["runs"])
            self.assertGreaterEqual(row["all_runs"], row["runs"] + LEAST_CALLS)
            self.assertIn("first_s", row)
            self.assertEqual(self.rows[model, "refuses"]["reason"], "this cannot be")
        self.assertIn("lstm (2), attention (2)", self.text)

    def test_only_loud_modes_are_timed_again_and_the_quiet_calls_of_all_visits_count(
        self,
    ) -> None:
        case = self.case_of("lstm", [fake("quiet"), fake("half")])
        readings = itertools.cycle([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.5])  # two of a block
        case.visit(pace.Pace(lambda: next(readings), 0.0, 1.0))
        calm = pace.Pace(lambda: 1.0, 60.0, 1.0)
        self.assertEqual([mode.name for mode in case.loud(calm)], ["half"])
        before = {name: len(blocks.done) for name, blocks in case.blocks.items()}
        case.visit(calm)
        self.assertEqual(case.loud(calm), [])
        added = {name: len(case.blocks[name].done) - before[name] for name in before}
        self.assertEqual(added["quiet"], 0)
        self.assertGreater(added["half"], 0)
        self.assertLess(added["half"], before["half"])
        self.assertEqual(case.rows["half"]["quiet_runs"], case.rows["half"]["runs"])

    def test_without_patience_there_is_one_round(self) -> None:
        self.measure([fake("works")], lambda: 1.5, least_part=3.0)
        self.assertEqual(self.counts(), [1, 1])
        self.assertEqual(self.rows["lstm", "works"]["quiet_runs"], 0)

    def test_a_machine_that_stays_loud_has_an_end(self) -> None:
        self.measure([fake("works")], lambda: 1.5)
        self.assertGreater(self.counts()[0], 1)
        self.assertGreaterEqual(self.rows["lstm", "works"]["runs"], LEAST_CALLS)

    def test_a_mode_that_fails_later_has_no_time(self) -> None:
        def crash_later(task: Task) -> None:
            if self.visited[0].count:
                crash(task)

        modes = [fake("tires", crash_later), fake("works")]
        self.measure(modes, self.loud_at_first)
        row = self.rows["lstm", "tires"]
        self.assertEqual(row["failed"], "crashed")
        self.assertNotIn("median", row)
        self.assertEqual(list(self.rows)[:2], [("lstm", "tires"), ("lstm", "works")])


def example() -> dict[str, Any]:
    """A record of two programs and three modes."""
    about = {
        "device": "cpu",
        "threads": 2,
        "date": "2026-01-31",
        "cpu": "a CPU",
        "cores": 2,
        "system": "Linux",
        "copy_gb_per_s": 10.0,
        "tssa": "abc",
        "versions": {"torch": "2"},
        "clocks_mhz": [2600, 2600],
        "modes": {"eager": "eager", "ort": "ONNX Runtime", "openvino": "OpenVINO"},
    }
    case = {"workload": True, "batch": 1, "length": 50, "load_average": 0.5, "copy_us": 8.0}
    case |= {"quiet_us": 13.0, "visits": 1}
    cases = [{**case, "program": name, "model": name} for name in ("ssd", "lstm")]
    rows = [
        timed("ssd", "eager", 4000.0),
        timed("ssd", "ort", 1000.0),
        {"model": "ssd", "mode": "openvino", "failed": "error", "reason": "a | b"},
        timed("lstm", "eager", 90000.0),
        {"model": "lstm", "mode": "ort", "failed": "slow", "reason": "not ready"},
    ]
    return {"machine": about, "cases": cases, "rows": rows}


def timed(model: str, mode: str, median: float) -> dict[str, Any]:
    return {
        "model": model,
        "mode": mode,
        "first_s": 1.0,
        "third_s": 1.5,
        "runs": 100,
        "min": median * 0.9,
        "median": median,
        "p90": median * 1.1,
        "quiet_runs": 100,
        "all_runs": 130,
        "counts": {"operators": 7},
        "host_bytes": 3 << 20,
    }


class Reports(InFolder):
    def test_tables(self) -> None:
        text = report.render(example(), "example")
        self.assertIn("| ssd | 4000 | **1000** | cannot | 8.00 |", text)
        self.assertIn("| lstm | **90000** | too slow |  | 8.00 |", text)
        self.assertIn("ONNX Runtime 4.00 (of 1)", text)
        self.assertIn("| ssd | OpenVINO | cannot | a \\| b |", text)
        self.assertIn("7 operators | 3 |", text)

    def test_a_record_is_written_case_by_case(self) -> None:
        content, stem = example(), self.folder / "some.where"
        kept = record.Record(stem, content["machine"])
        kept.add(content["cases"][0], [{"mode": "eager", "failed": "slow", "reason": "x"}])
        written = json.loads((self.folder / "some.where.json").read_text())
        self.assertEqual(written["rows"][0]["model"], "ssd")
        self.assertIn("too slow", (self.folder / "some.where.md").read_text())
        kept.add(content["cases"][1], [timed("lstm", "eager", 1.0)])
        kept.finish()
        self.assertTrue((self.folder / "some.where-latency.png").exists())

    def test_a_record_is_continued(self) -> None:
        content, stem = example(), self.folder / "some"
        kept = record.Record(stem, content["machine"])
        for case in content["cases"]:
            rows = [row for row in content["rows"] if row["model"] == case["model"]]
            kept.add(case, rows)
        loud = timed("ssd", "eager", 9000.0) | {"quiet_runs": 50}
        louder = timed("ssd", "eager", 9999.0) | {"quiet_runs": 0}
        kept.add(content["cases"][0], [louder])
        kept.add(content["cases"][0], [loud])
        again = record.Record(stem, content["machine"])
        again.resume()
        again.add(content["cases"][0], [louder])
        self.assertEqual(again.found["ssd"][1], [loud])
        again.add(content["cases"][0], [loud | {"median": 8000.0}])
        kept, again = again, record.Record(stem, content["machine"])
        again.resume()
        self.assertEqual(again.content(), kept.content())
        self.assertEqual([again.lacks(name) for name in ("ssd", "lstm")], [True, False])
        again.add(content["cases"][0], [timed("ssd", "eager", 4000.0)])
        self.assertFalse(again.lacks("ssd"))
        self.assertEqual([case["model"] for case in again.cases], ["ssd", "lstm"])
        other = record.Record(stem, content["machine"] | {"tssa": "def"})
        with self.assertRaisesRegex(UsageError, "tssa is not what it was"):
            other.resume()

    def test_comparison(self) -> None:
        first, second = self.folder / "a.json", self.folder / "b.json"
        content = example()
        first.write_text(json.dumps(content))
        content["rows"][0]["median"] *= 1.1
        second.write_text(json.dumps(content))
        self.assertEqual(self.compare(first, second)[0], 0)
        content["rows"][0]["median"] *= 1.1
        second.write_text(json.dumps(content))
        status, said = self.compare(first, second)
        self.assertEqual(status, 1)
        self.assertIn("further apart than 15%: ssd eager, 1.21", said)
        self.assertIn(
            "the same pace of quiet cores: 2 within 15%; the worst is ssd eager", said
        )
        content["cases"][0]["quiet_us"] *= 1.1
        second.write_text(json.dumps(content))
        status, said = self.compare(first, second)
        self.assertEqual(status, 1)
        self.assertIn("quiet cores: 1.00 to 1.10", said)
        self.assertIn("the same pace of quiet cores: 3 within 15%", said)

    def compare(self, first: Path, second: Path) -> tuple[int, str]:
        done = subprocess.run(
            [*RUN, "--compare", first, second], capture_output=True, text=True
        )
        return done.returncode, done.stdout


class Usage(InFolder):
    def assert_refused(self, *arguments: str, saying: str) -> None:
        done = subprocess.run([*RUN, *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(saying, done.stderr)

    def test_wrong_usage_is_told_in_one_line(self) -> None:
        self.assert_refused("--only", "nothing", saying="no program's name holds nothing")
        self.assert_refused("--modes", "nothing", saying="no mode nothing on cpu")
        self.assert_refused("--threads", "0", saying="1 or more")
        self.assert_refused("--seconds", "-1", saying="more than 0")
        self.assert_refused("--quiet-us", "nan", saying="more than 0")
        self.assert_refused("--patience", "-1", saying="0 or more")
        self.assert_refused("--report", "/no/such.json", saying="No such file")
        old = self.folder / "old.json"
        old.write_text('{"machine": {}, "cases": [], "rows": [{"median": 1.0, "blocks": 30}]}')
        self.assert_refused("--report", str(old), saying="is no record of this")
        self.assert_refused("--only", "ssd", "--record", str(old / "x"), saying="cannot write")
        folder = str(self.folder)
        self.assert_refused("--models", folder, "--only", "ssd", saying="make models builds")


if __name__ == "__main__":
    unittest.main()
