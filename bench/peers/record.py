# SPDX-License-Identifier: Apache-2.0
"""What a run found, written as it goes: STEM.json and STEM.md, at the end the charts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bench.peers import charts, report
from bench.peers.errors import UsageError

Row = dict[str, Any]
SAME = ("device", "cpu", "cores", "threads", "versions", "tssa")  # in all of a record


class Record:
    """Files appear whole: each is written beside its place and then moved there."""

    def __init__(self, stem: Path, about: Row) -> None:
        self.stem, self.about = stem, about
        self.found: dict[str, tuple[Row, list[Row]]] = {}  # of each model
        self.earlier: dict[str, list[Row]] = {}  # what an earlier run found

    @property
    def cases(self) -> list[Row]:
        return [case for case, _ in self.found.values()]

    @property
    def rows(self) -> list[Row]:
        return [row for _, rows in self.found.values() for row in rows]

    def begin(self) -> None:
        """Hours of measuring are not to end with a folder that cannot be written."""
        path = with_suffix(self.stem, ".probe")
        replace(path, "")
        path.unlink()

    def resume(self) -> None:
        """Begins with what an earlier run has found, if it was of the same things."""
        path = with_suffix(self.stem, ".json")
        if not path.exists():
            return
        content = report.read(path)
        for key in SAME:
            if self.about[key] != content["machine"][key]:
                raise UsageError(f"{path} cannot be continued: {key} is not what it was")
        for case in content["cases"]:
            rows = [row for row in content["rows"] if row["model"] == case["model"]]
            self.found[case["model"]] = case, rows
            self.earlier[case["model"]] = rows

    def lacks(self, model: str) -> bool:
        """Whether it is not there, or the machine was too loud."""
        return model not in self.found or loudness(self.found[model][1]) > (0, 0)

    def add(self, case: Row, rows: list[Row]) -> None:
        """In place of what this run has found so far, and of an earlier one's unless that
        was quieter."""
        model = case["model"]
        if model in self.earlier and loudness(self.earlier[model]) < loudness(rows):
            return
        self.found[model] = case, [{"model": model, **row} for row in rows]
        content = self.content()
        replace(with_suffix(self.stem, ".json"), json.dumps(content, indent=1) + "\n")
        replace(with_suffix(self.stem, ".md"), report.render(content, self.stem.name))

    def content(self) -> Row:
        return {"machine": self.about, "cases": self.cases, "rows": self.rows}

    def finish(self) -> None:
        if self.cases:
            charts.draw_all(self.content(), self.stem)


def loudness(rows: list[Row]) -> tuple[int, float]:
    """How many medians are of calls that were not all quiet, and the shares of such calls."""
    loud = [1 - row["quiet_runs"] / row["runs"] for row in rows if "median" in row]
    loud = [share for share in loud if share > 0]
    return len(loud), sum(loud)


def with_suffix(stem: Path, suffix: str) -> Path:
    """Unlike Path.with_suffix, keeps what follows a dot in the name."""
    return stem.with_name(stem.name + suffix)


def replace(path: Path, text: str) -> None:
    new = with_suffix(path, ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text)
        os.replace(new, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
