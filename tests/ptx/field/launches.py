"""What tests of `ptx/field` ask: is a kernel equal to a reference in NumPy?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from warploom import ptx
from warploom.ptx.field.arrays import Exact, Literals
from warploom.ptx.field.equal import FEW, Answer, decided
from warploom.ptx.field.floats import Field
from warploom.ptx.field.run import UNWRITTEN, Floats, run

KERNELS = ptx.load((Path(__file__).parent / "kernels.ptx").read_text(), "kernels.ptx")
Shape = tuple[int, ...]
Reference = Callable[..., Any]


def equal(
    kernel: ptx.Kernel, grid: Any, block: Any, shapes: Sequence[Shape], out: Shape,
    reference: Reference, rest: Sequence[Any] = (), *, kind: str = "f32", **how: Any,
) -> Answer:  # fmt: skip
    """Whether the last array that a kernel takes becomes what a reference gives, of all others."""

    def once(field: Field, r: Random, narrow: int | None) -> list[tuple[Any, Any]]:
        e = field.elements
        inputs = [
            e.inputs(int(np.prod(shape)), r, FEW if n == narrow else 0).reshape(shape)
            for n, shape in enumerate(shapes)
        ]
        floats = [Floats(kind, each) for each in (*inputs, np.full(out, UNWRITTEN))]
        run(kernel, grid, block, [*(f.bits for f in floats), *rest], floats, field, r, **how)
        found = floats[-1].numbers
        assert (found != UNWRITTEN).all()
        literals = Literals(e)
        wanted = reference(*(Exact(literals, each) for each in inputs)).numbers
        return [(found.reshape(-1), np.broadcast_to(wanted, out).reshape(-1))]

    return decided(once, len(shapes), seed=7)
