"""Programs: what the builder makes of a computation, what is refused, and what it means."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import present

from warploom.errors import CheckError
from warploom.kernel.dtype import bf16, i32, i64
from warploom.loopnest.build import LoopNest, cast, exp, maximum, minimum
from warploom.loopnest.evaluate import evaluate
from warploom.loopnest.ir import Program, Scope
from warploom.loopnest.kernels import (
    Cut,
    add_parts,
    axpy,
    batched_matmul,
    doitgen,
    gesummv,
    matmul,
    matvec,
    two_matmuls,
)
from warploom.loopnest.show import show
from warploom.loopnest.tiling import cut, tilings


def signed(*shape: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng([seed, *shape])
    return random.standard_normal(shape).astype(np.float32)


def close(made: np.ndarray, wanted: np.ndarray) -> bool:
    return np.allclose(made.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)


def sigmoid(value: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-value))


# -- what programs mean ----------------------------------------------------------------------------


def test_axpy_means_axpy() -> None:
    x, y = signed(12), signed(12, seed=1)
    made = evaluate(axpy(12), {"x": x, "y": y}, {"alpha": -1.5})
    assert close(made["z"], -1.5 * x + y)


def test_matvec_and_gesummv() -> None:
    A, B, x = signed(6, 10), signed(6, 10, seed=1), signed(10)
    assert close(evaluate(matvec(6, 10), {"A": A, "x": x})["y"], A @ x)
    made = evaluate(gesummv(6, 10), {"A": A, "B": B, "x": x}, {"alpha": 2, "beta": -3})
    assert close(made["y"], (2 * A - 3 * B) @ x)


@pytest.mark.parametrize("parts", [128, 256])
def test_rows_in_parts_are_the_same_rows(parts: int) -> None:
    A, B, x = signed(3, 512), signed(3, 512, seed=1), signed(512)
    made = evaluate(matvec(3, 512, parts=parts), {"A": A, "x": x})
    assert close(made["y"], A @ x)
    given = {"A": A, "B": B, "x": x}
    made = evaluate(gesummv(3, 512, parts=parts), given, {"alpha": 2, "beta": -3})
    assert close(made["y"], (2 * A - 3 * B) @ x)
    with pytest.raises(CheckError, match="a row of 512 has no 96 parts"):
        matvec(3, 512, parts=96)


@pytest.mark.parametrize("transposed", ["", "A", "B", "AB"])
@pytest.mark.parametrize("activation", ["none", "relu", "sigmoid"])
def test_matmul_by_strides_and_activations(transposed: str, activation: str) -> None:
    A, B = signed(5, 7), signed(7, 6)
    spread = np.zeros((A.size, 3), np.float32)
    stored = A.T if "A" in transposed else A
    spread[:, 0] = np.ascontiguousarray(stored).reshape(-1)
    program = matmul(5, 6, 7, stride=3, transposed=transposed, activation=activation)  # type: ignore[arg-type]
    given = np.ascontiguousarray(B.T if "B" in transposed else B)
    made = evaluate(program, {"A": spread.reshape(-1), "B": given})["C"]
    wanted = {"none": lambda c: c, "relu": lambda c: np.maximum(c, 0), "sigmoid": sigmoid}
    assert close(made, wanted[activation](A @ B))


@pytest.mark.parametrize("shared", [False, True])
def test_batched_matmul(shared: bool) -> None:
    A, B = signed(3, 4, 5), signed(3, 5, 6)
    given = B[0] if shared else B
    made = evaluate(batched_matmul(3, 4, 6, 5, shared_b=shared), {"A": A, "B": given})["C"]
    assert close(made, A @ (B[:1] if shared else B))


@pytest.mark.parametrize("transposed", ["", "AB"])
def test_a_product_in_parts_is_the_product(transposed: str) -> None:
    A, B = signed(4, 12), signed(12, 6, seed=1)
    stored = {"A": A.T.copy(), "B": B.T.copy()} if transposed else {"A": A, "B": B}
    parts = evaluate(matmul(4, 6, 12, splits=3, transposed=transposed), stored)["P"]
    assert close(parts, np.stack([A[:, p : p + 4] @ B[p : p + 4] for p in (0, 4, 8)]))
    made = evaluate(add_parts(3, 4, 6, activation="relu"), {"P": parts})["C"]
    assert close(made, np.maximum(A @ B, 0))
    with pytest.raises(CheckError, match="splits must divide k"):
        matmul(4, 6, 12, splits=5)
    with pytest.raises(CheckError, match="give the activation to add-parts"):
        matmul(4, 6, 12, splits=3, activation="relu")


def test_two_matmuls_and_doitgen() -> None:
    A, B, C, D = signed(4, 3), signed(3, 5), signed(5, 6), signed(4, 6)
    made = evaluate(
        two_matmuls(4, 5, 3, 6, activation="relu"),
        {"A": A, "B": B, "C": C, "D": D},
        {"alpha": 0.5, "beta": 2},
    )["E"]
    assert close(made, np.maximum(0.5 * A @ B @ C + 2 * D, 0))
    A3, C4 = signed(2, 3, 4), signed(4, 4)
    made = evaluate(doitgen(2, 3, 4), {"A": A3, "C4": C4})["B"]
    assert close(made, np.einsum("rqs,sp->rqp", A3, C4))


def test_folds_indices_casts_and_subscripts() -> None:
    nest = LoopNest("mixed")
    i, j = nest.axis("i", 5), nest.axis("j", 3)
    x, y = nest.array("x", 9), nest.array("y", i)
    top, low = nest.array("top", i), nest.array("low", i, dtype=i32)
    window = x[i + 2 * j - 0]
    top[i] = nest.fold("max", window, over=j) - exp(minimum(y[i], 1))
    low[i] = nest.fold("min", cast(window, i32) * 2 + nest.index(j), over=j, start=7)
    given, own = signed(9) * 10, signed(5)
    made = evaluate(nest.done(), {"x": given, "y": own})
    windows = np.stack([given[[i, i + 2, i + 4]] for i in range(5)])
    assert close(made["top"], windows.max(axis=1) - np.exp(np.minimum(own, 1)))
    wanted = np.minimum((np.trunc(windows) * 2 + [0, 1, 2]).min(axis=1), 7)
    assert (made["low"] == wanted).all()


def test_a_sum_over_an_axis_that_nothing_varies_along() -> None:
    nest = LoopNest("repeated")
    i, j = nest.axis("i", 4), nest.axis("j", 3)
    x, y = nest.array("x", i), nest.array("y", i)
    value = x[i]
    y[i] = nest.sum(value * value, over=j, start=value)
    given = signed(4)
    assert close(evaluate(nest.done(), {"x": given})["y"], 3 * given * given + given)


# -- tiles -----------------------------------------------------------------------------------------


def test_tiles_divide_their_axis() -> None:
    assert cut("n", 24, (32, 4)).tiles == ((2, 3, 4, 6, 8, 12, 24), (2, 3, 4))
    assert set(tilings(cut("n", 6, (32, 4)))) == {(2, 3), (3, 2)}
    assert cut("n", 24, (32,), proper=True).tiles == ((2, 3, 4, 6, 8, 12),)
    assert cut("n", 7, (32, 4)).tiles == ((7,),)
    assert cut("n", 7, (32, 4), proper=True).tiles == ()
    assert cut("n", 2, (32, 4)).tiles == ((2,),)
    assert cut("n", 1, (32, 4)).tiles == ()
    assert (4, 3) not in tilings(cut("n", 18, ((2, 4), (3,))))


def test_tiles_with_a_tail_need_not() -> None:
    axis = cut("n", 7, (32, 4), tail=True)
    assert axis.tiles == ((2, 4, 7, 8), (2, 4))
    assert (2, 4) in tilings(axis)
    assert (8, 2) not in tilings(axis)  # nothing would be left in the second half


def test_a_static_axis_is_all_tiles() -> None:
    assert cut("n", 12, ((2, 3),), dynamic=False).tiles == ((4, 6), (2, 3))
    assert tilings(cut("n", 12, ((2, 3),), dynamic=False)) == ((4, 3), (6, 2))
    assert cut("n", 12, (), dynamic=False).tiles == ((12,),)
    assert tilings(cut("n", 7, ((2, 3),), dynamic=False, tail=True)) == ((3, 3), (4, 2))
    assert cut("n", 1, (), dynamic=False).tiles == (
        (1,),
    )  # one iteration, which subscripts may use


# -- communications --------------------------------------------------------------------------------


def test_what_a_lowering_may_add_is_there_from_the_start() -> None:
    program = matmul(64, 64, 64)
    assert [str(each) for each in program.temporaries] == ["A_1>sum_1.array", "B_1>sum_1.array"]
    first = program.temporaries[0]
    assert [str(dim) for dim in first.put.dims] == [
        "m0", "k0", "A_1>sum_1.put.m1", "A_1>sum_1.put.m2", "A_1>sum_1.put.k1",
    ]  # fmt: skip
    assert len(first.pairs) == 3
    assert {each.scope for each in program.communications} == {Scope.MEMORY, Scope.THREAD}
    assert len(program.dims) + len(program.instructions) == 27


def test_a_program_prints_as_its_instructions() -> None:
    text = show(matmul(64, 32, 16, activation="relu", cut=Cut(tail=True)))
    assert "axis m of 64: * × 2|4|8|16|32 × 2|4, the last partial" in text
    assert "sum_1[m, n] = fma(A_1[m, k], B_1[n, k], running from sum_1.start[m, n]) over k" in text
    assert "store C[m, n] = value_1[m, n]" in text


# -- what is refused -------------------------------------------------------------------------------


def _nest() -> tuple[LoopNest, dict[str, Any]]:
    nest = LoopNest("bad")
    i, j = nest.axis("i", 8, 4), nest.axis("j", 4)
    return nest, {"i": i, "j": j, "x": nest.array("x", i), "y": nest.array("y", i)}


def _assign(body: Callable[[LoopNest, dict[str, Any]], None]) -> Program:
    nest, names = _nest()
    body(nest, names)
    return nest.done()


def _store_twice(nest: LoopNest, at: dict[str, Any]) -> None:
    at["y"][at["i"]] = at["x"][at["i"]]
    at["y"][at["i"]] = at["x"][at["i"]]


def _unfolded(nest: LoopNest, at: dict[str, Any]) -> None:
    at["y"][at["i"]] = at["x"][at["i"]] + nest.array("z", at["j"])[at["j"]]


def _overlapping(nest: LoopNest, at: dict[str, Any]) -> None:
    wide = nest.array("w", 16)
    wide[at["i"] + at["j"]] = at["x"][at["i"]]


REFUSED = {
    "stores nothing": lambda nest, at: at["x"][at["i"]],
    "is stored to twice": _store_twice,
    "is loaded and stored to": lambda nest, at: at["y"].__setitem__(at["i"], at["y"][0] + 1),
    "runs from 1 to 8": lambda nest, at: at["y"].__setitem__(at["i"], at["x"][at["i"] + 1]),
    "fold over that axis first": _unfolded,
    "element of 'w' twice": _overlapping,
    "has 1 dimensions, not 2": lambda nest, at: at["x"][at["i"], 0],
    "is no f32": lambda nest, at: at["x"][at["i"]] + 1e300,
    "mixes f32 and i32": lambda nest, at: maximum(at["x"][at["i"]], nest.index(at["i"])),
    "from 1 to 2": lambda nest, at: nest.axis("z", 0),
    "size 2147483648": lambda nest, at: nest.axis("z", 1 << 31),
    "sizes from 2": lambda nest, at: nest.axis("z", 8, (1, 2)),
    "is used twice": lambda nest, at: _again(nest, at),
    "is no subscript": lambda nest, at: at["x"]["i"],
    "'x_1' is used nowhere": lambda nest, at: _unused(nest, at),
    "each for all of the other axis": lambda nest, at: _crossing(nest, at),
    "of numbers alone": lambda nest, at: maximum(1.0, 2.0),
    "have 32 bits": lambda nest, at: _large(nest, at),
    "is of bf16": lambda nest, at: at["y"].__setitem__(at["i"], nest.parameter("p", bf16)),
    "strides (1.5,)": lambda nest, at: nest.array("s", at["i"], strides=[1.5]),
    "shape (0,)": lambda nest, at: nest.array("s", 0),
    "1 dimensions and 2 strides": lambda nest, at: nest.array("s", at["i"], strides=[1, 2]),
    "3 is no value of a nest": lambda nest, at: cast(3, i32),  # type: ignore[arg-type]
    "3.0 is no value of a nest": lambda nest, at: nest.sum(3.0, over=at["i"]),
    "no fold of f32 by '^'": lambda nest, at: nest.fold("^", at["x"][at["i"]], over=at["i"]),
    "does not fold over whole axes": lambda nest, at: _over_nothing(nest, at),
    "'é' cannot be a name": lambda nest, at: nest.array("é", at["i"]).__setitem__(at["i"], 1.0),
}


def _again(nest: LoopNest, at: dict[str, Any]) -> None:
    nest.array("x", at["i"])
    at["y"][at["i"]] = at["x"][at["i"]]


def _over_nothing(nest: LoopNest, at: dict[str, Any]) -> None:
    at["y"][at["i"]] = nest.sum(at["x"][at["i"]], over=[])


def _unused(nest: LoopNest, at: dict[str, Any]) -> None:
    nest.array("u", 3)  # an argument that nobody reads is none of a compiler's business
    at["x"][at["i"]]
    at["y"][at["i"]] = 1.0


def _crossing(nest: LoopNest, at: dict[str, Any]) -> None:
    i, j = at["i"], at["j"]
    both, z = nest.array("both", i, j), nest.array("z", j)
    at["y"][i] = nest.fold("max", both[i, j], over=j)
    z[j] = nest.fold("max", both[i, j], over=i)


def _large(nest: LoopNest, at: dict[str, Any]) -> None:
    far = nest.array("far", at["i"], strides=(1 << 30,))
    at["y"][at["i"]] = far[at["i"]]


def test_an_array_backwards_and_a_number_first() -> None:
    nest = LoopNest("backwards")
    i = nest.axis("i", 7, 2, tail=True)
    x, y = nest.array("x", i), nest.array("y", i)
    y[i] = maximum(0.25, x[6 - i])
    given = signed(7)
    assert close(evaluate(nest.done(), {"x": given})["y"], np.maximum(0.25, given[::-1]))


@pytest.mark.parametrize("message", REFUSED)
def test_what_makes_no_program_is_refused(message: str) -> None:
    with pytest.raises(CheckError, match=re.escape(message)) as error:
        _assign(REFUSED[message])
    # All but what is there nowhere has its line.
    assert message == "stores nothing" or present(error.value.span).source.name == __file__


def test_what_is_cast_is_of_its_own_type() -> None:
    nest = LoopNest("cast")
    i = nest.axis("i", 1)
    p, y = nest.parameter("p"), nest.array("y", i, dtype=i32)
    y[i] = cast(p, i32)
    program = nest.done()
    for given, wanted in ((1e10, 2**31 - 1), (float("nan"), 0), (-2.9, -2)):
        assert evaluate(program, {}, {"p": given})["y"].tolist() == [wanted]


def test_results_are_rounded_to_their_type_and_quotients_of_integers_cut_off() -> None:
    """As kernels have them: what is too large or too small on the way stays so."""
    nest = LoopNest("rounded")
    i = nest.axis("i", 4)
    x, y, z = nest.array("x", i), nest.array("y", i), nest.array("z", i)
    p, q = nest.array("p", i, dtype=i64), nest.array("q", i, dtype=i64)
    y[i] = x[i] * 1e30 * 1e-30
    z[i] = x[i] * 1e-45
    q[i] = p[i] / -3
    given = np.array([1e10, 1e-30, 0.4, -1.0], np.float32)
    large = np.array([4611686018427387905, -7, 8, -4611686018427387904])
    made = evaluate(nest.done(), {"x": given, "p": large})
    least = np.float32(1e-45)
    assert made["y"].tolist() == [np.inf, *((given[1:] * np.float32(1e30)) * np.float32(1e-30))]
    assert made["z"].tolist() == (given * least).tolist() != [0.0] * 4
    assert made["q"].tolist() == [-1537228672809129301, 2, -2, 1537228672809129301]
