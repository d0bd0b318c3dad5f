"""A stack of LSTM layers whose states live in two buffers, written in place.

    for t in range(L):
        v = x[t]
        for j in range(layers):
            c, h = C[j], H[j]
            i, f, g, o = gates(v W_ih[j] + b_ih[j], h W_hh[j] + b_hh[j])
            c = f c + i g
            h = o tanh(c)
            C[j] = c;  H[j] = h          # two row writes
            v = h
    return H[-1]

Cell (t, j) needs (t-1, j) and (t, j-1) only, but the buffers make every cell look
as if it depended on all earlier ones.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder, Value
from models.lib.data import normal, uniform
from models.lib.nn import sigmoid
from models.lib.program import Program, Rng, Size, Values

GATES = 4  # input, forget, cell, output


class Lstm(Program):
    """x [L, B, H] -> H[layers - 1] [1, B, H].

    The layer loop is expanded in the body of the time loop, as tracing front
    ends do; with `nested` it stays a Loop inside the Loop, over stacked weights.
    """

    name = "lstm"
    batch = 1
    length = 50

    def __init__(
        self, layers: int = 10, hidden: int = 256, length: int = 50, nested: bool = False
    ) -> None:
        self.layers, self.hidden = layers, hidden
        self.length, self.nested = length, nested
        rng = self.rng("weights")
        square, row = (layers, GATES, hidden, hidden), (layers, GATES, 1, hidden)
        bound = 1.0 / 16.0
        self.w_ih, self.w_hh, self.b_ih, self.b_hh = (
            uniform(rng, *shape, low=-bound, high=bound) for shape in (square, square, row, row)
        )

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("lstm_nested" if self.nested else "lstm")
        x = g.input("x", np.float32, [length, batch, self.hidden])
        params = {
            "w_ih": self.w_ih, "w_hh": self.w_hh, "b_ih": self.b_ih, "b_hh": self.b_hh
        }  # fmt: skip
        if self.nested:
            stacked = [g.param(name, array) for name, array in params.items()]
        else:
            layers = [
                [g.param(f"{name}_{j}", array[j]) for name, array in params.items()]
                for j in range(self.layers)
            ]
        zero = g.full([self.layers, 1, batch, self.hidden], 0, np.float32)

        def cell(v: Value, j, weights, cells: Value, hiddens: Value):
            """One cell; returns the new (v, C, H)."""
            w_ih, w_hh, b_ih, b_hh = weights
            c, h = im.select(g, cells, 0, j), im.select(g, hiddens, 0, j)
            ih, hh = v @ w_ih + b_ih, h @ w_hh + b_hh  # [4, B, H]
            z = [im.select(g, ih, 0, k) + im.select(g, hh, 0, k) for k in range(GATES)]
            i, f, o = g.Sigmoid(z[0]), g.Sigmoid(z[1]), g.Sigmoid(z[3])
            c = f * c + i * g.Tanh(z[2])  # [1, B, H]
            h = o * g.Tanh(c)
            return h, im.assign_row(g, cells, j, c), im.assign_row(g, hiddens, j, h)

        def expanded_step(t, cells, hiddens):
            v = im.select(g, x, 0, t)
            for j in range(self.layers):
                v, cells, hiddens = cell(v, j, layers[j], cells, hiddens)
            return [cells, hiddens]

        def nested_step(t, cells, hiddens):
            def layer(j, v, cells, hiddens):
                weights = [im.select(g, w, 0, j) for w in stacked]
                return list(cell(v, j, weights, cells, hiddens))

            v = im.unsqueeze(g, im.select(g, x, 0, t), 0)
            _, cells, hiddens = g.loop(layer, [v, cells, hiddens], trip=self.layers)
            return [cells, hiddens]

        step = nested_step if self.nested else expanded_step
        _, hiddens = g.loop(step, [zero, zero], trip=length)
        last = im.select(g, hiddens, 0, self.layers - 1)
        g.output(last, "out", [1, batch, self.hidden])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [normal(rng, length, batch, self.hidden)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        # Layer by layer over the whole sequence, with the gates side by side.
        sequence = inputs[0].astype(np.float64)
        for j in range(self.layers):
            w_ih, w_hh, b_ih, b_hh = (
                np.concatenate(list(p[j]), axis=1).astype(np.float64)
                for p in (self.w_ih, self.w_hh, self.b_ih, self.b_hh)
            )
            projected = sequence @ w_ih + (b_ih + b_hh)
            c = h = np.zeros((batch, self.hidden))
            outputs = []
            for z_t in projected:
                i, f, g, o = np.split(z_t + h @ w_hh, GATES, axis=1)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                outputs.append(h)
            sequence = np.stack(outputs)
        return [sequence[-1:].astype(np.float32)]
