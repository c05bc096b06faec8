"""A function on arrays that checks its arguments once for each kind of them, then only launches.

What an argument is but for its address (shape, type, strides, device) is a key; a plan is what has
been worked out for the keys of a call: that everything fits, the grid, which outputs to make, and
the arguments of the launch in memory, of which only addresses change.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from warploom.errors import DeviceError, WarploomError, place
from warploom.runtime.driver import Configurations, Function, Launch, Sides, Table
from warploom.runtime.gpu import fixed, stream_handle
from warploom.runtime.library import READERS, Library, number_key, reader_of
from warploom.runtime.view import View, as_number, is_complex, is_number, view

Given: TypeAlias = View | int | float
Named: TypeAlias = Mapping[str, int | float]

REMEMBERED = 1024
_PAIRS = (
    "complex numbers are taken as pairs, real and imaginary part along a last axis: or give x.real"
)


class MisalignedError(DeviceError):
    """An array does not begin where wide accesses need it to."""


class Plan(Protocol):
    """A call whose arguments were checked, but for their addresses."""

    def __call__(self, arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
        """Runs it on arguments of the same keys; the output, or the tuple of outputs."""
        ...


class Planner(ABC):
    """A callable that plans each kind of call once."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, Plan] = {}

    @abstractmethod
    def plan(self, given: list[Given], named: Named) -> Plan:
        """Checks the arguments of a call and says how it is run."""

    @abstractmethod
    def names(self, count: int) -> Sequence[str]:
        """The names of so many arguments, for errors."""

    def __call__(self, *arguments: Any, stream: Any = None, **named: int | float) -> Any:
        """Runs the kernel; the output array, or the tuple of them if there are several."""
        keys: list[Hashable] = []
        pointers: list[int] = []
        try:  # of all this a call that is known takes the shortest way: no further function
            try:
                for each in arguments:
                    reader = READERS.get(each.__class__) or reader_of(each)
                    if reader is None:
                        break
                    key, pointer = reader(each)
                    keys.append(key)
                    pointers.append(pointer)
            except RuntimeError:  # a tensor without memory, or without strides
                keys.clear()
            if len(keys) != len(arguments):
                return self._unread(arguments, stream, named)
            if named:
                keys.append(_key_of(named))
            known = tuple(keys)
            plan = self._plans.get(known)
            if plan is None:
                plan = self._remember(known, self.first(arguments, named))
            return plan(arguments, pointers, stream)
        except WarploomError as error:
            if any(map(is_complex, arguments)):
                error.advice = f"{_PAIRS}; {error.advice}" if error.advice else _PAIRS
            place(error)
            raise

    def first(self, arguments: Sequence[Any], named: Named) -> Plan:
        """The plan of a call of a new kind."""
        return self.plan(self.given(arguments), named)

    def _unread(self, arguments: Sequence[Any], stream: Any, named: Named) -> Any:
        """The call where some argument is of a class that is looked at each time."""
        given = self.given(arguments)
        known = (_View, *(_key(each) for each in given), _key_of(named))
        plan = self._plans.get(known) or self._remember(known, self.plan(given, named))
        pointers = [each.pointer if isinstance(each, View) else 0 for each in given]
        return plan(arguments, pointers, stream)

    def _remember(self, known: Hashable, plan: Plan) -> Plan:
        if len(self._plans) >= REMEMBERED:
            self._plans.clear()
        self._plans[known] = plan
        return plan

    def given(self, arguments: Sequence[Any]) -> list[Given]:
        """The arguments as views and numbers."""
        names = self.names(len(arguments))
        return [
            as_number(each) if is_number(each) else view(each, name)
            for each, name in zip(arguments, names, strict=True)
        ]


class _View:
    """Marks keys that come from views."""


def _key(given: Given) -> Hashable:
    return given.key if isinstance(given, View) else number_key(given)


def _key_of(named: Named) -> Hashable:
    for name, value in named.items():
        if not is_number(value):
            if hasattr(value, "shape"):
                raise not_by_name(name)
            raise DeviceError(f"'{name}' is a number, not {value!r:.40}")
    return tuple((name, number_key(as_number(named[name]))) for name in sorted(named))


def not_by_name(name: str) -> DeviceError:
    return DeviceError(
        f"'{name}' is given by name, but arrays are given in order",
        advice="outputs after inputs: f(x, y)",
    )


# -- on a GPU ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passed:
    """An array that is given: by its address, which must be a multiple of `alignment`, or, if it
    has so many `bytes` to be copied, by value."""

    name: str
    argument: int  # its place among the arguments
    param: int  # and among the parameters
    alignment: int = 1
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Mapped:
    """A tensor map that is made: of the array at a place among the parameters, by its address, for
    a place behind them."""

    array: int
    param: int
    encoded: Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Made:
    """An output that is made: what makes it, and its place among the parameters."""

    make: Callable[[], Any]
    param: int


