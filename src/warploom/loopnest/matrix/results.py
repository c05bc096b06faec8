"""What is stored of a sum: the value that comes after it, with what it loads besides, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warploom.index.ir import Const, Expr
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.build import Builder
from warploom.kernel.ir import Value
from warploom.kernel.traverse import map_value
from warploom.loopnest.access import Access
from warploom.loopnest.computation import Folded, Kept, Loaded, Stored
from warploom.loopnest.ir import Parameter


@dataclass(slots=True)
class Place:
    """Where a result is: expressions for the indices of axes; `inside` says where there is one."""

    index: Mapping[str, Expr]
    inside: Expr | None


@dataclass(slots=True)
class Results:
    """Adds to a kernel what comes after its sums."""

    k: Builder
    store: Stored
    named: int = 0

    def fresh(self, name: str) -> str:
        self.named += 1
        return f"{name}_{self.named}"

    def at(self, access: Access, place: Place) -> Expr:
        """The element of an array that a linear access is of."""
        at: Expr = Const(access.place.offset)
        for axis, step in access.place.factors.items():
            at = at + place.index[axis.name] * step
        return simplify(at)

    def value(self, held: ir.Cell, place: Place) -> Value:
        """What is stored, of a sum; what it loads besides is loaded first."""

        def found(value: Value) -> Value:
            match value:
                case Kept():
                    return map_value(value.value, lambda expr: expr, found)
                case Folded():
                    return held
                case Loaded():
                    return self._loaded(value, place)
                case Parameter(name, dtype):
                    return ir.Cell(name, None, dtype)
            return value

        return map_value(self.store.value, lambda expr: expr, found)

    def _loaded(self, value: Loaded, place: Place) -> Value:
        array = value.access.array
        cell = self.k.register(self.fresh(array.name), array.dtype)
        self.k.add(ir.Load(cell, array.name, self.at(value.access, place), place.inside))
        return cell
