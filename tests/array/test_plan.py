"""Plans, run one statement after another, compute what the expression means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.array.execute import Execution
from tests.array.generate import Generator, random_type, random_value

from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Program
from warploom.array.plan.plan import as_stored, plan
from warploom.errors import UnsupportedError


def same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple):
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    return left.shape == right.shape and bool((left == right).all())


def lifted(value: Any) -> Any:
    return tuple(map(lifted, value)) if isinstance(value, tuple) else value[None]


def check(seed: int) -> bool:
    generator = Generator(seed)
    body = generator.term(random_type(generator.random), 3)
    program = Program("random", tuple(generator.inputs), body)
    random = np.random.default_rng(seed)
    values = [random_value(random, each.type) for each in program.inputs]
    wanted = evaluate(program, *values)
    try:
        made = plan(program)
    except UnsupportedError as error:
        refused = ("a fold reads other elements", "what is in private memory is read by a later")
        assert error.message.startswith(refused)  # noqa: PT017
        return False
    if as_stored(body.type) is not body.type:
        wanted = lifted(wanted)
    found = Execution(made, values).run()
    assert same(found, wanted), seed
    return True


def test_random_expressions() -> None:
    assert sum(map(check, range(100))) > 80


@pytest.mark.slow
def test_many_random_expressions() -> None:
    assert sum(map(check, range(1000, 3000))) > 1600