class GpuPlan:
    """Launches one function again and again. Tables of arguments are taken from a list of spare
    ones and put back after the launch, so that threads never share one.

    `run` is the plan. What it needs it holds in its own variables, since reading attributes would
    cost a noticeable part of a call.
    """

    def __init__(
        self,
        function: Function,
        grid: Sides,
        block: Sides,
        values: Sequence[int | bytes],
        passed: Sequence[Passed],
        made: Sequence[Made],
        outputs: Sequence[int],
        library: Library,
        check_overlap: Callable[[Sequence[int]], None] | None,
        misaligned: Plan | None = None,
        mapped: Sequence[Mapped] = (),
    ) -> None:
        """`values` are those of all parameters, 0 for arrays; `outputs` are the arguments that
        are given back where none are made; `misaligned` is done instead where an array does not
        begin as wide accesses need it."""
        self._function, self._passed, self._mapped = function, tuple(passed), tuple(mapped)
        self._configurations = Configurations(grid, block, function.shared_bytes)
        self._current = library.stream(function.device)
        self._spare: list[Table] = []
        self._filled = self._filling(values, check_overlap)
        self.run: Plan = self._running(tuple(made), tuple(outputs), library.pointer, misaligned)

    def _filling(
        self,
        values: Sequence[int | bytes],
        check_overlap: Callable[[Sequence[int]], None] | None,
    ) -> Callable[[Sequence[int]], Table]:
        """What puts the arguments that are given, checked for what addresses alone tell, into a
        table."""
        take, misplaced = self._spare.pop, self._misplaced
        by_address = tuple(
            (each.argument, each.param, each.alignment - 1)
            for each in self._passed
            if not each.bytes
        )
        by_value = tuple(
            (each.argument, each.param, each.bytes) for each in self._passed if each.bytes
        )

        def filled(pointers: Sequence[int]) -> Table:
            try:
                table = take()
            except IndexError:
                table = Table(values)
            cells = table.cells
            for at, param, mask in by_address:
                pointer = pointers[at]
                if pointer & mask or not pointer:
                    raise misplaced(at, pointer)
                cells[param].value = pointer
            if check_overlap is not None:
                check_overlap(pointers)
            for at, param, size in by_value:
                ctypes.memmove(cells[param], pointers[at], size)
            return table

        return filled

    def _running(
        self,
        made: tuple[Made, ...],
        outputs: tuple[int, ...],
        pointer_of: Callable[[Any], int],
        misaligned: Plan | None,
    ) -> Plan:
        function, filled, spare = self._function, self._filled, self._spare.append
        enqueue, handle, current = function.enqueue, function.handle, self._current
        config_of = self._configurations.references.get
        configured = self._configurations.reference
        makes = tuple((each.make, each.param) for each in made)
        mapped, maps = self._mapped, self._map

        def run(arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
            try:
                table = filled(pointers)
            except MisalignedError:
                if misaligned is None:
                    raise
                return misaligned(arguments, pointers, stream)
            results = []
            for make, param in makes:
                array = make()
                table.cells[param].value = pointer_of(array)
                results.append(array)
            if mapped:
                maps(table)
            where = current() if stream is None else stream_handle(stream)
            config = config_of(where) or configured(where)
            status = enqueue(config, handle, table.reference, None)
            if status:
                function.again(status, config, table.reference)
            spare(table)
            if not results:
                results = [arguments[at] for at in outputs]
            return results[0] if len(results) == 1 else tuple(results)

        return run

    def prepared(self, arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Launch:
        """A launch on these arguments, all outputs among them, that costs little to repeat: on
        the given stream, or on the one that is current at each launch."""
        table = self._filled(pointers)
        self._map(table)
        function, reference = self._function, table.reference
        enqueue, handle, current = function.enqueue, function.handle, self._current
        config_of = self._configurations.references.get
        configured = self._configurations.reference
        held = table, tuple(arguments)  # what the launch reads stays alive

        def launch() -> None:
            where = current()
            config = config_of(where) or configured(where)
            status = enqueue(config, handle, reference, None)
            if status:
                function.again(status, config, held[0].reference)

        if stream is None:
            return launch
        return fixed(function, table, configured(stream_handle(stream)), arguments)

    def _map(self, table: Table) -> None:
        """Makes the maps of the arrays in a table."""
        for each in self._mapped:
            made = each.encoded(table.cells[each.array].value)
            ctypes.memmove(table.cells[each.param], made, len(made))

    def _misplaced(self, argument: int, pointer: int) -> DeviceError:
        found = next(each for each in self._passed if each.argument == argument)
        if not pointer:
            return DeviceError(f"'{found.name}' has no memory", advice="give a whole array")
        return MisalignedError(
            f"'{found.name}' does not start at a multiple of {found.alignment} bytes",
            advice="give a whole array, or a copy of the slice",
        )
