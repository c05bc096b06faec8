"""What is stored of a sum: the value that comes after it, with what it loads besides, and where."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from warploom.index.ir import Const, Expr
from warploom.index.laws import simplify
from warploom.kernel import ir
from warploom.kernel.build import Builder
from warploom.kernel.ir import Kernel, Value
from warploom.kernel.names import Fresh, names_of, renamed
from warploom.kernel.traverse import map_value
from warploom.loopnest.access import Access, Array
from warploom.loopnest.computation import Computation, Folded, Kept, Loaded, Stored
from warploom.loopnest.ir import Parameter


@dataclass(slots=True)
class Place:
    """Where a result is: expressions for the indices of axes; `inside` says where there is one."""

    index: Mapping[str, Expr]
    inside: Expr | None


class Given:
    """Declares what a computation is given. While a kernel is written it has names of its own, so
    that no array of a user collides with what the kernel calls its registers."""

    def __init__(
        self, k: Builder, source: Computation, counts: Mapping[Array, int], out: Array,
        early: Collection[Array] = (),
    ) -> None:  # fmt: skip
        """Loads of `early` arrays stay before the barriers that they stand before: of what is
        declared to be read alone, ptxas moves them behind, to where they are used."""
        every = [each.name for each in source.arrays]
        every += [each.name for each in source.parameters]
        self.names = {name: f"given_{at}" for at, name in enumerate(every)}
        self.arrays = {
            each.name: k.array(
                self.names[each.name],
                each.dtype,
                counts[each],
                const=each is not out,
                restrict=each not in early,
            )
            for each in source.arrays
        }
        for number in source.parameters:
            k.number(self.names[number.name], number.dtype)

    def back(self, kernel: Kernel) -> Kernel:
        """The kernel with the names that users gave; its own make way."""
        own = names_of(kernel) - {*self.names.values(), kernel.name, *ir.BUILT_IN}
        fresh = Fresh(own | self.names.keys())
        other = {name: fresh.name(name) for name in sorted(own & self.names.keys())}
        return renamed(kernel, other | {made: name for name, made in self.names.items()})


@dataclass(slots=True)
class Results:
    """Adds to a kernel what comes after its sums."""

    k: Builder
    store: Stored
    given: Given
    scales: tuple[Value, ...] = ()
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
                    made: Value = held
                    for each in self.scales:
                        made = made * map_value(each, lambda expr: expr, found)
                    return made
                case Loaded():
                    return self._loaded(value, place)
                case Parameter(name, dtype):
                    return ir.Cell(self.given.names[name], None, dtype)
            return value

        return map_value(self.store.value, lambda expr: expr, found)

    def put(self, at: Expr, value: Value, inside: Expr | None = None, many: int = 1) -> None:
        """Stores results, beside each other if they are several."""
        name = self.given.names[self.store.access.array.name]
        self.k.add(ir.Store(name, at, value, inside, many))

    def _loaded(self, value: Loaded, place: Place) -> Value:
        array = value.access.array
        cell = self.k.register(self.fresh(f"{array.name}_loaded"), array.dtype)
        self.k.add(
            ir.Load(cell, self.given.names[array.name], self.at(value.access, place), place.inside)
        )
        return cell
