# SPDX-License-Identifier: Apache-2.0
"""A record as Markdown: medians of programs and modes, then details, then reasons."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from bench.peers.effort import LEAST_CALLS, LEAST_SECONDS, SLOW
from bench.peers.errors import UsageError
from bench.versus_ort import figure

Row = dict[str, Any]
Content = dict[str, Any]

# What stands in the table for a mode that has no time.
WORDS = {
    "unsupported": "cannot",
    "error": "cannot",
    "slow": "too slow",
    "crashed": "crashed",
    "wrong": "wrong",
}
FROM = 1000.0  # microseconds: shorter medians are not held to the same spread

LEGEND = """\
Every mode's outputs agree with the model's expected ones on all its data sets (rtol 1e-3, atol
1e-5, integers equal). Times are of the first data set, in microseconds: median, P90 and
minimum of all calls that count; `spread` is how far the P90 is above the median. A call counts
if the machine was quiet: the same work took its usual time before and after {around}, so no
neighbour slowed the cores. Modes with fewer than {calls} of these are visited again later, as
long as there is patience. After that the least loud of the other calls count as well, until
there are so many, or they took {slow} times the seconds that were asked for (2, the micro
programs 0.5), at least {seconds:.0f} s. `quiet` is the share of quiet ones,
`calls` how many counted, of how many. Each mode has a process of its own, which keeps the
memory it once had; all of a program's modes are timed in alternating blocks, on copies of the
inputs used in turn.

