# SPDX-License-Identifier: Apache-2.0
"""Bar charts of a record: time against eager, and calls; with a sweep, lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers.report import WORDS, rows_of, used_modes

Row = dict[str, Any]
Content = dict[str, Any]

COLUMNS = 4
# Of the modes in the order of the table; can be told apart by those who see few colours.
COLOURS = {
    "eager": "#7f7f7f",
    "script": "#e69f00",
    "compile": "#56b4e9",
    "autotune": "#0072b2",
    "compile-graphs": "#b3a2dd",
    "autotune-graphs": "#5e3c99",
    "eager-graph": "#333333",
    "ort": "#d55e00",
    "openvino": "#cc79a7",
    "tssa-O1": "#7fc8a9",
    "tssa-O2": "#009e73",
    "tssa-card": "#00513b",
}


def draw_all(content: Content, stem: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no charts: matplotlib is not installed")
        return
    matplotlib.use("agg")
    cases = [c for c in content["cases"] if c["batch"] == 1 and c["length"] == 50]
    cases.sort(key=lambda case: not case["workload"])
    place = "the CPU" if content["machine"]["device"] == "cpu" else "CUDA"
    if cases:
        title = f"Time of a call against eager PyTorch, on {place} (log scale; less is better)"
        draw(content, cases, ratio_of, title, stem.with_name(stem.name + "-latency.png"))
        draw(
            content,
            cases,
            count_of,
            count_title(place),
            stem.with_name(stem.name + "-calls.png"),
        )
    for size in ("batch", "length"):
        draw_sweep(content, size, stem.with_name(f"{stem.name}-{size}.png"))


def count_title(place: str) -> str:
    if place == "CUDA":
        return "Kernels that run on the card in a call (less is better)"
    return (
        "Operators that run in a call: PyTorch's operators and fused kernels, nodes of "
        "ONNX Runtime, steps of tssa (less is better)"
    )


def ratio_of(row: Row, eager: Row) -> tuple[float, str] | None:
    """Length and label of the bar."""
    if "median" not in row:
        return None
    median = row["median"]
    if "median" not in eager:
        return None
    ratio = median / eager["median"]
    return ratio, f"{ratio_text(ratio)}   {time_text(median)}"


def ratio_text(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def time_text(microseconds: float) -> str:
    if microseconds < 1000:
        return f"{microseconds:.3g} us"
    return f"{microseconds / 1e3:.3g} ms"


def count_of(row: Row, eager: Row) -> tuple[float, str] | None:
    counts = row.get("counts", {})
    for what in ("kernels", "operators", "nodes", "steps"):
        if what in counts:
            return counts[what], str(counts[what])
    return None


Bar = Callable[[Row, Row], tuple[float, str] | None]


def draw(content: Content, cases: list[Row], bar: Bar, title: str, path: Path) -> None:
    """A small chart for each program, a bar for each mode."""
    from matplotlib import pyplot

    modes = [
        mode
        for mode in used_modes(content)
        if bar is ratio_of or any(bar(rows_of(content, c).get(mode, {}), {}) for c in cases)
    ]
    columns = min(COLUMNS, len(cases))
    lines = math.ceil(len(cases) / columns)
    height = (0.26 * len(modes) + 0.75) * lines + 0.7
    figure, grid = pyplot.subplots(
        lines, columns, figsize=(1.3 + 4 * columns, height), squeeze=False, layout="constrained"
    )
    for axes, case in zip(grid.flat, cases):
        draw_case(axes, content, case, modes, bar)
    for axes in list(grid.flat)[len(cases) :]:
        axes.axis("off")
    for row in grid:
        row[0].set_yticks(range(len(modes)), [content["machine"]["modes"][m] for m in modes])
    figure.suptitle(title, fontsize=14, fontweight="bold")
    save(figure, path)


def draw_case(axes: Any, content: Content, case: Row, modes: list[str], bar: Bar) -> None:
    rows = rows_of(content, case)
    bars = {mode: bar(rows.get(mode, {}), rows.get("eager", {})) for mode in modes}
    lengths = [found[0] for found in bars.values() if found]
    low, high = 0.0, max([*lengths, 1.0])
    if bar is ratio_of:
        low = min([*lengths, 1.0]) / 1.6
        axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.75 if low else high * 1.3)  # room for labels
    axes.set_ylim(len(modes) - 0.5, -0.5)
    for place, mode in enumerate(modes):
        found = bars[mode]
        if found:
            axes.barh(place, found[0] - low, left=low, color=COLOURS[mode], height=0.78)
        text = f" {found[1]}" if found else " " + why_not(rows.get(mode))
        axes.text(
            found[0] if found else low,
            place,
            text,
            va="center",
            fontsize=9,
            color="black" if found else "#999999",
            style="normal" if found else "italic",
        )
    if bar is ratio_of:
        axes.axvline(1, color="#bbbbbb", linewidth=0.8, zorder=0)
    weight = "bold" if case["workload"] else "normal"
    axes.set_title(case["program"], fontsize=11, fontweight=weight, loc="left")
    axes.set_yticks([])
    axes.set_xticks([])
    axes.minorticks_off()
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)


def why_not(row: Row | None) -> str:
    return WORDS.get((row or {}).get("failed", ""), "not counted")


def draw_sweep(content: Content, size: str, path: Path) -> None:
    """A small chart for each program of several sizes, a line for each mode."""
    from matplotlib import pyplot

    other = {"batch": ("length", 50), "length": ("batch", 1)}[size]
    cases: dict[str, list[Row]] = {}
    for case in content["cases"]:
        if case[other[0]] == other[1]:
            cases.setdefault(case["program"], []).append(case)
    cases = {name: found for name, found in cases.items() if len(found) > 1}
    if not cases:
        return
    columns = min(COLUMNS, len(cases))
    lines = math.ceil(len(cases) / columns)
    figure, grid = pyplot.subplots(
        lines,
        columns,
        figsize=(1 + 4 * columns, 3.4 * lines + 0.9),
        squeeze=False,
        layout="constrained",
    )
    for axes, (name, found) in zip(grid.flat, cases.items()):
        draw_lines(axes, content, sorted(found, key=lambda case: case[size]), size)
        axes.set_title(name, fontsize=11, fontweight="bold", loc="left")
    for axes in list(grid.flat)[len(cases) :]:
        axes.axis("off")
    handles = {line.get_label(): line for axes in grid.flat for line in axes.get_lines()}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)
    figure.suptitle(f"Time of a call by {size}, ms (log scale)", fontsize=14, fontweight="bold")
    save(figure, path)


def draw_lines(axes: Any, content: Content, cases: list[Row], size: str) -> None:
    for mode in used_modes(content):
        rows = [(case[size], rows_of(content, case).get(mode, {})) for case in cases]
        points = [(at, row["median"] / 1e3) for at, row in rows if "median" in row]
        if points:
            title = content["machine"]["modes"][mode]
            axes.plot(*zip(*points), marker="o", color=COLOURS[mode], label=title)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="y", which="both", labelsize=7)
    axes.set_xticks([case[size] for case in cases])
    axes.set_xlabel(size)
    axes.grid(alpha=0.3)


def save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    new = path.with_name(f".{path.name}")
    figure.savefig(new, dpi=110, format="png")
    pyplot.close(figure)
    new.replace(path)
