# SPDX-License-Identifier: Apache-2.0
"""A chart of bench/networks.py: times as shares of ONNX Runtime's and of OpenVINO's."""

from __future__ import annotations

from pathlib import Path

# Can be told apart by those who see few colours.
ORT, OPENVINO = "#009e73", "#cc79a7"
PER_ROW = 0.24  # inches

Bar = tuple[dict, float | None, float | None]


def draw(bars: list[Bar], path: Path) -> None:
    """Of (row, share of ONNX Runtime's time, of OpenVINO's); None: not measured."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    bars = sorted(bars, key=lambda bar: (bar[0]["threads"], bar[0]["kind"], bar[0]["model"]))
    bars = [bar for bar in bars if bar[1] or bar[2]]
    if not bars:
        return
    figure, axes = pyplot.subplots(figsize=(8, 1.2 + PER_ROW * len(bars)), layout="constrained")
    for place, (_, ort, openvino) in enumerate(bars):
        if ort:
            axes.barh(place, ort, color=ORT, height=0.7)
            axes.text(ort + 0.01, place, f"{ort:.2f}", va="center", fontsize=7)
        if openvino:
            axes.plot(openvino, place, "D", color=OPENVINO, markersize=4)
    axes.axvline(1, color="#555555", linewidth=0.8)
    axes.set_yticks(range(len(bars)), [label(row) for row, _, _ in bars], fontsize=8)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    title = "Time of a run as a share of ONNX Runtime's"
    if any(openvino for _, _, openvino in bars):
        title += " (diamonds: of OpenVINO's)"
    axes.set_title(title + "; less is better", fontsize=10, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    new = path.with_name(f".{path.name}")
    figure.savefig(new, dpi=110, format="png")
    pyplot.close(figure)
    new.replace(path)


def label(row: dict) -> str:
    threads = "" if row["threads"] == 1 else f", {row['threads']} threads"
    return f"{row['model']}{threads}"
