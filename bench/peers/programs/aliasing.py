# SPDX-License-Identifier: Apache-2.0
"""Small programs about aliasing: overlapping writes, views taken before a branch."""

from __future__ import annotations

from torch import Tensor

from bench.peers.programs.micro import Micro


class IfPartialWrite(Micro):
    """a, b [rows, columns], idx scalar -> [rows, columns]; either branch writes a row of b."""

    def forward(self, a: Tensor, b: Tensor, idx: Tensor) -> tuple[Tensor]:
        a = a.clone()
        b = b.clone()
        row = int(idx)
        if row >= 0:
            a += 1.0
            b[row] = a[row]
        else:
            a -= 1.0
            b[-row] = a[-row]
        return (a + b,)


class Dataflow(Micro):
    """a, b [rows, columns] -> [rows, columns]; the third write overlaps the first."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor]:
        a = a.clone()
        a[0] = b[0]
        a[1] = b[1]
        a[0:1] = b[0:1]
        return (a + a[0:1],)


class RowLoop(Micro):
    """a, b [rows, columns] -> a with its first rows replaced by later rows of b."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor]:
        a = a.clone()
        for i in range(10):
            a[i] = b[i + 1]
        return (a,)


class Branch(Micro):
    """a, b [rows, columns], cond scalar -> a, written through a view made before the branch."""

    def forward(self, a: Tensor, b: Tensor, cond: Tensor) -> tuple[Tensor]:
        a = a.clone()
        view = a[1]
        if bool(cond > 0):
            view.copy_(b[0])
        else:
            view.copy_(2 * b[1])
        return (a,)


class BranchLoop(Micro):
    """a, c, d [rows, columns] -> [rows, columns]; c is not used.

    t0 is bound to a new tensor, while t1 still views, and writes, the old one.
    """

    def forward(self, a: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor]:
        t0 = d.clone()
        t1 = t0[1]
        if bool(a.nonzero().sum() != 0):
            t0 = t0 + 1
            for i in range(10):
                t1.copy_(t0[i + 1])
        else:
            t0 = t0 + t1
            t1.copy_(t0[2])
        return (t1 + t0,)


class ViewExample(Micro):
    """a [rows, columns] -> d, which saw the old row 2, and e, which sees the new one."""

    def forward(self, a: Tensor) -> tuple[Tensor, Tensor]:
        a = a.clone()
        b = a[1]
        c = a[2]
        d = b + c
        c += 2
        e = a + d
        return d, e
