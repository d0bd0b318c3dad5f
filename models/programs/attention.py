"""Autoregressive attention with key and value caches that grow in place.

    for g in range(start, S):
        q = x W_q
        k[:, :, g, :] = x W_k;  v[:, :, g, :] = x W_v     # two partial writes
        a = softmax(0.125 (k q^T)^T)                      # over all S positions
        x = (a v) W_o

There is no mask: keys not written yet are zero and take part in the softmax.
Steps depend on each other, but batches and heads do not.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import normal
from models.lib.nn import softmax, xavier
from models.lib.program import Program, Rng, Size, Values

SCALE = 0.125


class Attention(Program):
    """x [B, heads, 1, D], k, v [B, heads, S, D] -> k, v, x.

    The length option is S; the first `start` positions of the caches are filled.
    `form` is the encoding of the cache writes (see idioms.assign_select).
    """

    name = "attention"
    batch = 1
    length = 50

    def __init__(
        self,
        heads: int = 12,
        depth: int = 64,
        start: int = 32,
        length: int = 50,
        form: str = "elements",
    ) -> None:
        self.heads, self.depth, self.start = heads, depth, start
        self.length, self.form = length, form
        rng = self.rng("weights")
        self.weights = [xavier(rng, heads, depth, depth) for _ in range(4)]

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        if length <= self.start:
            raise ValueError(f"length must be above {self.start}")
        g = Builder("attention")
        token = [batch, self.heads, 1, self.depth]
        cache = [batch, self.heads, length, self.depth]
        x = g.input("x", np.float32, token)
        k = g.input("k", np.float32, cache) + 0.0  # copies: k and v are written to
        v = g.input("v", np.float32, cache) + 0.0
        w_q, w_k, w_v, w_o = (g.param(f"w_{name}", w) for name, w in zip("qkvo", self.weights))
        g.full([batch, self.heads, 1, length], 0, np.float32)  # allocated, never used

        def step(_, x, k, v, pos):
            def write(buffer, value):
                value = im.reshape(g, value, [batch, self.heads, self.depth])
                return im.assign_select(g, buffer, value, 2, pos, self.form, rank=4)

            q = x @ w_q
            k = write(k, x @ w_k)
            v = write(v, x @ w_v)
            swap = [0, 1, 3, 2]
            scores = im.permute(g, k @ im.permute(g, q, swap), swap)  # [B, heads, 1, S]
            scores = g.Softmax(scores * SCALE, axis=3)
            x = (scores @ v) @ w_o
            return [x, k, v, pos + 1]

        x, k, v, _ = g.loop(step, [x, k, v, g.const(self.start)], trip=length - self.start)
        for name, value, shape in (("k", k, cache), ("v", v, cache), ("x", x, token)):
            g.output(g.Identity(value), f"{name}_out", shape)
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        x = normal(rng, batch, self.heads, 1, self.depth)
        caches = []
        for _ in range(2):
            cache = np.zeros((batch, self.heads, length, self.depth), np.float32)
            cache[:, :, : self.start] = normal(rng, batch, self.heads, self.start, self.depth)
            caches.append(cache)
        return [x, *caches]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        # One (batch, head) at a time: they never interact.
        xs, ks, vs = (a.astype(np.float64) for a in inputs)
        for b in range(batch):
            for head in range(self.heads):
                w_q, w_k, w_v, w_o = (w[head].astype(np.float64) for w in self.weights)
                x, k, v = xs[b, head, 0], ks[b, head], vs[b, head]
                for pos in range(self.start, length):
                    k[pos], v[pos] = x @ w_k, x @ w_v
                    x = softmax(SCALE * (k @ (x @ w_q))) @ v @ w_o
                xs[b, head, 0] = x
        return [a.astype(np.float32) for a in (ks, vs, xs)]
