"""A recurrent cell found by architecture search, over L time steps.

Eight gates, each with an input product x_t W_ih[k] and a state product m W_hh[k]:

    a = act_k(ih_k + hh_k)          act = sig relu sig relu tanh sig tanh sig
    b0 = tanh(a0 a1)  b1 = tanh(a2 + a3)  b2 = tanh(a4 a5)  b3 = sig(a6 + a7)
    c = tanh(b0 + c) b1
    m = tanh(c tanh(b2 + b3))

No partial writes here: what there is to gain lies in the 17 views per step.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import uniform
from models.lib.nn import sigmoid, xavier
from models.lib.program import Program, Rng, Size, Values

GATES = 8
ACTIVATIONS = ("Sigmoid", "Relu", "Sigmoid", "Relu", "Tanh", "Sigmoid", "Tanh", "Sigmoid")


class NasRnn(Program):
    """x [L, B, H] -> c + m [B, H]."""

    name = "nasrnn"
    batch = 1
    length = 50

    def __init__(self, hidden: int = 256, length: int = 50) -> None:
        self.hidden, self.length = hidden, length
        rng = self.rng("weights")
        # [8, H, H], stored input x hidden per gate
        self.w_ih = xavier(rng, GATES, hidden, hidden)
        self.w_hh = xavier(rng, GATES, hidden, hidden)

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("nasrnn")
        x = g.input("x", np.float32, [length, batch, self.hidden])
        w_ih, w_hh = g.param("w_ih", self.w_ih), g.param("w_hh", self.w_hh)
        zero = g.full([batch, self.hidden], 0, np.float32)

        def step(t, c, m):
            x_t = im.select(g, x, 0, t)
            state = im.reshape(g, m, [batch, self.hidden])
            ih, hh = x_t @ w_ih, state @ w_hh  # [8, B, H]
            a = [
                g.op(act, im.select(g, ih, 0, k) + im.select(g, hh, 0, k))
                for k, act in enumerate(ACTIVATIONS)
            ]
            b0 = g.Tanh(a[0] * a[1])
            b1 = g.Tanh(a[2] + a[3])
            b2 = g.Tanh(a[4] * a[5])
            b3 = g.Sigmoid(a[6] + a[7])
            c = g.Tanh(b0 + c) * b1
            m = g.Tanh(c * g.Tanh(b2 + b3))
            return [c, m]

        c, m = g.loop(step, [zero, zero], trip=length)
        g.output(c + m, "out", [batch, self.hidden])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        return [uniform(rng, length, batch, self.hidden)]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        def relu(v):
            return np.maximum(v, 0)

        # One wide product for all gates: [H, 8 H]
        w_ih, w_hh = (
            np.concatenate(list(w), axis=1).astype(np.float64) for w in (self.w_ih, self.w_hh)
        )
        c = m = np.zeros((batch, self.hidden))
        for x_t in inputs[0].astype(np.float64):
            z = np.split(x_t @ w_ih + m @ w_hh, GATES, axis=1)
            left = np.tanh(sigmoid(z[0]) * relu(z[1]))
            keep = np.tanh(sigmoid(z[2]) + relu(z[3]))
            right = np.tanh(np.tanh(z[4]) * sigmoid(z[5]))
            out = sigmoid(np.tanh(z[6]) + sigmoid(z[7]))
            c = np.tanh(left + c) * keep
            m = np.tanh(c * np.tanh(right + out))
        return [(c + m).astype(np.float32)]
