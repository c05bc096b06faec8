"""Candidates of a convolution drawn in several ways: what `curves.py` runs in processes of its
own."""

from __future__ import annotations

import random
from functools import cache

from bench.array.tasks import planned
from bench.common.narrowed import answer

from warploom.array.code.program import Candidate
from warploom.array.joint.model import JointModel
from warploom.array.joint.promising import promising
from warploom.array.mapping.constraint import Constraints, broken
from warploom.array.mapping.fusion import Fusion
from warploom.array.mapping.sound import sound
from warploom.array.mapping.tree import map_tree
from warploom.array.workload import Convolution
from warploom.machine.record import H200

SEED = 5
AMONG = 4000
MEMORY = 1 << 30  # bytes between kernels
WAYS: dict[str, Fusion] = {
    "solver, fusion as meant": "intended",
    "solver, fusion as coded": "coded",
    "solver, no fusion rule": "none",
}
BY_MODEL = "model of iterations"


def drawn(way: str, layer: Convolution, count: int) -> list[Candidate]:
    """Uniformly, or the most promising of many."""
    program, made = planned("convolution")
    fusion = WAYS.get(way, "intended")
    model = JointModel(program, layer.sizes(), H200, fusion, plan=made, memory=MEMORY)
    outcome = promising(model, count, AMONG, SEED) if way == BY_MODEL else model.sample(count, SEED)
    return answer(outcome)


@cache
def _rules() -> list[Constraints]:
    _, made = planned("convolution")
    return [sound(map_tree(made, at)) for at in range(len(made.stages))]


def valid_at_random(seed: int, count: int) -> int:
    """Of mappings drawn without a solver, map by map, those that obey all rules."""
    chance, rules = random.Random(seed), _rules()
    choices = [{m: sorted(runs) for m, runs in each.choices.items()} for each in rules]
    return sum(
        all(
            not broken(each, {m: chance.choice(runs) for m, runs in own.items()})
            for each, own in zip(rules, choices, strict=True)
        )
        for _ in range(count)
    )
