"""Greedy decoding with an LSTM cell: a while loop that stops on its own data.

    out = zeros(L, B); tok = full(B, SOS); id = 0; cond = True
    while cond:
        i, f, g, o = gates(E[tok] W_ih + b_ih, h W_hh + b_hh)
        c = f c + i g
        h = o tanh(c)
        tok = argmax(h W_o^T + b_o + force[id])
        out[id] = tok                                # a row write
        id += 1
        cond = max(tok) > 0 and id < L

`force` adds 1e6 to one logit per step, so the decoded tokens are known: step t
yields token t + 1, and the last forced step yields 0, the end of the sequence.
"""

from __future__ import annotations

import numpy as np
import onnx

from models.lib import idioms as im
from models.lib.builder import Builder
from models.lib.data import CheckFailure, normal, uniform
from models.lib.nn import sigmoid, xavier
from models.lib.program import Program, Rng, Size, Values

GATES = ("i", "f", "g", "o")
SOS = 1
FORCE = 1e6


class Seq2Seq(Program):
    """enc [L, B, H], force [L, B, V], h, c [B, H] -> out [L, B] int64, h [B, H].

    Only the batch size of `enc` is used.  Decoding takes `steps` steps, or L
    with None.
    """

    name = "seq2seq"
    batch = 1
    length = 50

    def __init__(
        self,
        steps: int | None = None,
        hidden: int = 256,
        vocabulary: int = 500,
        length: int = 50,
    ) -> None:
        self.steps, self.hidden = steps, hidden
        self.vocabulary, self.length = vocabulary, length
        rng = self.rng("weights")
        self.embedding = normal(rng, vocabulary, hidden)
        self.w_ih = xavier(rng, len(GATES), hidden, hidden)
        self.w_hh = xavier(rng, len(GATES), hidden, hidden)
        self.b_ih = normal(rng, len(GATES), hidden)
        self.b_hh = normal(rng, len(GATES), hidden)
        bound = hidden**-0.5
        self.w_out = uniform(rng, vocabulary, hidden, low=-bound, high=bound)
        self.b_out = uniform(rng, vocabulary, low=-bound, high=bound)

    def tokens(self, length: int) -> np.ndarray:
        """The forced tokens [L]: 1, 2, ..., steps - 1, then zeros."""
        steps = length if self.steps is None else self.steps
        if not 0 < steps <= min(length, self.vocabulary):
            raise ValueError(f"{steps} steps do not fit length {length}")
        t = np.arange(length)
        return np.where(t < steps - 1, t + 1, 0)

    def build(self, batch: Size, length: Size) -> onnx.ModelProto:
        g = Builder("seq2seq")
        enc = g.input("enc", np.float32, [length, batch, self.hidden])
        force = g.input("force", np.float32, [length, batch, self.vocabulary])
        h = g.input("h", np.float32, [batch, self.hidden])
        c = g.input("c", np.float32, [batch, self.hidden])
        embedding = g.param("embedding", self.embedding)
        w_ih, w_hh = g.param("w_ih", self.w_ih), g.param("w_hh", self.w_hh)
        b_ih = [g.param(f"b_ih_{k}", b) for k, b in zip(GATES, self.b_ih)]
        b_hh = [g.param(f"b_hh_{k}", b) for k, b in zip(GATES, self.b_hh)]
        w_out, b_out = g.param("w_out", self.w_out), g.param("b_out", self.b_out)

        n = im.vector(g, im.dim(g, enc, 1))
        out = g.full(g.Concat(g.const([length]), n, axis=0), 0, np.int64)
        tok = g.full(n, SOS, np.int64)

        def step(_, tok, h, c, pos, out):
            x = im.gather_rows(g, embedding, tok)
            ih, hh = x @ w_ih, h @ w_hh  # [4, B, H]
            z = [
                (im.select(g, ih, 0, k) + b_ih[k]) + (im.select(g, hh, 0, k) + b_hh[k])
                for k in range(len(GATES))
            ]
            c = g.Sigmoid(z[1]) * c + g.Sigmoid(z[0]) * g.Tanh(z[2])
            h = g.Sigmoid(z[3]) * g.Tanh(c)
            logits = g.Gemm(h, w_out, b_out, transB=1) + im.select(g, force, 0, pos)
            tok = g.ArgMax(logits, axis=1, keepdims=0)
            out = im.assign_row(g, out, pos, tok)
            pos = pos + 1
            keep_going = (g.ReduceMax(tok, keepdims=0) > 0) & (pos < length)
            return [keep_going, tok, h, c, pos, out]

        _, h, _, _, out = g.loop(
            step,
            [tok, h, c, g.const(0), out],
            trip=length,
            cond=g.const(True, np.bool_),
        )
        g.output(out, "out", [length, batch])
        g.output(h, "h_out", [batch, self.hidden])
        return g.model()

    def inputs(self, rng: Rng, batch: Size, length: Size) -> Values:
        force = np.zeros((length, batch, self.vocabulary), np.float32)
        force[np.arange(length), :, self.tokens(length)] = FORCE
        enc = normal(rng, length, batch, self.hidden)
        h, c = normal(rng, batch, self.hidden), normal(rng, batch, self.hidden)
        return [enc, force, h, c]

    def reference(self, inputs: Values, batch: Size, length: Size) -> Values:
        _, force, h, c = (v.astype(np.float64) for v in inputs)
        w_ih, w_hh = (
            np.concatenate(list(w), axis=1).astype(np.float64) for w in (self.w_ih, self.w_hh)
        )
        bias = (self.b_ih.astype(np.float64) + self.b_hh).reshape(-1)
        table = self.embedding @ w_ih + bias  # the input side of every token
        out = np.zeros((length, batch), np.int64)
        tok = np.full(batch, SOS)
        for t in range(length):
            i, f, g, o = np.split(table[tok] + h @ w_hh, len(GATES), axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            tok = np.argmax(h @ self.w_out.T + self.b_out + force[t], axis=1)
            out[t] = tok
            if not tok.any():
                break
        if not (out == self.tokens(length)[:, None]).all():
            raise CheckFailure("decoded tokens differ from the forced ones")
        return [out, h.astype(np.float32)]
