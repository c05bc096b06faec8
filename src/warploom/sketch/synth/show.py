"""How a fill prints: each hole, the gather chosen for it, and what that reads as arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warploom.errors import CheckError, located
from warploom.index.show import show
from warploom.sketch.synth.fills import Fills
from warploom.sketch.term.ir import Apply, GatherExpr, Program

if TYPE_CHECKING:
    from warploom.sketch.synth.result import Result

WIDEST_INDEX = 100


@located
def show_fill(result: Result, number: int = 0, indent: str = "") -> str:
    """One line for each hole. `x.flat[…]` is the value `x` as a flat array, x0, x1, … are the
    coordinates of the cell that is computed."""
    if not hasattr(result, "fills"):  # a Result shows itself by this module
        raise CheckError(
            f"what is shown is a Result, not a {type(result).__name__}",
            advice="give what synthesize found",
        )
    if isinstance(number, bool) or not isinstance(number, int):
        raise CheckError(f"a fill is given by its number, not by {number!r:.40}")
    if not 0 <= number < len(result.fills):
        raise CheckError(
            f"there is no fill number {number}: {len(result.fills)} are listed, counted from 0",
            advice="synthesize(…, mode='all') lists more than one",
        )
    return fill_text(result.program, result.fills, number, indent)


def fill_text(program: Program, fills: Fills, number: int, indent: str = "") -> str:
    """`show_fill` for a program and its fills."""
    rows = list(_choices(program, fills, number))
    names = max((len(name) for name, _, _ in rows), default=0)
    texts = max((len(text) for _, text, _ in rows), default=0)
    lines = [f"{indent}{name:<{names}}  {text:<{texts}}  {index}" for name, text, index in rows]
    return "\n".join(lines)


def _choices(program: Program, fills: Fills, number: int) -> Iterator[tuple[str, str, str]]:
    for hole, choice in fills.as_dict(number).items():
        step = program.steps[hole]
        assert isinstance(step, Apply)
        sources = [program.steps[arg].name for arg in step.args]
        read = show_index(step.gathers.expression(choice), sources)
        short = read if len(read) <= WIDEST_INDEX else read[: WIDEST_INDEX - 1] + "…"
        yield step.name, step.gathers.describe(choice), short


def show_index(gather: GatherExpr, sources: list[str]) -> str:
    """`x.flat[5 * x0 + x1]`: which argument is read, and where; zero comes after the last."""
    argument, offset = show(gather.argument), show(gather.offset)
    if len(sources) == 1 and argument == "0":
        return f"{sources[0]}.flat[{offset}]"
    parts = ", ".join(f"{source}.flat[{offset}]" for source in sources)
    return f"({parts}, 0)[{argument}]"
