"""Whether the iterations of a loop access neighbouring numbers, so that several can be one
access."""

from __future__ import annotations

from warploom.array.plan.loops import Loop, Plan, Write, guards_of, reads_of
from warploom.array.plan.view import Part, Path
from warploom.index.ir import Expr, Var, variables
from warploom.index.polynomial import Normal, Quotient


def is_consecutive(plan: Plan, loop: Loop) -> bool:
    """The loop only moves or computes numbers one by one, and in memory that threads share it steps
    from each to the next, or stays where it is."""
    if len(loop.body) != 1 or not isinstance(loop.body[0], Write):
        return False
    write = loop.body[0]
    counter = loop.counter
    if any(counter in variables(each) for each in write.conditions):
        return False
    private = {each.memory for each in plan.buffers if each.space == "private"}
    steps = [] if write.memory in private else [step(write.path, counter)]
    if steps == [0]:
        return False  # every iteration would store to one place
    if any(counter in variables(condition) for condition in guards_of(write.value)):
        return False
    read = (each for each in reads_of(write.value) if each.memory not in private)
    steps += [step(each.path, counter) for each in read]
    return 1 in steps and set(steps) <= {0, 1}


def step(path: Path, counter: str) -> int | None:
    """How far a path moves from one iteration to the next: in its last index; None if not so
    simply."""
    moving = [
        at
        for at, each in enumerate(path)
        if not isinstance(each, Part) and counter in variables(each)
    ]
    if not moving:
        return 0
    last = path[-1]
    if moving != [len(path) - 1] or isinstance(last, Part):
        return None
    return coefficient(last, counter)


def coefficient(index: Expr, counter: str) -> int | None:
    """By how much an index grows with a counter, if always by the same."""
    bounds = dict.fromkeys(variables(index), (0, 2**31 - 1))
    normal = Normal(bounds)
    polynomial = normal.of(index)
    (own,) = normal.of(Var(counter)).atoms()
    result = 0
    for monomial, factor in polynomial.terms.items():
        if own in monomial:
            if monomial != (own,):
                return None
            result = factor
        elif any(_mentions(normal, atom, counter) for atom in monomial):
            return None
    return result


def _mentions(normal: Normal, atom: int, counter: str) -> bool:
    node = normal.atoms[atom]
    if isinstance(node, Quotient):
        inside = node.value.atoms() | node.divisor.atoms()
        return any(_mentions(normal, each, counter) for each in inside)
    return counter in variables(node)
