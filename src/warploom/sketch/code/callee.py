"""The exchange of a sketch as a function: what is loaded before it, what it makes, and their names.

Loads are taken out of the steps that need them and come first; the function is left with
registers alone, those that were loaded and those that will be stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from warploom.errors import UnsupportedError
from warploom.index.ir import Expr
from warploom.index.show import show
from warploom.kernel.build import Builder
from warploom.kernel.function import function_of
from warploom.kernel.ir import Kernel, Registers, Stmt
from warploom.kernel.names import Fresh, names_of, renamed
from warploom.sketch.term.ir import Apply, Literal

CALL = "call_"  # what the name of a kernel begins with that calls a function


@dataclass(slots=True, eq=False)
class Callee:
    """A function on its way into a kernel; `own` is a thread's lane in the kernel that calls."""

    k: Builder
    own: Expr
    loads: list[Stmt] = field(default_factory=list)
    steps: list[Stmt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def says(self, registers: str, verb: str, array: str, place: Expr) -> None:
        """For the header: what lies in which register, as an element of a tile of an array."""
        self.notes.append(f"Register x1 of '{registers}' in lane x0 {verb} {array}[{show(place)}].")

    @contextmanager
    def inside(self) -> Iterator[None]:
        with self.k.collected() as steps:
            yield
        self.steps = steps

    @contextmanager
    def loading(self) -> Iterator[None]:
        with self.k.collected() as stmts:
            yield
        self.loads += stmts

    def add(self, result: str, last: Apply | Literal) -> None:
        """Loads, the registers of the result, and the function."""
        made = [s for s in self.steps if isinstance(s, Registers) and s.name == result]
        if not made:
            raise UnsupportedError(
                f"'{last.name}' is loaded and stored, and nothing is exchanged or computed",
                last.span,
                "a function needs a hole or a fold; ask for a kernel",
            )
        self.k.extend((*self.loads, *made))
        with self.k.function(self.name):
            self.k.extend(tuple(s for s in self.steps if s not in made))

    @property
    def name(self) -> str:
        return self.k.name.removeprefix(CALL)

    def named(self, kernel: Kernel, names: Mapping[str, str]) -> Kernel:
        """The kernel in which the function's registers have the names of the sketch."""
        fresh = Fresh(names_of(kernel))
        new: dict[str, str] = {}
        for registers in function_of(kernel).registers:
            plain = re.sub(r"\W", "_", names.get(registers.name, registers.name), flags=re.ASCII)
            plain = plain if plain[:1].isalpha() else f"r_{plain}"
            new[registers.name] = fresh.name(
                plain if fresh.is_free(plain) else f"{plain}_registers"
            )
        kernel = renamed(kernel, new)
        return replace(kernel, doc="\n".join([kernel.doc, *self.notes]))
