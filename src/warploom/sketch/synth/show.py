"""How a fill prints: each hole, the gather chosen for it, and what that reads as arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.index.show import show
from warploom.sketch.synth.result import Result
from warploom.sketch.term.ir import Apply, GatherExpr

WIDEST_INDEX = 100


def show_fill(result: Result, number: int = 0, indent: str = "") -> str:
    """One line for each hole. `x.flat[…]` is the value `x` as a flat array, x0, x1, … are the
    coordinates of the cell that is computed."""
    rows = list(_choices(result, number))
    names = max((len(name) for name, _, _ in rows), default=0)
    texts = max((len(text) for _, text, _ in rows), default=0)
    lines = [f"{indent}{name:<{names}}  {text:<{texts}}  {index}" for name, text, index in rows]
    return "\n".join(lines)


def _choices(result: Result, number: int) -> Iterator[tuple[str, str, str]]:
    for hole, choice in result.fills.as_dict(number).items():
        step = result.program.steps[hole]
        assert isinstance(step, Apply)
        sources = [result.program.steps[arg].name for arg in step.args]
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
