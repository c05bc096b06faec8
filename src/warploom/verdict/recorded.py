"""A launch that was recorded elsewhere, as a case: what each of its arrays is, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import ParseError, one_of
from warploom.verdict.argument import Said, dtype_of, said
from warploom.verdict.case import Argument, Case, Launch, check_names, start_of

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class RecordedShape:
    """`args` are as a launch takes them; arrays among them, or under tensor maps, have names."""

    said: Sequence[Said]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...] | None
    shared: int
    args: Sequence[Any]
    arrays: Mapping[str, Array]

    def at(self, sizes: Mapping[str, int], seed: int) -> Case:
        launch = Launch(self.grid, self.block, self.cluster, self.shared, list(self.args))
        case = Case(dict(sizes), [launch])
        described = {each.name: each for each in self.said}
        for name in described:
            if name not in self.arrays:
                advice = one_of(name, self.arrays)
                raise ParseError(f"the launch has no array '{name}'", advice=advice)
        draw = np.random.default_rng(seed)
        for name, array in self.arrays.items():
            place = next((n for n, each in enumerate(self.args) if each is array), -1)
            each = described.get(name) or said(name, array)
            shape = each.shape(sizes)
            if each.sizes is None and each.values is None:
                raise ParseError(f"'{each.text[:80]}' is a number; the launch has an array there")
            dtype = dtype_of(each.kind)
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            if size != array.nbytes:
                what = f"'{each.text[:80]}' has {size} bytes, and the array {array.nbytes}"
                raise ParseError(what, advice="say its type and shape as the kernel sees them")
            memory = array.reshape(-1).view(dtype).reshape(shape)
            start = start_of(each, shape, draw)
            case.named[name] = Argument(each, shape, memory, start, is_mapped=place < 0)
            if place >= 0:
                launch.args[place] = case.named[name]
        check_names(case)
        return case
