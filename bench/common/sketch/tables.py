"""A set of gathers made of tables alone, as they are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warploom.sketch.holes.call import Call, Option
from warploom.sketch.holes.custom import Defined
from warploom.sketch.term.ir import GatherSet, Shape, Table


def table_set(
    function: str,
    options: tuple[tuple[str, Option], ...],
    arg_shapes: tuple[Shape, ...],
    out_shape: Shape,
    names: Sequence[str],
    tables: Table,
) -> GatherSet:
    tables = np.ascontiguousarray(tables, np.int32)
    call = Call(function, dict(options), arg_shapes, out_shape)
    every = np.arange(len(tables))
    return GatherSet(
        function=function,
        options=options,
        arg_shapes=arg_shapes,
        out_shape=out_shape,
        family=Defined(call, tuple(names), tables),
        spelled=every[:, None],
        owner=every,
        reads=tables,
    )
