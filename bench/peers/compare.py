# SPDX-License-Identifier: Apache-2.0
"""How far two records are apart: the ratio of the medians, and the worst."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.errors import UsageError
from bench.peers.report import FROM, read, table_row
from bench.versus_ort import figure

CLOSE = 1.15

Pair = tuple[str, str, float, float]  # model, mode, and the medians


def main(first: Path, second: Path) -> int:
    """1 where two medians above a millisecond are further apart than CLOSE."""
    pairs = pairs_of(read(first), read(second))
    if not pairs:
        raise UsageError("the two records have nothing in common")
    print("| model | mode | first, us | second, us | second / first |")
    print("|---|---|--:|--:|--:|")
    for model, mode, a, b in pairs:
        print(table_row([model, mode, figure(a), figure(b), f"{b / a:.2f}"]))
    long = [pair for pair in pairs if min(pair[2], pair[3]) >= FROM]
    print(f"\nall {len(pairs)}: {worst_of(pairs)}")
    print(f"the {len(long)} above 1 ms: {worst_of(long)}")
    far = [pair for pair in long if apart(pair) > CLOSE]
    for model, mode, a, b in far:
        print(f"further apart than {CLOSE - 1:.0%}: {model} {mode}, {b / a:.2f}")
    return 1 if far else 0


def pairs_of(first: dict[str, Any], second: dict[str, Any]) -> list[Pair]:
    medians = {
        (row["model"], row["mode"]): row["median"] for row in second["rows"] if "median" in row
    }
    return [
        (row["model"], row["mode"], row["median"], medians[row["model"], row["mode"]])
        for row in first["rows"]
        if "median" in row and (row["model"], row["mode"]) in medians
    ]


def apart(pair: Pair) -> float:
    _, _, a, b = pair
    return max(a / b, b / a)


def worst_of(pairs: list[Pair]) -> str:
    if not pairs:
        return "none"
    worst = max(pairs, key=apart)
    within = sum(apart(pair) <= CLOSE for pair in pairs)
    return (
        f"{within} within {CLOSE - 1:.0%}; the worst is {worst[0]} {worst[1]}, "
        f"{apart(worst) - 1:.0%} apart"
    )
