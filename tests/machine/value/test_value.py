"""Machine values: NumPy, C and Z3 give what the evaluator in Python gives, on generated values."""

from __future__ import annotations

import ctypes
import random
import shutil
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.machine.value.plain import evaluate

from warploom.machine.value.arrays import dtype_of, function
from warploom.machine.value.ir import Value, arg, const, is_signed, limits, make, unsigned, width_of
from warploom.machine.value.smt import term
from warploom.machine.value.text import c_type, prelude, texts
from warploom.native import compile_c, load_library

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
OPERANDS = ("u32", "s32", "u64", "s64", "u16", "s16", "u8", "pred")
THREADS = 32


def generated(chance: random.Random, depth: int, type_: str) -> Value:
    """An expression of a type over `OPERANDS`."""
    if depth == 0 or chance.random() < 0.1:
        fits = [arg(n, each) for n, each in enumerate(OPERANDS) if each == type_]
        if not fits or chance.random() < 0.2:
            return const(type_, chance.choice([0, 1, -1, chance.getrandbits(64)]))
        return chance.choice(fits)

    def of(kind: str) -> Value:
        return generated(chance, depth - 1, kind)

    if type_ == "pred":
        kind = chance.choice(INTEGERS)
        a, b, p, q = of(kind), of(kind), of("pred"), of("pred")
        return chance.choice([a.eq(b), a.lt(b), a.le(b), p & q, p | q, p ^ q, ~p])
    width, other = width_of(type_), chance.choice(INTEGERS)
    a, b, amount = of(type_), of(type_), of("u32") & width - 1
    nonzero = b.eq(0).select(const(type_, 3), b)
    if is_signed(type_):
        nonzero = nonzero.eq(-1).select(const(type_, 3), nonzero)
    bits = of(f"{'u' if is_signed(type_) else 's'}{width}").bits(type_)
    made = [
        a + b, a - b, a * b, a & b, a | b, a ^ b, -a, ~a, a.min(b), a.max(b), a.high_product(b),
        a.quotient(nonzero), a.remainder(nonzero), a << amount, a >> amount, bits,
        of(other).to(type_), of("pred").to(type_), of("pred").select(a, b), a.reversed(),
    ]  # fmt: skip
    if type_ == "u32":
        made += [of(other).ones(), of(other).leading_zeros(),
                 make("nth", "u32", (of("u32"), of("u32") & 63, of("s32") >> 26))]  # fmt: skip
    return chance.choice(made)


def inputs(seed: int) -> dict[int, np.ndarray]:
    chance = np.random.default_rng(seed)
    columns = {}
    for number, kind in enumerate(OPERANDS):
        if kind == "pred":
            columns[number] = chance.integers(0, 2, THREADS).astype(bool)
            continue
        low, high = limits(kind)
        bits = chance.integers(0, 1 << 63, THREADS, dtype=np.uint64) * np.uint64(2)
        bits >>= chance.integers(0, 64, THREADS).astype(np.uint64)
        column = bits.astype(f"u{width_of(kind) // 8}").view(dtype_of(kind))
        column[:4] = [0, high, low, 1]
        columns[number] = chance.permutation(column)
    return columns


def expected(value: Value, columns: dict[int, np.ndarray]) -> list[int]:
    rows = [[int(columns[n][t]) for n in range(len(OPERANDS))] for t in range(THREADS)]
    return [evaluate(value, row) for row in rows]


Case = tuple[Value, dict[int, np.ndarray], list[int]]
SEEDS = [range(3), pytest.param(range(3, 10), marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=SEEDS)
def known(request: pytest.FixtureRequest) -> list[Case]:
    made = []
    for seed, kind in product(request.param, (*INTEGERS, "pred")):
        value, columns = generated(random.Random(f"{kind}{seed}"), 4, kind), inputs(seed)
        made.append((value, columns, expected(value, columns)))
    return made


def test_numpy_gives_what_the_evaluator_gives(known: list[Case]) -> None:
    for value, columns, wanted in known:
        with np.errstate(all="ignore"):
            (found,) = function([value])(list(columns.values()))
        assert found.dtype == dtype_of(value.type), value
        assert [int(x) for x in np.broadcast_to(found, THREADS)] == wanted, value


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_c_gives_what_the_evaluator_gives(known: list[Case]) -> None:
    lines = [prelude()]
    for number, (value, _, _) in enumerate(known):
        names = [f"o{n}" for n in range(len(OPERANDS))]
        body: list[str] = []

        def variable(kind: str, text: str, body: list[str] = body) -> str:
            body.append(f"const {c_type(kind)} x{len(body)} = {text};")
            return f"x{len(body) - 1}"

        (text,) = texts([value], names, variable)
        given = ", ".join(f"{c_type(k)} {name}" for k, name in zip(OPERANDS, names, strict=True))
        lines.append(
            f"uint64_t value{number}({given}) {{ {' '.join(body)} return (uint64_t){text}; }}"
        )
    library = load_library(compile_c("\n".join(lines), ("-shared", "-fPIC", "-fwrapv", "-O1")))
    kinds = [getattr(ctypes, f"c_{c_type(kind).removesuffix('_t')}") for kind in OPERANDS]
    for number, (value, columns, wanted) in enumerate(known):
        run = library[f"value{number}"]
        run.argtypes, run.restype = kinds, ctypes.c_uint64
        found = [run(*[int(columns[n][t]) for n in columns]) for t in range(THREADS)]
        mask = (1 << 64) - 1
        assert found == [x & mask if value.type != "pred" else x for x in wanted], value


def test_z3_gives_what_the_evaluator_gives(known: list[Case]) -> None:
    z3 = pytest.importorskip("z3")

    def extend(x: Any, width: int, signed: bool) -> object:
        size = x.size()
        if size > width:
            return z3.Extract(width - 1, 0, x)
        return (z3.SignExt if signed else z3.ZeroExt)(width - size, x) if size < width else x

    decided = 0
    for value, columns, wanted in known:
        for t in range(0, THREADS, 16):
            row = [
                z3.BitVecVal(int(columns[n][t]), width_of(k)) for n, k in enumerate(OPERANDS)
            ]  # fmt: skip
            made = term(z3, value, row, lambda a, b: a * b, extend)
            if made is not None:
                found = z3.simplify(made).as_long()
                assert found == wanted[t] & (1 << width_of(value.type)) - 1, value
                decided += 1
    assert decided > len(known) / 2  # the others count bits, or have upper halves of products


def test_laws_keep_the_value() -> None:
    a = arg(0, "u32")
    zero = const("u32", 0)
    assert a + 0 is a
    assert zero + a is a
    assert a ^ 0 is a
    assert a << 0 is a
    assert a.lt(a).constant == 0
    assert a.bits("s32").bits("u32") is a
    assert (const("u32", 3) - 5).constant == 2**32 - 2
    assert unsigned("s16") == "u16"
