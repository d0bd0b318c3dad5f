# SPDX-License-Identifier: Apache-2.0
"""How far two records are apart: the ratio of the medians, and the worst.

All modes of a program are timed in turn, so a machine that was faster or slower as a whole
changes them alike.  That is the pace; what is left without it is how well the comparison of
modes, which is what the record is for, can be repeated.  The pace is found from the medians
themselves; what the cores took for the same work when they were quiet is found without them,
and tells of clocks that were higher in one hour than in another.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from bench.peers.errors import UsageError
from bench.peers.report import FROM, quiet_share, read, table_row
from bench.versus_ort import figure

CLOSE = 1.15

Pair = tuple[str, str, float, float]  # model, mode, and the medians


def main(first: Path, second: Path) -> int:
    """1 where two medians above a millisecond are further apart than CLOSE."""
    records = read(first), read(second)
    pairs = pairs_of(*records, "median")
    if not pairs:
        raise UsageError("the two records have nothing in common")
    pace, cores = pace_of(pairs), cores_of(*records)
    print_table(pairs, pace)
    long = [pair for pair in pairs if min(pair[2], pair[3]) >= FROM]
    is_long = {pair[:2] for pair in long}
    least = [pair for pair in pairs_of(*records, "min") if pair[:2] in is_long]
    print(f"\nall {len(pairs)}: {worst_of(pairs)}")
    print(f"the {len(long)} above 1 ms: {worst_of(long)}")
    print(f"pace of the machine: {range_of(pace)}")
    print(f"the {len(long)} above 1 ms without it: {worst_of(scaled(long, pace))}")
    print(f"quiet cores: {range_of(cores)}")
    even = worst_of(scaled(long, cores))
    print(f"the {len(long)} above 1 ms at the same pace of quiet cores: {even}")
    print(f"their least times: {worst_of(least)}")
    far = [pair for pair in long if apart(pair) > CLOSE]
    print_far(far, records)
    return 1 if far else 0


def print_table(pairs: list[Pair], pace: dict[str, float]) -> None:
    print("| model | mode | first, us | second, us | second / first | without the pace |")
    print("|---|---|--:|--:|--:|--:|")
    for model, mode, a, b in pairs:
        ratios = [f"{b / a:.2f}", f"{b / a / pace[model]:.2f}"]
        print(table_row([model, mode, figure(a), figure(b), *ratios]))


def print_far(far: list[Pair], records: tuple[dict[str, Any], dict[str, Any]]) -> None:
    quiet = [{row_name(row): row for row in record["rows"]} for record in records]
    for model, mode, a, b in far:
        shares = " and ".join(quiet_share(found[model, mode]) for found in quiet)
        print(
            f"further apart than {CLOSE - 1:.0%}: {model} {mode}, {b / a:.2f}, "
            f"quiet calls: {shares}"
        )


def row_name(row: dict[str, Any]) -> tuple[str, str]:
    return row["model"], row["mode"]


def pairs_of(first: dict[str, Any], second: dict[str, Any], which: str) -> list[Pair]:
    """Of all that was measured in both. `which`: of the figures in a row."""
    found = {row_name(row): row[which] for row in second["rows"] if which in row}
    return [
        (row["model"], row["mode"], row[which], found[row["model"], row["mode"]])
        for row in first["rows"]
        if which in row and (row["model"], row["mode"]) in found
    ]


def pace_of(pairs: list[Pair]) -> dict[str, float]:
    """For each model the geometric mean of second / first over its modes."""
    logs: dict[str, list[float]] = {}
    for model, _, a, b in pairs:
        logs.setdefault(model, []).append(math.log(b / a))
    return {model: math.exp(sum(found) / len(found)) for model, found in logs.items()}


def cores_of(first: dict[str, Any], second: dict[str, Any]) -> dict[str, float]:
    """For each model second / first of a quiet core's time for the same work."""
    found = {case["model"]: case["quiet_us"] for case in second["cases"]}
    return {
        case["model"]: found[case["model"]] / case["quiet_us"]
        for case in first["cases"]
        if case["model"] in found
    }


def range_of(ratios: dict[str, float]) -> str:
    return f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f}"


def scaled(pairs: list[Pair], ratios: dict[str, float]) -> list[Pair]:
    return [(model, mode, a * ratios[model], b) for model, mode, a, b in pairs]


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
