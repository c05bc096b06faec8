"""Several gathers in one launch: blocks that follow each other belong to one after the other.

A launch has a beginning and an end in which a GPU is not busy, so tensors that are put together are
one launch and not one for each. Arrays, scalars and names of the n-th gather end in n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from warploom.catalogue.permute.gather import Gather, GatherWriter
from warploom.catalogue.permute.launch import Part, Spec
from warploom.index.ir import Expr, Var, lift, maximum
from warploom.kernel.build import Array, Builder, Index, RegisterArray
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel

MOST = 8  # gathers in a launch


@dataclass(frozen=True, slots=True)
class Several:
    """These gathers, whose blocks are all counted along one axis."""

    gathers: tuple[Gather, ...]

    @property
    def name(self) -> str:
        """The gathers, those that are alike by how many they are."""
        alike = [(name, len(list(each))) for name, each in groupby(g.name for g in self.gathers)]
        short = [f"{count}x{name.removeprefix('permute_gather_')}" for name, count in alike]
        return f"permute_several_{'_'.join(short)}"


@dataclass(frozen=True, slots=True)
class Bundle:
    """One launch that reads several arrays: its kernel, scalars by name, for each array that is
    read its name, the number of the input and where it begins in it, and where y begins."""

    spec: Spec | Several
    scalars: dict[str, int]
    grid: tuple[int, int, int]
    reads: tuple[tuple[str, int, int], ...]
    y_begin: int


Found = tuple[Part, int, int]  # a launch, the number of its input, how far y begins in the output


def bundles(found: Sequence[Found]) -> list[Bundle]:
    """Launches for parts: gathers of elements of one size together, others by themselves."""
    made: list[Bundle] = []
    alike: dict[int, list[Found]] = {}
    for each in found:
        if isinstance(each[0].spec, Gather):
            alike.setdefault(each[0].spec.bytes, []).append(each)
        else:
            made.append(_alone(*each))
    for several in alike.values():
        made += [_bundle(several[at : at + MOST]) for at in range(0, len(several), MOST)]
    return made


def _alone(part: Part, number: int, further: int) -> Bundle:
    reads = (("x", number, part.x_begin),)
    return Bundle(part.spec, part.scalars, part.grid, reads, further + part.y_begin)


def _bundle(found: Sequence[Found]) -> Bundle:
    if len(found) == 1:
        return _alone(*found[0])
    scalars: dict[str, int] = {}
    gathers, blocks, size = [], 0, 0
    first = min(further + part.y_begin for part, _, further in found)
    for at, (part, _, further) in enumerate(found):
        assert isinstance(part.spec, Gather)
        gathers.append(replace(part.spec, beyond=0))
        more = (further + part.y_begin - first) // part.spec.bytes
        known = part.scalars | {"first_write": part.scalars["first_write"] + more}
        scalars |= {f"{name}_{at}": value for name, value in known.items()}
        scalars[f"begin{at}"] = blocks
        blocks += part.blocks
        size = max(size, more * part.spec.unit + part.scalars["y_size"])
    scalars |= {"blocks": blocks, "y_size": size}
    reads = tuple((f"x_{at}", number, part.x_begin) for at, (part, number, _) in enumerate(found))
    return Bundle(Several(tuple(gathers)), scalars, (blocks, 1, 1), reads, first)


def several_kernel(spec: Several) -> Kernel:
    (threads,) = {each.threads for each in spec.gathers}
    (dtype,) = {each.dtype for each in spec.gathers}
    count = len(spec.gathers)
    k = Builder(spec.name, block=threads, doc=f"{count} gathers, blocks of each in turn.")
    y_size = k.scalar("y_size")
    y, blocks = k.array("y", dtype, y_size), k.scalar("blocks")
    begins = [*(k.scalar(f"begin{at}") for at in range(count)), blocks]
    k.require(blocks.ge(1))
    k.grid(blocks)
    for at, gather in enumerate(spec.gathers):
        begin, end = begins[at : at + 2]
        block = k.let(f"block{at}", maximum(k.block_x - begin, lift(0)))
        writer = GatherWriter(gather, _Renamed(k, f"_{at}", block, y))
        with k.when(k.block_x.ge(begin).and_(k.block_x.lt(end))):
            writer.write()
    return k.done()


class _Renamed(Builder):
    """A builder of the same kernel, whose names end in a number, whose blocks begin further, and
    which writes what all write."""

    def __init__(self, k: Builder, ending: str, block: Expr, y: Array) -> None:
        super().__init__(k.name, block=1)
        self._params, self._requires, self._open = k._params, k._requires, k._open
        self._ending, self.block_x, self._y = ending, block, y

    def scalar(self, name: str) -> Var:
        return Var(name) if name == "y_size" else super().scalar(name + self._ending)

    def array(
        self, name: str, dtype: DType, size: Index, *, const: bool = False, restrict: bool = True
    ) -> Array:
        if name == "y":
            return replace(self._y, builder=self)
        return super().array(name + self._ending, dtype, size, const=const, restrict=restrict)

    def let(self, name: str, expr: Index) -> Var:
        return super().let(name + self._ending, expr)

    def registers(
        self, name: str, dtype: DType, size: int, initial: float | None = None
    ) -> RegisterArray:
        return super().registers(name + self._ending, dtype, size, initial)

    def grid(self, x: Index, y: Index = 1, z: Index = 1) -> None:
        """The grid is that of all together."""
