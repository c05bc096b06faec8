"""A plan with symbolic sizes and numbers for them → the plan with numbers, its indices simplified.

Guards and conditions that hold for all iterations go; what is written nowhere goes too. So a
program is planned once, and every choice of tile sizes is put into the same plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from warploom.array.language.ir import Param
from warploom.array.language.size import value_of
from warploom.array.plan import loops
from warploom.array.plan.view import Part, Path
from warploom.array.types import type_with
from warploom.index.ir import Const, Expr, substitute
from warploom.kernel.ir import Choose, Value
from warploom.kernel.traverse import map_value
from warploom.schedule.context import FALSE, TRUE, Bounds, simpler


def numbered(plan: loops.Plan, sizes: Mapping[str, int]) -> loops.Plan:
    """The plan with these sizes; conditions on them are those that `bind.py` checks."""
    memories = {
        each.memory: Param(each.memory.name, type_with(each.memory.type, sizes))
        for each in plan.buffers
    }
    putting = _Putting(dict(sizes), memories)
    return loops.Plan(
        plan.program,
        tuple(replace(each, memory=memories[each.memory]) for each in plan.buffers),
        tuple(loops.Stage(tuple(putting.nodes(stage.body, {}))) for stage in plan.stages),
        memories[plan.output],
    )


@dataclass(frozen=True, slots=True)
class _Putting:
    sizes: dict[str, int]
    memories: dict[Param, Param]

    def nodes(self, body: tuple[loops.Node, ...], bounds: Bounds) -> Iterator[loops.Node]:
        for node in body:
            if isinstance(node, loops.Write):
                made = self.write(node, bounds)
                if made is not None:
                    yield made
                continue
            size = value_of(node.size, self.sizes)
            inner = {**bounds, node.counter: (0, size - 1)}
            yield replace(node, size=Const(size), body=tuple(self.nodes(node.body, inner)))

    def write(self, node: loops.Write, bounds: Bounds) -> loops.Write | None:
        conditions = [self.expr(each, bounds) for each in node.conditions]
        if FALSE in conditions:
            return None
        return loops.Write(
            self.memories[node.memory],
            self.path(node.path, bounds),
            tuple(each for each in conditions if each is not TRUE),
            self.value(node.value, bounds),
        )

    def expr(self, expr: Expr, bounds: Bounds) -> Expr:
        return simpler(substitute(expr, self.sizes), bounds)

    def path(self, path: Path, bounds: Bounds) -> Path:
        return tuple(s if isinstance(s, Part) else self.expr(s, bounds) for s in path)

    def value(self, value: Value, bounds: Bounds) -> Value:
        def found(each: Value) -> Value:
            match each:
                case loops.Read(_, _, dtype, memory, path):
                    return loops.read(self.memories[memory], self.path(path, bounds), dtype)
                case Choose(condition, then, otherwise) if condition in (TRUE, FALSE):
                    return then if condition is TRUE else otherwise
            return each

        return map_value(value, lambda expr: self.expr(expr, bounds), found)


def loop_size(loop: loops.Loop) -> int:
    """The iterations of a loop of a plan with numbers."""
    assert isinstance(loop.size, Const)
    return loop.size.value
