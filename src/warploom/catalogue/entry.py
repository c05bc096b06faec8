"""What a kernel of the catalogue is: how it is built, what it must compute, and on which sizes.

An entry names its parameters with defaults. `kernel` builds; `case` makes random inputs of one size
and what the specification says of them; `agrees` runs a kernel on a case and compares. A new kernel
is one `Entry` in one file, named in the table of `catalogue/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError, nearest
from warploom.index.ir import whole_number
from warploom.kernel.dtype import DType, coded, decoded, f32
from warploom.kernel.ir import Kernel
from warploom.kernel.stored import stored_as
from warploom.kernel.wide import with_index
from warploom.machine.narrow import FORMATS
from warploom.machine.record import CUDA, Machine
from warploom.sketch.term.ir import Program

Parameter: TypeAlias = int | str
Parameters: TypeAlias = Mapping[str, Parameter]
Size: TypeAlias = Mapping[str, int]
Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = dict[str, Array | int | float]
Arrays: TypeAlias = dict[str, Array]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
Choose: TypeAlias = Callable[[Parameters, Size | None, Machine], dict[str, Parameter]]
Space: TypeAlias = Callable[[Parameters], Sequence[dict[str, Parameter]]]


@dataclass(frozen=True, slots=True)
class Fit:
    """What the shapes of the inputs say: scalars by name, and the shapes of the outputs."""

    scalars: Mapping[str, int]
    outputs: Shapes


@dataclass(frozen=True, slots=True)
class Case:
    """Arguments in the order of the kernel's parameters, outputs poisoned, and what they become."""

    size: Size
    arguments: tuple[Array | int | float, ...]
    expected: Arrays

    def fresh(self) -> list[Array | int | float]:
        """The arguments, arrays copied, so that a case can be run again and again."""
        return [each.copy() if isinstance(each, np.ndarray) else each for each in self.arguments]


def _as_given(settings: Parameters, size: Size | None, machine: Machine) -> dict[str, Parameter]:
    del size, machine
    return dict(settings)


def listed(settings: Iterable[Mapping[str, Parameter]]) -> Space:
    """A space that is the same whatever else is set."""
    known = tuple(dict(each) for each in settings)

    def space(given: Parameters) -> Sequence[dict[str, Parameter]]:
        del given
        return known

    return space


_nothing = listed(())


def _no_sketch(**_: Parameter) -> Program | None:
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """One kernel of the catalogue.

    All functions take the entry's parameters by name. `inputs(size, random, …)` gives every
    parameter of the kernel that is not an output, by name; `specification(values, …)` gives the
    outputs, by name, from those values, in plain NumPy. `sizes` are at least twenty, odd ones among
    them. `sketch(…)` is what the kernel is built from, None where it has no fill; `aliases` are
    other names of parameters. `fit(shapes, …)` reads the scalars off the shapes of the inputs, and
    says which shapes the outputs have; of arrays in `inner` only so many last axes matter, and what
    is in front of them may be done in any order. `choose(settings, size, machine)` decides what is
    left open, for a size if one is known. `tune(settings)` lists what is worth trying on a device.
    A `tolerance` of 0 means equal bits. An entry that `computes` does so in `float32` where its
    arrays hold codes (`kernel/stored.py`); one whose numbers only move moves bits. `stored` is
    their type where it is no parameter.
    """

    name: str
    doc: str
    parameters: Parameters
    build: Callable[..., Kernel]
    inputs: Callable[..., Values]
    specification: Callable[..., Arrays]
    sizes: Callable[..., list[dict[str, int]]]
    sketch: Callable[..., Program | None] = _no_sketch
    fit: Callable[..., Fit] | None = None
    inner: Mapping[str, int] = field(default_factory=dict)
    choose: Choose = _as_given
    aliases: Mapping[str, str] = field(default_factory=dict)
    tune: Space = _nothing
    variants: tuple[dict[str, Parameter], ...] = field(default=({},))
    tolerance: float = 0.0
    computes: bool = False
    stored: DType | None = None

    def with_index(self, index: DType) -> Entry:
        """The same kernel with indices of that type."""
        if index is DType.I32:
            return self
        build = self.build
        return replace(self, build=lambda **given: with_index(build(**given), index))

    def code(self, settings: Parameters) -> DType | None:
        """The type of arrays that hold codes, if they do."""
        named = settings.get("dtype")
        kind = self.stored or next((each for each in DType if each.value == named), None)
        return kind if kind is not None and kind.is_code else None

    def settings(
        self, given: Parameters, size: Size | None = None, machine: Machine = CUDA
    ) -> dict[str, Parameter]:
        """The given values, checked by name and kind, and all others, decided for a size."""
        return self.choose(
            checked(self.name, self.parameters, self._own_names(given)), size, machine
        )

    def _own_names(self, given: Parameters) -> Parameters:
        """The values by the entry's names of parameters, where some were given by another."""
        twice = [f"'{key}' and '{self.aliases[key]}'" for key in given if self.own_name(key) != key
                 and self.own_name(key) in given]  # fmt: skip
        if twice:
            raise CheckError(f"{twice[0]} are one parameter of '{self.name}'")
        return {self.own_name(key): value for key, value in given.items()}

    def own_name(self, key: str) -> str:
        return self.aliases.get(key, key)

    @property
    def has_sketch(self) -> bool:
        return self.sketch is not _no_sketch

    def kernel(self, **given: Parameter) -> Kernel:
        settings = self.settings(given)
        code = self.code(settings)
        if code is None or self.stored is not None or not self.computes:
            return self.build(**settings)
        return stored_as(self.build(**self._plain(settings)), code)

    def _plain(self, settings: Parameters) -> dict[str, Parameter]:
        """Settings for the numbers that codes stand for, or for their bits if they only move."""
        code = self.code(settings)
        if "dtype" not in settings or code is None:
            return dict(settings)
        return {**settings, "dtype": f32.value if self.computes else code.storage.name}

    def program(self, **given: Parameter) -> Program | None:
        """The sketch whose fill the kernel uses."""
        return self.sketch(**self.settings(given))

    def case(self, kernel: Kernel, size: Size, seed: int = 0, **given: Parameter) -> Case:
        """Random inputs of a size, laid out for the kernel, and the specification's outputs."""
        settings = self.settings(given)
        plain, code = self._plain(settings), self.code(settings)
        values = self.inputs(dict(size), np.random.default_rng(seed), **plain)
        if code is not None:
            codes = {name: _coded(each, code) for name, each in values.items()}
            values = {name: _decoded(codes[name], values[name], code) for name in values}
            expected = {
                name: np.asarray(_coded(each, code))
                for name, each in self.specification(values, **plain).items()
            }
            values = codes
        else:
            expected = self.specification(values, **plain)
        arguments = [
            poisoned(expected[param.name]) if param.name in expected else values[param.name]
            for param in kernel.params
        ]
        return Case(dict(size), tuple(arguments), expected)

    def agrees(self, kernel: Kernel, case: Case, arguments: list[Array | int | float]) -> bool:
        """Whether the arguments, after a run, hold what the specification says."""
        held = dict(zip((param.name for param in kernel.params), arguments, strict=True))
        kinds = {param.name: param.dtype for param in kernel.arrays}
        return all(
            isinstance(given := held[name], np.ndarray) and self._same(given, wanted, kinds[name])
            for name, wanted in case.expected.items()
        )

    def _same(self, given: Array, wanted: Array, dtype: DType) -> bool:
        if not dtype.is_code or not (self.computes or self.stored):
            return same(given, wanted, self.tolerance)
        close = max(self.tolerance, 2.0 ** -FORMATS[repr(dtype)].fraction_bits)
        return same(decoded(given, dtype), decoded(wanted, dtype), close)


