# SPDX-License-Identifier: Apache-2.0
"""Draws docs/before-after.svg: a model's graph, and what tssa-opt makes of it.

    build/venv/bin/python scripts/picture.py build/release/tssa-opt

Layers by the longest path from the inputs, edges through empty places of the layers between,
order by the mean of the neighbours. The body of a Loop is a graph in a box. Constants and
Identity are left out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from xml.sax.saxutils import escape

import onnx

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "models/get_started_small/model.onnx"
PICTURE = ROOT / "docs/before-after.svg"

CODE = ("for i in range(n):", "    b[i] = b[i] + 1")
HIDDEN = {"Constant", "Identity"}
MATHS = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Neg"}
HEIGHT, GAP_X, GAP_Y, MARGIN = 30, 18, 26, 26
# The operator's kind: fill, line, text.
STYLES = {
    "value": ("#ffffff", "#8c959f", "#24292f"),
    "write": ("#ffe3dc", "#d1502f", "#7a2412"),
    "maths": ("#dcf2e3", "#2c8a4b", "#14532d"),
    "move": ("#e3edfb", "#4076c4", "#1c3f73"),
    "loop": ("#fff8e6", "#c9941a", "#6b4d06"),
}


@dataclass
class Node:
    label: str
    style: str
    width: float
    height: float = HEIGHT
    inner: Drawing | None = None
    layer: int = 0
    x: float = 0  # the centre
    y: float = 0  # the top


@dataclass
class Drawing:
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[Node, Node]] = field(default_factory=list)
    paths: list[list[Node]] = field(
        default_factory=list
    )  # edges with the places they run through
    width: float = 0
    height: float = 0


def style_of(op: str) -> str:
    if op in MATHS:
        return "maths"
    return "write" if op.startswith("Scatter") else "move"


def captured(graph: onnx.GraphProto) -> set[str]:
    own = {v.name for v in graph.input} | {o for n in graph.node for o in n.output}
    return {i for n in graph.node for i in n.input if i} - own


def read(graph: onnx.GraphProto, returned: list[str]) -> Drawing:
    """`returned`: labels of the outputs, "" for those that are not shown."""
    drawing = Drawing()
    made: dict[str, Node] = {}
    aside = [n for n in graph.node if n.op_type in HIDDEN]
    hidden = {o: n.input[0] if n.input else None for n in aside for o in n.output}
    constants = {t.name for t in graph.initializer}

    def source(name: str) -> Node | None:
        while name in hidden:
            name = hidden[name]
        return None if name in constants else made.get(name)

    def add(node: Node, inputs: list[str]) -> Node:
        drawing.nodes.append(node)
        for parent in dict.fromkeys(id(p) for p in map(source, inputs) if p):
            drawing.edges.append((next(n for n in drawing.nodes if id(n) == parent), node))
        return node

    used = {i for n in graph.node if n.op_type not in HIDDEN for i in n.input}
    used |= {
        i for n in graph.node for a in n.attribute if a.HasField("g") for i in captured(a.g)
    }
    used |= {hidden.get(name) for name in used}
    for value in graph.input:
        if value.name in used and "keep_going" not in value.name:
            made[value.name] = add(Node(value.name, "value", text_width(value.name)), [])
    for op in graph.node:
        if op.op_type in HIDDEN:
            continue
        bodies = [a.g for a in op.attribute if a.HasField("g")]
        inputs = [*op.input, *(name for body in bodies for name in captured(body))]
        node = Node(op.op_type, style_of(op.op_type), text_width(op.op_type))
        if bodies:
            node.inner = read(bodies[0], ["", "to the next iteration"])
            node.style, node.label = "loop", f"{op.op_type}: one row per iteration"
            node.width = node.inner.width + 2 * MARGIN
            node.height = node.inner.height + 2 * MARGIN
        for name in op.output:
            made[name] = node
        add(node, inputs)
    for value, label in zip(graph.output, returned, strict=True):
        if label:
            add(Node(label, "value", text_width(label)), [value.name])
    lay_out(drawing)
    return drawing


def text_width(text: str) -> float:
    return 22 + 7.6 * len(text)


def lay_out(drawing: Drawing) -> None:
    for node in drawing.nodes:  # in topological order
        node.layer = max((p.layer + 1 for p, n in drawing.edges if n is node), default=0)
    for node in drawing.nodes:  # an input stands right above its first use
        below = [n.layer for p, n in drawing.edges if p is node]
        if node.style == "value" and below and not any(n is node for _, n in drawing.edges):
            node.layer = min(below) - 1
    layers: list[list[Node]] = [[] for _ in range(max(n.layer for n in drawing.nodes) + 1)]
    for node in drawing.nodes:
        layers[node.layer].append(node)
    for start, end in drawing.edges:
        path = [start]
        for layer in range(start.layer + 1, end.layer):
            path.append(Node("", "", 8, layer=layer))
            layers[layer].append(path[-1])
        drawing.paths.append([*path, end])
    neighbours: dict[int, list[Node]] = {id(n): [] for layer in layers for n in layer}
    for path in drawing.paths:
        for a, b in zip(path, path[1:], strict=False):
            neighbours[id(a)].append(b)
            neighbours[id(b)].append(a)
    for layer in layers:
        pack(layer, [i * 100.0 for i in range(len(layer))])
    for sweep in range(60):
        for layer in layers if sweep % 2 else layers[::-1]:
            wanted = [mean([m.x for m in neighbours[id(n)]] or [n.x]) for n in layer]
            if sweep < 40:
                order = sorted(range(len(layer)), key=lambda i: (wanted[i], i))
                layer[:] = [layer[i] for i in order]
                wanted = [wanted[i] for i in order]
            pack(layer, wanted)
    top = 0.0
    for layer in layers:
        height = max(n.height for n in layer)
        for node in layer:
            node.y = top + (height - node.height) / 2
        top += height + GAP_Y
    left = min(n.x - n.width / 2 for layer in layers for n in layer)
    for layer in layers:
        for node in layer:
            node.x -= left
    drawing.width = max(n.x + n.width / 2 for layer in layers for n in layer)
    drawing.height = top - GAP_Y


def pack(layer: list[Node], wanted: list[float]) -> None:
    """As near to the wanted places as the gaps allow, in this order."""
    clusters: list[list] = []  # members, their offsets, sum of (wanted - offset)
    for node, place in zip(layer, wanted, strict=True):
        clusters.append([[node], [0.0], place])
        while len(clusters) > 1:
            (a, ao, at), (b, bo, bt) = clusters[-2:]
            reach = ao[-1] + a[-1].width / 2 + GAP_X + b[0].width / 2
            if at / len(a) + reach <= bt / len(b):
                break
            clusters[-2:] = [[a + b, ao + [reach + o for o in bo], at + bt - reach * len(b)]]
    for members, offsets, total in clusters:
        for node, offset in zip(members, offsets, strict=True):
            node.x = total / len(members) + offset


# ---- SVG -------------------------------------------------------------------------------------


def words(x: float, y: float, kind: str, ink: str, text: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" class="{kind}" fill="{ink}" xml:space="preserve"'
    return f"<text {place}>{escape(text)}</text>"


def draw_path(path: list[Node], x: float, y: float) -> str:
    points = [(path[0].x, path[0].y + path[0].height)]
    points += [p for n in path[1:-1] for p in ((n.x, n.y), (n.x, n.y + n.height))]
    points.append((path[-1].x, path[-1].y - 2))
    text = f"M{x + points[0][0]:.1f} {y + points[0][1]:.1f}"
    for (ax, ay), (bx, by) in zip(points, points[1:], strict=False):
        bend = (by - ay) / 2
        bends = (ax, ay + bend), (bx, by - bend), (bx, by)
        text += "C" + " ".join(f"{x + u:.1f} {y + v:.1f}" for u, v in bends)
    return f'<path d="{text}" class="edge" marker-end="url(#head)"/>'


def draw(drawing: Drawing, x: float, y: float) -> list[str]:
    parts = []
    for node in drawing.nodes:
        fill, line, ink = STYLES[node.style]
        left, top = x + node.x - node.width / 2, y + node.y
        radius = HEIGHT / 2 if node.style == "value" else 6
        dash = ' stroke-dasharray="6 4"' if node.inner else ""
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" rx="{radius}" width="{node.width:.1f}" '
            f'height="{node.height:.1f}" fill="{fill}" stroke="{line}"{dash}/>'
        )
        if node.inner:
            parts.append(words(left + 10, top + 17, "box", ink, node.label))
            parts += draw(node.inner, left + MARGIN, top + MARGIN + 4)
        else:
            parts.append(words(x + node.x, top + 19.5, "op", ink, node.label))
    return parts + [draw_path(path, x, y) for path in drawing.paths]


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}"
     viewBox="0 0 {w:.0f} {h:.0f}" font-family="Helvetica, Arial, sans-serif">
<!-- Written by scripts/picture.py (make docs). -->
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0L8 4L0 8z" fill="#6e7781"/></marker></defs>
<style>
.edge {{ fill: none; stroke: #6e7781; stroke-width: 1.3 }}
.op {{ font-size: 13px; text-anchor: middle }}
.box {{ font-size: 12px; font-style: italic }}
.title {{ font-size: 16px; font-weight: bold }}
.code {{ font-family: Menlo, Consolas, monospace; font-size: 13px }}
.note {{ font-size: 13px }}
</style>
<rect width="{w:.0f}" height="{h:.0f}" rx="10" fill="#ffffff" stroke="#d0d7de"/>"""


