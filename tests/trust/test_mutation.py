"""The mutation check: wrong kernels are caught, and a verification with a hole is found out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.catalogue import entries, find
from warploom.catalogue.verify import mutation
from warploom.errors import UnsupportedError, WarploomError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Var, select, variables
from warploom.kernel.build import Builder, ceil_div
from warploom.kernel.dtype import i32
from warploom.kernel.evaluate import run
from warploom.kernel.ir import Kernel
from warploom.trust.mutation import Fate, Trial, changes, examine, joined, mutants

x, y = Var("x"), Var("y")


def reversed_rows() -> Kernel:
    """y[i] = x[n - 1 - i]."""
    k = Builder("reversed", block=32)
    n = k.scalar("n")
    source, target = k.array("x", i32, n, const=True), k.array("y", i32, n)
    k.grid(ceil_div(n, 32))
    v = k.register("v", i32)
    i = k.let("i", k.block_x * 32 + k.thread)
    k.set(v, source.at(n - 1 - i, when=i.lt(n)))
    target.put(i, v, when=i.lt(n))
    return k.done()


def trial(n: int, *, constant: bool = False) -> Trial:
    """A run on n numbers; all alike, they hide where they come from."""
    data = np.full(n, 3, np.int32) if constant else np.arange(n, dtype=np.int32)

    def attempt(kernel: Kernel) -> str:
        out = np.full(n, -1, np.int32)
        try:
            run(kernel, [n, data, out])
        except WarploomError as error:
            return error.message
        return "" if np.array_equal(out, data[::-1]) else "wrong"

    return attempt


def test_all_mutants_that_matter_are_caught() -> None:
    report = examine(reversed_rows(), [trial(n) for n in (1, 31, 32, 33, 64, 70)], [trial(5)])
    assert report.changing == report.count(Fate.CAUGHT) > 20
    assert report.survivors == ()
    assert any("elements, but thread" in each.reason for each in report.examined)


def test_a_hole_in_the_verification_is_found() -> None:
    weak = [trial(32, constant=True)]
    report = examine(reversed_rows(), weak, [trial(n) for n in (1, 31, 33)])
    assert report.survivors
    assert report.as_dict()["survived"]


def test_a_mutant_that_computes_the_same_is_no_survivor() -> None:
    report = examine(reversed_rows(), [trial(n) for n in (31, 32, 33)], [trial(64)])
    more = [each for each in report.examined if each.mutant.rule == "one block more"]
    assert [each.fate for each in more] == [Fate.EQUAL]


def test_a_kernel_that_fails_itself_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match="fails a trial itself"):
        examine(reversed_rows(), [lambda _: "no"])


def test_mutants_differ_from_the_kernel_and_can_be_drawn() -> None:
    kernel = reversed_rows()
    found = list(mutants(kernel))
    assert all(each.kernel != kernel for each in found)
    assert len({each.kernel for each in found}) == len(found)
    drawn = examine(kernel, [trial(33)], [trial(31)], most=7)
    assert len(drawn.examined) == 7


@pytest.mark.parametrize(
    "expr", [x + 3, x - y, x * 4 + y, x // 3 % 5, (x % 8).lt(y), select(x.lt(3), y, 2)]
)
def test_changes_are_other_expressions(expr: Any) -> None:
    found = dict(changes(expr)), [changed for _, changed in changes(expr)]
    assert expr not in found[1]
    assert len(set(found[1])) == len(found[1]) >= 4
    assert all(variables(changed) <= {"x", "y"} for changed in found[1])
    grid = {"x": np.arange(20)[:, None], "y": np.arange(1, 20)[None]}
    told_apart = 0
    for changed in found[1]:
        try:
            values = evaluate(changed, grid)
        except WarploomError:
            told_apart += 1
            continue
        told_apart += not np.array_equal(
            np.broadcast_to(values, (20, 19)), np.broadcast_to(evaluate(expr, grid), (20, 19))
        )
    assert told_apart >= len(found[1]) - 1


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("aos-to-soa", {"fields": 3, "block": 32, "tiles": 1}),
        ("soa-to-aos", {"fields": 2, "width": 1, "block": 32, "tiles": 1, "order": "rcr"}),
        ("aos-sum", {"fields": 6, "block": 32, "tiles": 1}),
        ("transposition", {"m": 5, "n": 3, "block": 32, "tiles": 1}),
    ],
)
def test_some_mutants_of_the_catalogue(name: str, variant: dict[str, Any]) -> None:
    report = mutation(find(name), variant, most=25)
    assert report.survivors == ()
    assert report.count(Fate.CAUGHT) > 10


def test_shares_of_several_processes_are_one_examination() -> None:
    entry = find("aos-to-soa")
    settings: dict[str, int | str] = {"fields": 2, "block": 32, "tiles": 1}
    whole = mutation(entry, settings, most=5)
    shares = [mutation(entry, settings, most=5, share=(number, 3)) for number in range(3)]
    assert [len(each.examined) for each in shares] == [2, 2, 1]
    assert joined(shares).as_dict() == whole.as_dict()
    assert [str(each.mutant) for each in joined(shares).examined] == [
        str(each.mutant) for each in whole.examined
    ]


# The same index expressions with fewer threads, or fewer iterations of a loop, to simulate.
SMALLER: dict[str, dict[str, Any]] = {
    "convolution-2d": {"rows": 4, "block": 32},
    **{name: {"block": 64} for name in ("aos-to-soa", "soa-to-aos", "aos-sum", "transposition")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", entries())
def test_all_mutants_of_the_catalogue(name: str) -> None:
    report = mutation(find(name), SMALLER.get(name, {}))
    assert report.survivors == (), [str(each.mutant) for each in report.survivors]
    assert report.count(Fate.CAUGHT) > 20
