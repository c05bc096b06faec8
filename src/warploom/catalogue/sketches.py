"""The catalogue's sketches from which no kernel is built: a name and sizes in, programs out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature

from warploom.catalogue import texts
from warploom.catalogue.entry import Parameter, Parameters, checked
from warploom.errors import CheckError
from warploom.sketch.front import load_text
from warploom.sketch.term.ir import Program

LARGEST = 4096
LEVELS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class SketchOnly:
    """`text` gives the sketch by its sizes; `kernel` names the entry that computes the like."""

    name: str
    doc: str
    text: Callable[..., str]
    kernel: str = ""

    @property
    def parameters(self) -> Parameters:
        """The sizes with their defaults."""
        return {name: each.default for name, each in signature(self.text).parameters.items()}

    @property
    def has_sketch(self) -> bool:
        return True

    def program(self, **given: Parameter) -> Program:
        sizes = checked(self.name, self.parameters, given)
        check_sizes(self.name, {key: value for key, value in sizes.items() if key != "level"})
        check_level(self.name, sizes.get("level", 1), LEVELS)
        return load_text(self.text(**sizes), self.name)


def check_sizes(name: str, sizes: Mapping[str, Parameter]) -> None:
    """A size beyond all use is refused before anything is built."""
    for key, value in sizes.items():
        if isinstance(value, int) and not 1 <= value <= LARGEST:
            raise CheckError(f"'{name}': {key}={value} is not between 1 and {LARGEST}")


def check_level(name: str, level: Parameter, levels: tuple[int, ...] = (0, *LEVELS)) -> None:
    """Refuses an unknown level: 0 is the default of an entry's kernel, 1 to 3 are published."""
    if level not in levels:
        listed = ", ".join(map(str, levels[:-1]))
        raise CheckError(f"'{name}': the level is {listed} or {levels[-1]}, not {level}")


def _rcr(columns: int = 5, rows: int = 32, level: int = 3) -> str:
    return texts.transposition("rcr", columns, level, rows)


def _sums(columns: int = 5, rows: int = 32, level: int = 3) -> str:
    return texts.transposition("cr", columns, level, rows)


def _stencil(taps: int = 3, lanes: int = 32, level: int = 3) -> str:
    return texts.stencil_1d(taps, level, lanes)


def _convolution(taps: int = 3, lanes: int = 32, level: int = 3) -> str:
    return texts.convolution_1d(taps, level, lanes)


def _stencil_2d(taps: int = 3, side: int = 4, level: int = 3) -> str:
    return texts.stencil_2d(taps, level, side)


def _product(width: int = 4, level: int = 1) -> str:
    return texts.multiplication_narrow(level, width)


def _gaussian(lanes: int = 8) -> str:
    return texts.gaussian_hvx(lanes)


SKETCHES = (
    SketchOnly(
        "transposition-rcr",
        "a matrix transposed in registers, across lanes first",
        _rcr,
        "transposition --set order=rcr",
    ),
    SketchOnly("sums", "row sums of a column-major matrix", _sums, "aos-sum"),
    SketchOnly("stencil", "sums of neighbours along a line", _stencil, "stencil-1d"),
    SketchOnly(
        "convolution", "weighted sums of neighbours along a line", _convolution, "convolution-1d"
    ),
    SketchOnly("stencil-2d", "sums of neighbours in a plane", _stencil_2d, "convolution-2d"),
    SketchOnly("product", "a product of polynomials", _product, "product-registers"),
    SketchOnly("gaussian", "a Gaussian by instructions on HVX vector registers", _gaussian),
)
