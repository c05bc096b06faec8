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
from warploom.array.plan.view import Guard, Part, Path
from warploom.array.types import type_with
from warploom.index.ir import Const, Expr, substitute, variables
from warploom.index.laws import simplify
from warploom.index.ranges import range_of

Ranges = Mapping[str, tuple[int, int]]
TRUE, FALSE = Const(1), Const(0)


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


def simpler(expr: Expr, ranges: Ranges) -> Expr:
    """An equal expression; one that has a single value is that value."""
    made = simplify(expr, ranges)
    if not isinstance(made, Const) and variables(made) <= ranges.keys():
        known = range_of(made, ranges)
        if known.low == known.high:
            return Const(known.low)
    return made


@dataclass(frozen=True, slots=True)
class _Putting:
    sizes: dict[str, int]
    memories: dict[Param, Param]

    def nodes(self, body: tuple[loops.Node, ...], ranges: Ranges) -> Iterator[loops.Node]:
        for node in body:
            if isinstance(node, loops.Write):
                made = self.write(node, ranges)
                if made is not None:
                    yield made
                continue
            size = value_of(node.size, self.sizes)
            inner = {**ranges, node.counter: (0, size - 1)}
            yield replace(node, size=Const(size), body=tuple(self.nodes(node.body, inner)))

    def write(self, node: loops.Write, ranges: Ranges) -> loops.Write | None:
        conditions = [self.expr(each, ranges) for each in node.conditions]
        if FALSE in conditions:
            return None
        return loops.Write(
            self.memories[node.memory],
            self.path(node.path, ranges),
            tuple(each for each in conditions if each is not TRUE),
            self.value(node.value, ranges),
        )

    def expr(self, expr: Expr, ranges: Ranges) -> Expr:
        return simpler(substitute(expr, self.sizes), ranges)

    def path(self, path: Path, ranges: Ranges) -> Path:
        return tuple(s if isinstance(s, Part) else self.expr(s, ranges) for s in path)

    def value(self, value: loops.Value, ranges: Ranges) -> loops.Value:
        match value:
            case loops.Read(memory, path, guards, dtype):
                kept = self.guards(guards, ranges)
                if kept and kept[0].condition is FALSE:
                    return loops.Fixed(kept[0].value, (), dtype)
                return loops.Read(self.memories[memory], self.path(path, ranges), kept, dtype)
            case loops.Fixed(number, guards, dtype):
                return loops.Fixed(number, self.guards(guards, ranges), dtype)
            case loops.Operated(op, operands):
                return loops.Operated(op, tuple(self.value(each, ranges) for each in operands))
            case loops.Chosen(op, left, right, then, otherwise):
                made = [self.value(each, ranges) for each in (left, right, then, otherwise)]
                return loops.Chosen(op, made[0], made[1], made[2], made[3])
            case loops.Converted(dtype, inner):
                return loops.Converted(dtype, self.value(inner, ranges))

    def guards(self, guards: tuple[Guard, ...], ranges: Ranges) -> tuple[Guard, ...]:
        made = [Guard(self.expr(each.condition, ranges), each.value) for each in guards]
        return tuple(each for each in made if each.condition is not TRUE)


def loop_size(loop: loops.Loop) -> int:
    """The iterations of a loop of a plan with numbers."""
    assert isinstance(loop.size, Const)
    return loop.size.value