def picture(before: Drawing, after: Drawing) -> str:
    pad, top, between = 32, 96, 120
    height = max(before.height, after.height)
    width = before.width + after.width + between + 2 * pad
    right = pad + before.width + between
    middle = pad + before.width + between / 2
    ink, faint = "#24292f", "#57606a"
    lines = [HEAD.format(w=width, h=height + top + pad)]
    lines.append(words(pad, 34, "title", ink, "as it was exported"))
    for i, line in enumerate(CODE):
        lines.append(words(pad, 58 + 18 * i, "code", faint, line))
    lines.append(words(right, 34, "title", ink, "what tssa-opt writes"))
    lines.append(words(right, 58, "note", faint, "standard ONNX; all rows at once"))
    arrow = top + height / 2
    lines.append(f'<path d="M{middle - 34:.1f} {arrow}h56" stroke="#c9941a" stroke-width="5"/>')
    lines.append(f'<path d="M{middle + 20:.1f} {arrow - 11}l18 11l-18 11z" fill="#c9941a"/>')
    lines.append(words(middle, arrow - 20, "op", "#6b4d06", "tssa-opt"))
    lines += draw(before, pad, top + (height - before.height) / 2)
    lines += draw(after, right, top + (height - after.height) / 2)
    return "\n".join([*lines, "</svg>\n"])


def main() -> None:
    original = onnx.load(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/after.onnx"
        subprocess.run([sys.argv[1], str(MODEL), path, "--quiet"], check=True)
        rewritten = onnx.load(path)
    drawings = [read(m.graph, [v.name for v in m.graph.output]) for m in (original, rewritten)]
    PICTURE.write_text(picture(*drawings))


if __name__ == "__main__":
    main()