`copy` is the time to copy half of the bytes of inputs, outputs and weights: as much traffic as
reading the inputs and weights and writing the outputs once. `first` and `third` are the seconds
from nothing to the first and to the third result, compilation among it; max-autotune
finds the kernels that `compile` has built before it. `per call`: {counts}.
`memory`: {memory}.{values}"""

COUNTS = {
    "cpu": "PyTorch's operators that the program itself calls (views among them) or fused "
    "kernels, and how many graphs were compiled; ONNX Runtime's nodes and tssa's "
    "steps that ran, those of a loop's body each time",
    "cuda": "kernels, calls of libraries where they are told apart (tssa), and copies and "
    "fills, that ran on the card; graphs that were compiled",
}
MEMORY = {
    "cpu": "by how many MiB the most that was ever resident exceeds what was before the mode "
    "was made ready, a compiler's own among it",
    "cuda": "the most MiB that PyTorch's allocator gave out during a call",
}


def render(content: Content, name: str) -> str:
    about = content["machine"]
    text = [f"# Peers on {where(about)}, {about['date']}", "", *described(about, content), ""]
    text += ["Made by `bench/peers/run.py --record`.", ""]
    for title, chosen in sections(content):
        text += [f"## {title}", "", *median_table(content, chosen), ""]
    text += means(content)
    text += charts_of(name)
    text += ["## Details", "", legend(about), ""]
    text += [*detail_table(content), "", *reason_table(content)]
    return "\n".join(text).rstrip() + "\n"


def where(about: Row) -> str:
    if about["device"] == "cuda":
        return about.get("card", {}).get("name", "a CUDA card")
    threads = about["threads"]
    return f"the CPU, {threads} thread{'s' if threads > 1 else ''}"


def described(about: Row, content: Content) -> list[str]:
    versions = ", ".join(f"{k} {v}" for k, v in about["versions"].items())
    clocks = about["clocks_mhz"]
    lines = [
        f"- {about['cpu']}, {about['cores']} cores"
        + (f" at {min(clocks)} to {max(clocks)} MHz" if clocks else "")
        + f", {about['system']}; copying 64 MiB: {about['copy_gb_per_s']:.1f} GB/s"
    ]
    if "card" in about:
        lines.append("- " + ", ".join(f"{k} {v}" for k, v in about["card"].items()))
    lines.append(f"- tssa {about['tssa']}, {versions}")
    loads = [case["load_average"] for case in content["cases"]]
    if loads:
        lines.append(
            f"- load average {min(loads):.1f} to {max(loads):.1f}; {quiet_of(content)}; "
            f"{spread_of(content)}"
        )
    again = [case for case in content["cases"] if case.get("visits", 1) > 1]
    if again:
        names = ", ".join(f"{case['model']} ({case['visits']})" for case in again)
        lines.append(f"- visited more than once, since not all calls were quiet: {names}")
    return lines


def spread(row: Row) -> float:
    """How far the P90 is above the median, of the median."""
    return row["p90"] / row["median"] - 1


def quiet_of(content: Content) -> str:
    rows = [row for row in content["rows"] if "median" in row]
    quiet = sum(row["quiet_runs"] == row["runs"] for row in rows)
    return f"{quiet} of {len(rows)} medians are of quiet calls"


def spread_of(content: Content) -> str:
    rows = [row for row in content["rows"] if row.get("median", 0) >= FROM]
    if not rows:
        return "no median above 1 ms"
    worst = max(rows, key=spread)
    middle = sorted(map(spread, rows))[len(rows) // 2]
    return (
        f"of those above 1 ms the P90 is {middle:.0%} higher in the middle case, "
        f"{spread(worst):.0%} at worst ({worst['model']}, {worst['mode']})"
    )


def legend(about: Row) -> str:
    device = about["device"]
    return LEGEND.format(
        around="them" if about["threads"] == 1 else "their block",
        counts=COUNTS[device],
        memory=MEMORY[device],
        values=values_of(about),
        calls=LEAST_CALLS,
        slow=SLOW,
        seconds=LEAST_SECONDS,
    )


def values_of(about: Row) -> str:
    """On a card: whose inputs and outputs are not there."""
    titles = about.get("host_values", [])
    if about["device"] == "cpu" or not titles:
        return ""
    return (
        f" Inputs and outputs of {', '.join(titles)} are in the host's memory, and the copies "
        "to the card and back are part of a call; those of the others lie on the card."
    )


# ---- Tables --------------------------------------------------------------------------


def sections(content: Content) -> list[tuple[str, list[Row]]]:
    """Titles and cases: the programs as they are, then those of other sizes."""
    plain = [case for case in content["cases"] if case["batch"] == 1 and case["length"] == 50]
    found = [("Median, microseconds", plain)]
    batches = [case for case in content["cases"] if case["batch"] != 1]
    lengths = [case for case in content["cases"] if case["length"] != 50]
    found += [("Other batch sizes", batches), ("Other lengths", lengths)]
    return [(title, cases) for title, cases in found if cases]


def median_table(content: Content, cases: list[Row]) -> list[str]:
    modes = used_modes(content)
    titles = [content["machine"]["modes"][mode] for mode in modes]
    lines = [table_row(["", *titles, "copy"]), table_row(["---", *["--:"] * (len(modes) + 1)])]
    for case in cases:
        rows = rows_of(content, case)
        best = min((row["median"] for row in rows.values() if "median" in row), default=0)
        cells = [median_cell(rows.get(mode), best) for mode in modes]
        copy = case.get("copy_us")
        lines.append(table_row([case["model"], *cells, figure(copy) if copy else ""]))
    return lines


def used_modes(content: Content) -> list[str]:
    used = {row["mode"] for row in content["rows"]}
    return [mode for mode in content["machine"]["modes"] if mode in used]


def rows_of(content: Content, case: Row) -> dict[str, Row]:
    return {row["mode"]: row for row in content["rows"] if row["model"] == case["model"]}


def median_cell(row: Row | None, best: float) -> str:
    if row is None:
        return ""
    if "median" not in row:
        return WORDS.get(row.get("failed", ""), "")
    text = figure(row["median"])
    return f"**{text}**" if row["median"] == best else text


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def means(content: Content) -> list[str]:
    """Of eager's time over each mode's, over the workloads."""
    cases = [c for c in content["cases"] if c["workload"] and c["batch"] == 1]
    cases = [c for c in cases if c["length"] == 50]
    found = []
    for mode in used_modes(content):
        ratios = [r for case in cases if (r := speed_up(rows_of(content, case), mode))]
        if ratios and mode != "eager":
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            title = content["machine"]["modes"][mode]
            found.append(f"{title} {mean:.2f} (of {len(ratios)})")
    if not found:
        return []
    text = f"Times faster than eager, geometric mean over the workloads: {', '.join(found)}."
    return [text, ""]


def speed_up(rows: dict[str, Row], mode: str) -> float | None:
    eager, other = (rows.get(name, {}).get("median") for name in ("eager", mode))
    return eager / other if eager and other else None


def charts_of(name: str) -> list[str]:
    links = [f"![{what}]({name}-{what}.png)" for what in ("latency", "calls")]
    return [*links, ""]


def detail_table(content: Content) -> list[str]:
    times = "median | P90 | spread | min | quiet | calls | first, s | third, s"
    lines = [
        f"| model | mode | {times} | per call | memory |",
        table_row(["---", "---", *["--:"] * 10]),
    ]
    for row in content["rows"]:
        if "median" in row:
            lines.append(table_row(detail_cells(content, row)))
    return lines


def detail_cells(content: Content, row: Row) -> list[str]:
    bytes_held = row.get("device_bytes", row.get("host_bytes"))
    return [
        row["model"],
        content["machine"]["modes"][row["mode"]],
        figure(row["median"]),
        figure(row["p90"]),
        f"{spread(row):.0%}",
        figure(row["min"]),
        quiet_share(row),
        f"{row['runs']} of {row['all_runs']}",
        f"{row['first_s']:.2f}",
        f"{row['third_s']:.2f}",
        ", ".join(f"{count} {what}" for what, count in row.get("counts", {}).items()),
        "" if bytes_held is None else f"{bytes_held / 2**20:.0f}",
    ]


def quiet_share(row: Row) -> str:
    return f"{row['quiet_runs'] / row['runs']:.0%}"


def reason_table(content: Content) -> list[str]:
    rows = [row for row in content["rows"] if "reason" in row]
    if not rows:
        return []
    lines = ["## Not measured", "", "| model | mode | | reason |", "|---|---|---|---|"]
    for row in rows:
        title = content["machine"]["modes"][row["mode"]]
        word = WORDS.get(row["failed"], row["failed"])
        lines.append(table_row([row["model"], title, word, escaped(row["reason"])]))
    return lines


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


# ---- A record that is there ----------------------------------------------------------


def is_of_calls(content: Content) -> bool:
    """Earlier forms counted quiet blocks."""
    return all("quiet_runs" in row for row in content["rows"] if "median" in row)


def read(path: Path) -> Content:
    try:
        content = json.loads(path.read_text())
        if {"machine", "cases", "rows"} <= set(content) and is_of_calls(content):
            return content
    except OSError as error:
        raise UsageError(str(error)) from None
    except ValueError:
        pass
    raise UsageError(f"{path} is no record of this bench/peers/run.py")


def main(path: Path) -> int:
    from bench.peers import charts

    content, stem = read(path), path.with_suffix("")
    stem.with_name(stem.name + ".md").write_text(render(content, stem.name))
    charts.draw_all(content, stem)
    return 0
