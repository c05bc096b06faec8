"""One use of a built-in function: its name, options and shapes, and how to ask for them.

Every question that can be answered wrongly by a user ends here, in one CheckError without a span;
the caller knows the place in the text and fills it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from warploom.errors import CheckError, OptionError
from warploom.search.budget import governing_budget
from warploom.sketch.term.gather import Shape, size

Option: TypeAlias = int | tuple[int, ...] | None

# The most memory one set may take while it is enumerated.
LIMIT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """`function{options}(arguments of arg_shapes)` giving `out_shape`, fold dimension included."""

    function: str
    options: Mapping[str, Option]
    arg_shapes: tuple[Shape, ...]
    out_shape: Shape

    @property
    def in_shape(self) -> Shape:
        """The shape of the only argument."""
        if len(self.arg_shapes) != 1:
            self.fail(
                f"{self.function} takes 1 argument, got {len(self.arg_shapes)}",
                "use stack to join several arrays into one first",
            )
        return self.arg_shapes[0]

    @property
    def cells(self) -> int:
        return size(self.out_shape)

    def fail(self, message: str, advice: str = "", option: str = "") -> NoReturn:
        """`option` is the one that is wrong, if it is one that was given."""
        if option:
            raise OptionError(message, None, advice, option)
        raise CheckError(message, advice=advice)

    def mismatch(self, what: str, expected: object, got: object, advice: str = "") -> NoReturn:
        self.fail(f"{self.function}: {what} must be {_text(expected)}, got {_text(got)}", advice)

    def flag(self, name: str) -> bool:
        """Whether the bare option `name` is there."""
        if self.options.get(name) is not None:
            message = f"{self.function}: option {name} takes no value"
            self.fail(message, f"write {name} alone", name)
        return name in self.options

    def maybe_number(self, name: str) -> int | None:
        if name not in self.options:
            return None
        value = self.options[name]
        if not isinstance(value, int):
            message = f"{self.function}: option {name} needs one number"
            self.fail(message, f"write {name}=1, say", name)
        return value

    def number(self, name: str) -> int:
        value = self.maybe_number(name)
        if value is None:
            advice = f"add {name}=…, in a text inside {{ }}"
            self.fail(f"{self.function} needs the option {name}", advice)
        return value

    def maybe_numbers(self, name: str) -> tuple[int, ...] | None:
        if name not in self.options:
            return None
        value = self.options[name]
        if not isinstance(value, tuple):
            message = f"{self.function}: option {name} needs a list"
            self.fail(message, f"write {name}=[0,1], say", name)
        return value

    def pairs(self, name: str) -> tuple[tuple[int, int], ...]:
        """The option `[a,b,a,b,…]` as pairs; none if it is absent."""
        flat = self.maybe_numbers(name) or ()
        if len(flat) % 2:
            self.fail(
                f"{self.function}: option {name} needs an even count of numbers, got {len(flat)}",
                f"{name} is a list of pairs, [a,b,a,b]",
                name,
            )
        return tuple(zip(flat[::2], flat[1::2], strict=True))

    def below(self, value: int, limit: int, what: str, option: str) -> int:
        """`value`, if it counts something of which there are `limit`."""
        if not 0 <= value < limit:
            message = f"{self.function}: {what} {value} is out of range"
            self.fail(message, f"use 0 to {limit - 1}", option)
        return value

    def axis(self, name: str, rank: int) -> int:
        return self.below(self.number(name), rank, f"option {name}: axis", name)

    def agree_but_for(self, axis: int) -> None:
        """Argument and output shapes must be equal, `axis` apart."""
        expected, got = list(self.in_shape), list(self.out_shape)
        if len(expected) == len(got):
            expected[axis] = got[axis]
        if expected != got:
            self.mismatch(
                f"the output shape (all but axis {axis})",
                tuple(self.in_shape),
                self.out_shape,
                "reshape or broadcast the argument first",
            )

    def same_shape(self) -> None:
        if self.in_shape != self.out_shape:
            self.mismatch("the output shape", self.in_shape, self.out_shape, "reshape it first")

    def afford(self, candidates: int, bytes_each: int, advice: str) -> None:
        """Refuses a set before any of it is allocated, if it would not fit."""
        governing_budget().room_for(candidates * bytes_each)
        if candidates * bytes_each > LIMIT_BYTES:
            self.fail(
                f"{self.function} on {_text(self.in_shape)} → {_text(self.out_shape)} is too large:"
                f" {_count(candidates)} candidates of {_count(bytes_each)} bytes",
                advice,
            )


def _text(value: object) -> str:
    return "[" + ",".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)


def _count(number: int) -> str:
    """A number a person can read, however large."""
    if number < 10_000_000:
        return str(number)
    digits = (number.bit_length() * 1233) >> 12  # log10, without building a huge decimal text
    return f"about 1e{digits}"
