"""Twenty programs so small that much of their spaces can be tried, for what cuts remove."""

from __future__ import annotations

from collections.abc import Callable

from bench.common.loopnest.stated import program_named

from warploom.loopnest.build import LoopNest
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import (
    Cut,
    add_parts,
    axpy,
    batched_matmul,
    doitgen,
    gesummv,
    matmul,
    matvec,
)

TAIL = Cut(tail=True)
TWO = ((2,),)


def _whole(program: Program) -> Program:
    """Whole expressions, as a user's nest is explored."""
    return program_of(Computation.of(program), published=False)


def _transposed() -> Program:
    nest = LoopNest("transposed")
    i, j = nest.axis("i", 4, (2,)), nest.axis("j", 4, (2, 4))
    x, y = nest.array("x", i, j), nest.array("y", j, i)
    y[j, i] = x[i, j]
    return _whole(nest.done())


def _scaled_rows() -> Program:
    nest = LoopNest("scaled_rows")
    i, j = nest.axis("i", 4, (2,)), nest.axis("j", 8, (2, 4), (2,))
    x, s, y = nest.array("x", i, j), nest.array("s", i), nest.array("y", i, j)
    y[i, j] = x[i, j] * s[i]
    return _whole(nest.done())


def _stencil() -> Program:
    nest = LoopNest("stencil")
    i, j = nest.axis("i", 4, (2,)), nest.axis("j", 4, (2, 4))
    x, y = nest.array("x", 6, 6), nest.array("y", i, j)
    y[i, j] = x[i + 1, j] + x[i, j + 1] + x[i + 1, j + 2] + x[i + 2, j + 1]
    return _whole(nest.done())


def _long_vector() -> Program:
    nest = LoopNest("long_vector")
    i = nest.axis("i", 256, (2, 8, 64), (2, 4), (2,))
    x, y = nest.array("x", i), nest.array("y", i)
    y[i] = x[i] * 2
    return _whole(nest.done())


SMALL: dict[str, Callable[[], Program]] = {
    "axpy": lambda: _whole(axpy(8, ((2, 4), (2,)))),
    "axpy, last tile partial": lambda: _whole(axpy(7, ((2, 4), (2,)), TAIL)),
    "long vector": _long_vector,
    "scaled rows": _scaled_rows,
    "transposed": _transposed,
    "stencil": _stencil,
    "matvec": lambda: _whole(matvec(4, 4, TWO, TWO)),
    "matvec, last tile partial": lambda: _whole(matvec(3, 3, TWO, TWO, cut=TAIL)),
    "gesummv": lambda: _whole(gesummv(4, 2, TWO, TWO)),
    "matmul": lambda: _whole(matmul(2, 2, 4, (TWO, TWO, TWO))),
    "matmul, last tile partial": lambda: _whole(matmul(3, 2, 3, (TWO, TWO, TWO), cut=TAIL)),
    "batched matmul": lambda: _whole(batched_matmul(2, 2, 2, 2, (), TWO)),
    "doitgen": lambda: _whole(doitgen(2, 2, 2, TWO, TWO)),
    "add parts": lambda: _whole(add_parts(2, 4, 4, (TWO, TWO))),
    "row sum": lambda: program_named("row sum"),
    "column sum": lambda: program_named("column sum"),
    "product of rows": lambda: program_named("product of rows"),
    "triangular product": lambda: program_named("triangular product"),
    "root mean square norm": lambda: program_named("root mean square norm"),
    "softmax": lambda: program_named("softmax"),
}
