"""Structures moved through shared memory, or by each thread on its own: the plain strategies.

`shared`: a block takes its structures in the order of memory, lays them down in shared memory, and
takes them up in the order of the other side. Arrays that a structure of arrays begins in the middle
of a line are stored from a line's beginning on all the same: a block has a line's worth of elements
more than it stores, and each array is turned by as much as it begins too late. `direct`: each
thread loads and stores its own structures. Both are written by hand: there is no fill.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TypeAlias

from warploom.catalogue.layout import WIDTHS, check_block, check_fields, element_type, widest
from warploom.errors import CheckError
from warploom.index.ir import Expr
from warploom.kernel.build import Array, Builder, RegisterArray, ceil_div
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.machine.record import CUDA

MOST_PER_THREAD = 64  # elements
# What is done with a field of a thread's structure at a place of an array.
Access: TypeAlias = Callable[[Expr, Expr], None]

NOTHING_EXCHANGED = "Nothing is exchanged between lanes: there is no fill."
BY_HAND = "The exchange through shared memory is written by hand: there is no fill."


@dataclass(frozen=True, slots=True)
class Stage:
    """`tiles` structures for each thread of a block."""

    fields: int
    dtype: DType
    block: int
    tiles: int
    width: int

    @property
    def structures(self) -> int:
        """Structures per block."""
        return self.block * self.tiles

    @property
    def line(self) -> int:
        return line_elements(self.dtype)

    @property
    def loaded(self) -> int:
        """Structures that a block loads so that it can store whole lines of every array."""
        return self.structures + self.line

    @property
    def plane(self) -> int:
        """Elements from one array to the next in shared memory; a few more than there are, so that
        the elements of one structure lie in different banks."""
        return self.loaded + 4 + (1 if self.fields % 2 == 0 else 0)

    @property
    def row(self) -> int:
        """Elements from one structure to the next in shared memory: an odd number."""
        return self.fields | 1


def stage(fields: int, dtype: str, block: int, tiles: int, width: int) -> Stage:
    """The parameters, checked."""
    kind = element_type(dtype)
    check_fields(fields)
    check_block(block)
    if tiles < 1 or tiles * fields > MOST_PER_THREAD:
        raise CheckError(
            f"{tiles} structures of {fields} fields for each thread",
            advice=f"at most {MOST_PER_THREAD} elements in all",
        )
    if width not in WIDTHS or width * kind.bytes > CUDA.access_bytes:
        raise CheckError(
            f"accesses of {width} elements of {kind.value}",
            advice=f"1, 2 or 4, and at most {CUDA.access_bytes} bytes together",
        )
    return Stage(fields, kind, block, tiles, width)


def line_elements(dtype: DType) -> int:
    """Elements of a line of the cache."""
    return CUDA.line_bytes // dtype.bytes


def aligned_width(dtype: DType) -> int:
    """The widest access to elements that begin a line."""
    return next(w for w in WIDTHS if w * dtype.bytes <= CUDA.access_bytes)


def shared_bytes(plan: Stage, *, to_arrays: bool) -> int:
    elements = plan.fields * plan.plane if to_arrays else plan.structures * plan.row
    return elements * plan.dtype.bytes


# -- through shared memory -------------------------------------------------------------------------


def shared_to_arrays(name: str, what: str, plan: Stage) -> Kernel:
    """Whole lines of x, shared memory by arrays, whole lines of y."""
    return _ToArrays(name, what, plan).write()


class _ToArrays:
    def __init__(self, name: str, what: str, plan: Stage) -> None:
        _check_shared(plan, to_arrays=True)
        self.plan = plan
        how = "Shared memory; arrays are stored from the beginning of a line on."
        self.k = k = Builder(name, block=plan.block, doc=f"{what}\n{how}\n{BY_HAND}")
        self.n, self.x, self.y = _arrays(k, plan, plan.fields)
        k.grid(ceil_div(self.n + plan.line, plan.structures))

    def write(self) -> Kernel:
        k, plan = self.k, self.plan
        self.tile = k.shared("tile", plan.dtype, plan.fields * plan.plane)
        # Negative in the first block: what would lie before the first structure.
        self.first = k.let("first", k.block_x * plan.structures - plan.line)
        within = self.first.ge(0).and_((self.first + plan.loaded).le(self.n))
        self.whole = k.let("whole", within)
        self._take_up(self._load())
        k.barrier()
        self._store()
        return k.done()

    def _load(self) -> RegisterArray:
        """As many accesses as it takes; all are under way before the first is used."""
        k, plan = self.k, self.plan
        held = k.registers("held", plan.dtype, self._accesses * plan.width)
        with k.when(self.whole.ne(0)), k.loop("j", self._accesses) as j:
            start = self.first * plan.fields + self._number(j) * plan.width
            held[j * plan.width] = self.x.at(start, when=self._wanted(j), width=plan.width)
        with k.otherwise(), k.loop("j", self._accesses) as j, k.loop("e", plan.width) as e:
            at = k.let("at", self.first * plan.fields + self._number(j) * plan.width + e)
            inside = at.ge(0).and_(at.lt(self.n * plan.fields))
            wanted = self._wanted(j)
            held[j * plan.width + e] = self.x.at(
                at, when=inside if wanted is None else wanted.and_(inside)
            )
        return held

    @property
    def _accesses(self) -> int:
        """Accesses per thread to load all structures of the block."""
        return -(-self.plan.loaded * self.plan.fields // (self.plan.block * self.plan.width))

    def _number(self, j: Expr) -> Expr:
        return j * self.plan.block + self.k.thread

    def _wanted(self, j: Expr) -> Expr | None:
        """Whether an access is one of the block's, if some are not."""
        elements = self.plan.loaded * self.plan.fields
        if elements % (self.plan.block * self.plan.width) == 0:
            return None
        return (self._number(j) * self.plan.width).lt(elements)

    def _take_up(self, held: RegisterArray) -> None:
        k, plan = self.k, self.plan
        with k.loop("j", self._accesses) as j, k.loop("e", plan.width) as e:
            word = k.let("word", self._number(j) * plan.width + e)
            place = word % plan.fields * plan.plane + word // plan.fields
            self.tile.put(place, held[j * plan.width + e], when=self._wanted(j))

    def _store(self) -> None:
        """Each access stores `width` neighbours of one array."""
        k, plan = self.k, self.plan
        per_array = plan.structures // plan.width
        accesses = plan.fields * per_array
        iterations = -(-accesses // plan.block)
        side = k.registers("side", plan.dtype, plan.width)
        with k.loop("j", iterations) as j:
            number = k.let("number", j * plan.block + k.thread)
            field = k.let("field", number // per_array)
            some = accesses % plan.block  # in the last iteration, if not all threads
            with k.when(field.lt(plan.fields)) if some else nullcontext():
                begin = k.let("begin", field * self.n // plan.line * plan.line)
                along = number % per_array * plan.width
                late = begin - field * self.n  # by how much the array's line begins before it
                local = k.let("local", late + plan.line + along)
                with k.loop("e", plan.width) as e:
                    side[e] = self.tile[field * plan.plane + local + e]
                to = begin + k.block_x * plan.structures + along
                with k.when(self.whole.ne(0)):
                    self.y.put(to, side[0], width=plan.width)
                with k.otherwise(), k.loop("e", plan.width) as e:
                    i = k.let("i", self.first + local + e)
                    inside = i.ge(0).and_(i.lt(self.n))
                    self.y.put(field * self.n + i, side[e], when=inside)


def shared_to_structures(name: str, what: str, plan: Stage) -> Kernel:
    """Every array as it lies, shared memory by structures, whole lines of y."""
    k, n, x, y, tile = _by_structures(name, what, plan, outputs=plan.fields)
    first = k.let("first", k.block_x * plan.structures)
    held = k.registers("held", plan.dtype, plan.tiles * plan.fields)
    with k.loop("u", plan.tiles) as u, k.loop("field", plan.fields) as field:
        i = k.let("i", first + u * plan.block + k.thread)
        held[u * plan.fields + field] = x.at(field * n + i, when=i.lt(n))
    with k.loop("u", plan.tiles) as u, k.loop("field", plan.fields) as field:
        own = (u * plan.block + k.thread) * plan.row
        tile.put(own + field, held[u * plan.fields + field])
    k.barrier()
    got = k.register("got", plan.dtype)
    with k.loop("j", plan.tiles * plan.fields) as j:
        word = k.let("word", j * plan.block + k.thread)
        k.set(got, tile[word // plan.fields * plan.row + word % plan.fields])
        at = k.let("at", first * plan.fields + word)
        y.put(at, got, when=at.lt(n * plan.fields))
    return k.done()


def shared_sums(name: str, what: str, plan: Stage) -> Kernel:
    """Whole lines of x, shared memory by structures, each of which one thread adds up."""
    k, n, x, y, tile = _by_structures(name, what, plan, outputs=1)
    first = k.let("first", k.block_x * plan.structures)
    held = k.registers("held", plan.dtype, plan.tiles * plan.fields)
    with k.loop("j", plan.tiles * plan.fields) as j:
        at = k.let("at", first * plan.fields + j * plan.block + k.thread)
        held[j] = x.at(at, when=at.lt(n * plan.fields))
    with k.loop("j", plan.tiles * plan.fields) as j:
        word = k.let("word", j * plan.block + k.thread)
        tile.put(word // plan.fields * plan.row + word % plan.fields, held[j])
    k.barrier()
    got, total = k.register("got", plan.dtype), k.registers("total", plan.dtype, plan.tiles, 0)
    with k.loop("u", plan.tiles) as u:
        own = k.let("own", u * plan.block + k.thread)
        with k.loop("field", plan.fields) as field:
            k.set(got, tile[own * plan.row + field])
            total[u] = total[u] + got
        i = k.let("i", first + own)
        y.put(i, total[u], when=i.lt(n))
    return k.done()


def _by_structures(
    name: str, what: str, plan: Stage, outputs: int
) -> tuple[Builder, Expr, Array, Array, Array]:
    _check_shared(plan, to_arrays=False)
    doc = f"{what}\nShared memory, an odd number of elements for each structure.\n{BY_HAND}"
    k = Builder(name, block=plan.block, doc=doc)
    n, x, y = _arrays(k, plan, outputs)
    k.grid(ceil_div(n, plan.structures))
    return k, n, x, y, k.shared("tile", plan.dtype, plan.structures * plan.row)


def _check_shared(plan: Stage, *, to_arrays: bool) -> None:
    needed = shared_bytes(plan, to_arrays=to_arrays)
    if needed > CUDA.shared_bytes:
        raise CheckError(
            f"{plan.structures} structures of {plan.fields} {plan.dtype.value} need {needed} bytes "
            "of shared memory",
            advice=f"a block has {CUDA.shared_bytes}: use fewer tiles, or a smaller block",
        )


# -- each thread on its own ------------------------------------------------------------------------


def direct(name: str, what: str, plan: Stage, *, back: bool) -> Kernel:
    """Each thread's own structures, loaded and stored as they lie."""
    k, n, x, y = _directly(name, what, plan, outputs=plan.fields)
    with k.loop("u", plan.tiles) as u:
        i = _own(k, plan, u)
        with k.when(i.lt(n)):
            held = k.registers("held", plan.dtype, plan.fields)
            if back:
                _each_array(k, plan, n, i, lambda field, at: k.set(held[field], x[at]))
                _each_word(k, plan, i, lambda f, at: y.put(at, held[f], width=plan.width))
            else:
                _each_word(k, plan, i, lambda f, at: k.set(held[f], x.at(at, width=plan.width)))
                _each_array(k, plan, n, i, lambda field, at: y.put(at, held[field]))
    return k.done()


def direct_sums(name: str, what: str, plan: Stage) -> Kernel:
    k, n, x, y = _directly(name, what, plan, outputs=1)
    with k.loop("u", plan.tiles) as u:
        i = _own(k, plan, u)
        with k.when(i.lt(n)):
            held = k.registers("held", plan.dtype, plan.fields)
            _each_word(k, plan, i, lambda f, at: k.set(held[f], x.at(at, width=plan.width)))
            total = k.register("total", plan.dtype, 0)
            with k.loop("field", plan.fields) as field:
                k.set(total, total + held[field])
            y.put(i, total)
    return k.done()


def _directly(
    name: str, what: str, plan: Stage, outputs: int
) -> tuple[Builder, Expr, Array, Array]:
    if plan.fields % plan.width:
        raise CheckError(
            f"accesses of {plan.width} elements do not fit {plan.fields} fields",
            advice=f"use {widest(plan.fields, plan.dtype)}, or a width that divides them",
        )
    doc = f"{what}\nEvery thread moves structures of its own.\n{NOTHING_EXCHANGED}"
    k = Builder(name, block=plan.block, doc=doc)
    n, x, y = _arrays(k, plan, outputs)
    k.grid(ceil_div(n, plan.structures))
    return k, n, x, y


def _own(k: Builder, plan: Stage, u: Expr) -> Expr:
    return k.let("i", k.block_x * plan.structures + u * plan.block + k.thread)


def _each_word(k: Builder, plan: Stage, i: Expr, access: Access) -> None:
    with k.loop("j", plan.fields // plan.width) as j:
        access(j * plan.width, i * plan.fields + j * plan.width)


def _each_array(k: Builder, plan: Stage, n: Expr, i: Expr, access: Access) -> None:
    with k.loop("field", plan.fields) as field:
        access(field, field * n + i)


def _arrays(k: Builder, plan: Stage, outputs: int) -> tuple[Expr, Array, Array]:
    """The number of structures, and so many elements of each in and out."""
    n = k.scalar("n")
    x = k.array("x", plan.dtype, n * plan.fields, const=True)
    return n, x, k.array("y", plan.dtype, n * outputs)
