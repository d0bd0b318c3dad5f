# SPDX-License-Identifier: Apache-2.0
"""docs/disagreements.md: where a disagreement is nobody's bug, or not tssa's.

Its table has one row for each: `name | stages | pattern | why`.  A disagreement is excused when
its stage and kind ("tssa -O0: value") begin with one of the row's (`a; b`), and the pattern, a
regular expression, is found in what program.txt says of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .judge import Finding


@dataclass
class Excuse:
    name: str
    stages: list[str]
    pattern: re.Pattern

    def covers(self, finding: Finding, text: str) -> bool:
        what = f"{finding.stage}: {finding.kind}"
        return any(what.startswith(s) for s in self.stages) and bool(self.pattern.search(text))


def read(path: Path) -> list[Excuse]:
    excuses = []
    for line in path.read_text().splitlines():
        # A bar inside of a pattern is written \| there, as Markdown wants it.
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 4 or cells[0] in ("name", "") or set(cells[0]) <= {"-", ":"}:
            continue
        stages = [s.strip() for s in cells[1].split(";")]
        pattern = cells[2].strip("`").replace("\\|", "|")
        excuses.append(Excuse(cells[0], stages, re.compile(pattern, re.MULTILINE)))
    return excuses
