# SPDX-License-Identifier: Apache-2.0
"""What a run found, written as it goes: STEM.json and STEM.md, at the end the charts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bench.peers import charts, report

Row = dict[str, Any]


class Record:
    """Files appear whole: each is written beside its place and then moved there."""

    def __init__(self, stem: Path, about: Row) -> None:
        self.stem, self.about = stem, about
        self.cases: list[Row] = []
        self.rows: list[Row] = []

    def add(self, case: Row, rows: list[Row]) -> None:
        self.cases.append(case)
        self.rows += [{"model": case["model"], **row} for row in rows]
        self.stem.parent.mkdir(parents=True, exist_ok=True)
        content = self.content()
        replace(with_suffix(self.stem, ".json"), json.dumps(content, indent=1) + "\n")
        replace(with_suffix(self.stem, ".md"), report.render(content, self.stem.name))

    def content(self) -> Row:
        return {"machine": self.about, "cases": self.cases, "rows": self.rows}

    def finish(self) -> None:
        if self.cases:
            charts.draw_all(self.content(), self.stem)


def with_suffix(stem: Path, suffix: str) -> Path:
    """Unlike Path.with_suffix, keeps what follows a dot in the name."""
    return stem.with_name(stem.name + suffix)


def replace(path: Path, text: str) -> None:
    new = with_suffix(path, ".new")
    new.write_text(text)
    os.replace(new, path)
