"""Views against the evaluator: the element at a path is the element that the index names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import present
from tests.array.chains import Chains
from tests.sampled import rounds

from warploom.array import build as al
from warploom.array.language.evaluate import evaluate
from warploom.array.language.ir import Param, Program, Term
from warploom.array.language.size import divisions, value_of
from warploom.array.plan.element import Stored, element_of, landing
from warploom.array.plan.known import Known
from warploom.array.plan.view import NoViewError, Part, Path
from warploom.array.types import Array, Tuple, Type, Vector, array, shape
from warploom.index.evaluate import evaluate as evaluate_index
from warploom.index.ir import Const, Expr, Var
from warploom.index.show import show
from warploom.kernel.dtype import f32, i32


def paths(type_: Type, number: int = 0) -> Iterator[tuple[Path, dict[str, Expr]]]:
    """Every way to an element, with a counter for each array and lane, and what it lies below."""
    match type_:
        case Array(element, size):
            for path, counters in paths(element, number + 1):
                yield (Var(f"i{number}"), *path), {f"i{number}": size, **counters}
        case Tuple(parts):
            for at, part in enumerate(parts):
                for path, counters in paths(part, number):
                    yield (Part(at), *path), counters
        case Vector(_, width):
            yield (Var(f"i{number}"),), {f"i{number}": Const(width)}
        case _:
            yield (), {}


def at_path(value: Any, path: Path, env: dict[str, Any]) -> Any:
    """The elements at a path, for all iterations at once."""
    for step in path:
        value = value[step.number] if isinstance(step, Part) else value
    indices = tuple(np.asarray(evaluate_index(s, env)) for s in path if not isinstance(s, Part))
    return value[indices] if indices else value


def index_of(step: Expr | Part) -> Expr:
    assert not isinstance(step, Part)
    return step


def spread(expr: Expr, env: dict[str, Any], count: int) -> np.ndarray:
    return np.broadcast_to(np.asarray(evaluate_index(expr, env)), (count,))


def iterations(counters: dict[str, Expr], values: dict[str, int]) -> dict[str, Any]:
    ranges = [np.arange(value_of(size, values)) for size in counters.values()]
    grids = np.meshgrid(*ranges, indexing="ij") if ranges else []
    return {**values, **{n: g.reshape(-1) for n, g in zip(counters, grids, strict=True)}}


def known_for(chains: Chains, counters: dict[str, Expr], types: list[Type]) -> Known:
    exact = [pair for type_ in types for size in shape(type_) for pair in divisions(size)]
    return Known(counters, exact)


def input_of(chains: Chains, hole: Param) -> np.ndarray:
    sizes = [chains.number(size) for size in shape(hole.type)]
    return np.arange(np.prod(sizes), dtype=np.int32).reshape(sizes)


def check_read(seed: int) -> int:
    chains = Chains(seed, writable=False, most=120)
    hole, term = chains.chain(5)
    x = input_of(chains, hole)
    value = evaluate(Program("chain", (hole,), term), x, **chains.values)
    seen = 0
    for path, counters in paths(term.type):
        known = known_for(chains, counters, [hole.type, term.type])
        found = element_of(term, path, known)
        assert isinstance(found, Stored)
        env = iterations(counters, chains.values)
        wanted = np.atleast_1d(at_path(value, path, env))
        kept = np.ones(wanted.shape, bool)
        for guard in found.guards:
            passes = spread(guard.condition, env, wanted.size) != 0
            assert (wanted[kept & ~passes] == guard.value).all(), seed
            kept &= passes
        index = [spread(index_of(step), env, wanted.size)[kept] for step in found.path]
        assert all((at >= 0).all() for at in index), seed
        assert (x[tuple(index)] == wanted[kept]).all(), seed
        seen += wanted.size
    return seen


def test_the_index_names_the_element() -> None:
    count = rounds(60)
    assert sum(map(check_read, range(count))) > 16 * count


@pytest.mark.slow
def test_the_index_names_the_element_of_many_chains() -> None:
    assert sum(map(check_read, range(1000, 2500))) > 20_000


def check_write(seed: int) -> int:
    chains = Chains(seed, writable=True)
    hole, term = chains.chain(5)
    x = input_of(chains, hole)
    value = evaluate(Program("chain", (hole,), term), x, **chains.values)
    ((path, counters),) = paths(hole.type)
    known = known_for(chains, counters, [hole.type, term.type])
    landed = landing(term, hole, path, known)
    assert landed is not None
    env = iterations(counters, chains.values)
    kept = np.ones(x.size, bool)
    for condition in landed.conditions:
        kept &= spread(condition, env, x.size) != 0
    chosen = {n: v[kept] if n in counters else v for n, v in env.items()}
    there = np.broadcast_to(at_path(value, landed.path, chosen), kept.sum())
    assert (there == x.reshape(-1)[kept]).all(), seed
    met = set(there.tolist())
    leaves = np.asarray(value).reshape(-1)
    assert met == set(leaves.tolist()), seed
    assert len(met) == len(leaves)
    return len(met)


def test_what_is_written_lands_where_the_element_is() -> None:
    count = rounds(60)
    assert sum(map(check_write, range(count))) > 8 * count


@pytest.mark.slow
def test_what_is_written_lands_in_many_chains() -> None:
    assert sum(map(check_write, range(1000, 3000))) > 10_000


# -- how they look ---------------------------------------------------------------------------------

n, c, d = al.sizes("n c d")
X = Param("x", array(f32, n))
EXACT = [(n, c), (c, d)]


def read(term: Term, *path: Expr, **counters: Expr) -> str:
    found = element_of(term, path, Known(counters, EXACT))
    assert isinstance(found, Stored)
    guards = "".join(f" if {show(guard.condition)}" for guard in found.guards)
    return ", ".join(show(index_of(step)) for step in found.path) + guards


def test_symbolic_indices_are_short() -> None:
    i, j, k = Var("i"), Var("j"), Var("k")
    assert read(al.split(c, X), i, j, i=n // c, j=c) == "i * c + j"
    assert read(al.join(al.split(c, X)), i, i=n) == "i // c * c + i % c"
    assert read(al.split(c, al.join(al.split(c, X))), i, j, i=n // c, j=c) == "i * c + j"
    assert read(al.transpose(al.split(c, X)), j, i, i=n // c, j=c) == "i * c + j"
    deep = al.map_(lambda row: al.split(d, row), al.split(c, X))
    assert read(deep, i, j, k, i=n // c, j=c // d, k=d) == "i * c + (j * d + k)"
    again = al.split(c, al.join(al.map_(al.join, deep)))
    assert read(again, i, j, i=n // c, j=c) == "i * c + (j // d * d + j % d)"


def test_padding_is_guarded_only_where_it_may_be_left() -> None:
    i, j = Var("i"), Var("j")
    padded = al.pad(1, 1, X)
    assert read(padded, i, i=n + 2) == "i - 1 if i - 1 >= 0 and i - 1 < n"
    assert read(al.slice_(1, n, padded), i, i=n) == "i"
    assert read(al.slide(3, 1, padded), i, j, i=n, j=Const(3)) == (
        "i + j - 1 if i + j - 1 >= 0 and i + j - 1 < n"
    )
    assert read(al.pad(0, 1, X, "clamp"), i, i=n + 1) == "i if i < n - 1 else n - 1"


def test_without_an_inverse_there_is_one_side_only() -> None:
    i = Var("i")
    half = al.gather(lambda p, _: p // 2, X)
    assert read(half, i, i=n) == "i // 2"
    with pytest.raises(NoViewError, match="gather cannot be written through"):
        landing(half, X, (i,), Known({"i": n}))
    turned = al.scatter(lambda p, size: (p + 1) % size, X)
    assert present(landing(turned, X, (i,), Known({"i": n}))).path == ((i + 1) % n,)
    with pytest.raises(NoViewError, match="scatter cannot be read through"):
        read(turned, i, i=n)
    for term in (al.pad(1, 0, X), al.slide(3, 1, X)):
        with pytest.raises(NoViewError, match="copy the result"):
            landing(term, X, (i,), Known({"i": n}))


def test_parts_that_are_left_out_land_nowhere() -> None:
    pair = Param("pair", Tuple((array(i32, 4), array(i32, 4))))
    known = Known({"i": Const(4)})
    assert landing(al.get(1, pair), pair, (Part(0), Var("i")), known) is None
    assert present(landing(al.get(1, pair), pair, (Part(1), Var("i")), known)).path == (Var("i"),)