def _coded(value: Array | int | float, code: DType) -> Array | int | float:
    """Numbers as codes; what is no floating-point number, or bits already, stays."""
    floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return coded(value, code) if floats else value  # type: ignore[arg-type]


def _decoded(
    code: Array | int | float, given: Array | int | float, dtype: DType
) -> Array | int | float:
    """What codes stand for, where they were made of numbers."""
    return code if code is given else decoded(np.asarray(code), dtype)


def checked(owner: str, parameters: Parameters, given: Parameters) -> dict[str, Parameter]:
    """The parameters with the given values in their places; a wrong name or kind is an error."""
    for name in given:
        if name not in parameters:
            raise CheckError(
                f"'{owner}' has no parameter '{name[:80]}'",
                advice=nearest(name, parameters, _listed(parameters)),
            )
    return {**parameters, **{name: _of_kind(name, value, type(parameters[name]))
                             for name, value in given.items()}}  # fmt: skip


def _of_kind(name: str, value: object, kind: type) -> Parameter:
    """The value as a parameter of that kind; whole numbers may be NumPy's."""
    found = whole_number(value) if kind is int else value
    if not isinstance(found, int | str) or type(found) is not kind:
        raise CheckError(
            f"'{name}' is {_article(kind)}, not {value!r:.80}",
            advice=f"write {name}=4" if kind is int else f"write {name}='…'",
        )
    return found


def poisoned(like: Array) -> Array:
    """An array of the same kind that holds nothing a kernel would compute by accident."""
    poison = np.nan if like.dtype.kind == "f" else np.iinfo(like.dtype).max - 1
    return np.full(like.shape, poison, like.dtype)


def same(given: Array, wanted: Array, tolerance: float) -> bool:
    """Equal bits, or a small difference relative to the largest number wanted."""
    flat = given.reshape(wanted.shape)
    if tolerance == 0.0 or wanted.dtype.kind != "f":  # integers have no rounding to forgive
        return bool(np.array_equal(flat, wanted))
    finite = np.isfinite(wanted)
    scale = float(np.max(np.abs(wanted), initial=0.0, where=finite)) or 1.0
    near = np.abs(flat.astype(np.float64) - np.where(finite, wanted, 0.0)) <= tolerance * scale
    return bool(np.all(np.where(finite, near, flat == wanted)))


def _article(kind: type) -> str:
    return "a whole number" if kind is int else "a word"


def _listed(parameters: Parameters) -> str:
    return "its parameters: " + (", ".join(parameters) or "none")
