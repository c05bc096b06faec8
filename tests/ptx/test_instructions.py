# ruff: noqa: E501 - tables and programs read better with a line each
"""Every instruction of `device_kernels` on the emulator against scalar meanings in `oracle`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from bench.common.narrowed import present
from bench.common.ptx import device_kernels as kernels
from tests.ptx import oracle

from warploom import ptx

CASES = {case.name: case for case in kernels.cases()}


def instruction(case: kernels.Case) -> str:
    return case.asm.split(" ")[0]


def run(case: kernels.Case) -> tuple[list[np.ndarray], list[np.ndarray]]:
    module = ptx.load(kernels.PTX_HEADER + kernels.ptx_source(case), f"{case.name}.ptx")
    inputs, outputs = kernels.inputs(case), kernels.outputs(case)
    grid = kernels.SIZE // kernels.BLOCK
    module.kernel(case.name).launch(grid, kernels.BLOCK, [*inputs, *outputs])
    return inputs, outputs


def _names(chooser: Callable[[str], object]) -> list[str]:
    return [
        name for name, case in CASES.items()
        if case.asm[0] != "{" and case.asm.count(";") == 1 and chooser(instruction(case)) is not None
    ]  # fmt: skip


def _is_float(name: str) -> bool:
    return name.split(".")[-1].removesuffix("x2") in oracle.FORMATS


@pytest.mark.parametrize(
    "name", [n for n in _names(oracle.integer) if not _is_float(instruction(CASES[n]))]
)
def test_integers(name: str) -> None:
    kind, meaning = present(oracle.integer(instruction(CASES[name])))
    inputs, (out,) = run(CASES[name])
    want = [oracle.wrap(meaning(*map(int, row)), kind) for row in zip(*inputs, strict=True)]
    bits = np.dtype(f"u{out.itemsize}")
    assert out.view(bits).tolist() == [w & ((1 << 8 * out.itemsize) - 1) for w in want]


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", _names(oracle.arithmetic))
def test_float_arithmetic(name: str) -> None:
    meaning = present(oracle.arithmetic(instruction(CASES[name])))
    kind = CASES[name].results[0]
    inputs, (out,) = run(CASES[name])
    checked = 0
    for row, got in zip(zip(*inputs, strict=True), out, strict=True):
        want = meaning(*[oracle.as_number(v, kind) for v in row])
        if want is not None:
            checked += 1
            number = oracle.as_number(got, kind)
            exact = Fraction(number) if math.isfinite(number) else number
            assert exact == want, (row, got, want)
    assert checked > kernels.SIZE // 2


@pytest.mark.sampled(60)
@pytest.mark.parametrize("name", _names(oracle.conversion))
def test_conversions(name: str) -> None:
    meaning = present(oracle.conversion(instruction(CASES[name])))
    (source,), (out,) = run(CASES[name])
    for value, got in zip(source, out, strict=True):
        want = meaning(value)
        if want is None:
            continue
        if CASES[name].results[0] in oracle.FORMATS:
            number = oracle.as_number(got, CASES[name].results[0])
            got = Fraction(number) if math.isfinite(number) else number
        assert got == want, (value, got, want)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_roots(mode: str, kind: str) -> None:
    (source,), (out,) = run(CASES[f"sqrt_{mode}_{kind}"])
    for x, r in zip(source, out, strict=True):
        if not (math.isfinite(x) and x > 0):
            continue
        below, above = (Fraction(float(np.nextafter(r, s, dtype=r.dtype))) for s in (0, np.inf))
        x, r = Fraction(float(x)), Fraction(float(r))
        if mode == "rn":
            assert ((below + r) / 2) ** 2 <= x <= ((above + r) / 2) ** 2
        elif mode == "rp":
            assert below**2 < x <= r**2
        else:
            assert r**2 <= x < above**2


COMPARE = {
    "eq": lambda a, b: a == b, "lt": lambda a, b: a < b, "ge": lambda a, b: a >= b,
    "ne": lambda a, b: a < b or a > b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "equ": lambda a, b: not (a < b or a > b), "neu": lambda a, b: a != b,
    "ltu": lambda a, b: not a >= b, "leu": lambda a, b: not a > b, "gtu": lambda a, b: not a <= b,
    "geu": lambda a, b: not a < b, "num": lambda a, b: a == a and b == b,
    "nan": lambda a, b: a != a or b != b, "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b, "hs": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [n for n in CASES if n.startswith("setp_") and "pair" not in n and "ftz" not in n]
)
def test_comparisons(name: str) -> None:
    _, relation, kind = name.split("_")
    (a, b), (out,) = run(CASES[name])
    values = [
        [oracle.as_number(v, kind) if kind in oracle.FORMATS else int(v) for v in x] for x in (a, b)
    ]
    assert out.tolist() == [int(COMPARE[relation](x, y)) for x, y in zip(*values, strict=True)]


@pytest.mark.parametrize("op", ["and", "or", "xor"])
def test_combined_comparisons(op: str) -> None:
    (a, b), (p, q) = run(CASES[f"setp_{op}_pair"])
    fn = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[op]
    c = b.view(np.uint32) < 0x80000000
    assert p.tolist() == fn(a <= b, c).astype(int).tolist()
    assert q.tolist() == fn(a > b, c).astype(int).tolist()


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("carry_")])
def test_carries(name: str) -> None:
    inputs, outs = run(CASES[name])
    for at, row in enumerate(zip(*inputs, strict=True)):
        x = [int(v) for v in row]
        got = [int(o[at]) for o in outs]
        if name == "carry_add":
            total = (x[2] << 64 | x[1] << 32 | x[0]) + (x[0] << 64 | x[2] << 32 | x[1])
        elif name == "carry_sub":
            total = (x[2] << 64 | x[1] << 32 | x[0]) - (x[0] << 64 | x[2] << 32 | x[1])
        elif name == "carry_mad":
            total = x[0] * x[1] + (x[2] << 32 | x[2])
        else:
            total = (x[1] << 64 | x[0]) + (x[0] << 64 | x[1])
        width = 64 if name.endswith("64") else 32
        assert got == [total >> width * i & ((1 << width) - 1) for i in range(len(got))]


@pytest.mark.parametrize("table", [0x96, 0xE8, 0x1B, 0xC5, 0x80, 0xFE])
def test_lop3(table: int) -> None:
    inputs, (out,) = run(CASES[f"lop3_b32__{table:#x}".replace("#", "")])
    want = [oracle._lop3(int(a), int(b), int(c), table) for a, b, c in zip(*inputs, strict=True)]
    assert out.tolist() == want


@pytest.mark.parametrize("mode", ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_prmt_modes(mode: str) -> None:
    (a, b, c), (out,) = run(CASES[f"prmt_b32_{mode}"])
    for x, y, z, got in zip(a.tolist(), b.tolist(), c.tolist(), out.tolist(), strict=True):
        k = z & 3
        pick = {
            "f4e": [k, k + 1, k + 2, k + 3],
            "b4e": [k, (k - 1) % 8, (k - 2) % 8, (k - 3) % 8],
            "rc8": [k] * 4,
            "ecl": [max(i, k) for i in range(4)],
            "ecr": [min(i, k) for i in range(4)],
            "rc16": [2 * (k & 1), 2 * (k & 1) + 1] * 2,
        }[mode]
        data = (y << 32 | x).to_bytes(8, "little")
        assert got == int.from_bytes(bytes(data[i] for i in pick), "little")


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("shfl_")])
def test_shuffles(name: str) -> None:
    _, mode, word = name.split("_")
    (value, amount), (out, flag) = run(CASES[name])
    segment = int(word, 16) >> 8
    for thread in range(kernels.SIZE):
        lane, b = thread % 32, int(amount[thread]) & 31
        size = (~segment & 31) + 1  # lanes of a segment
        first = lane - lane % size
        if mode == "up":
            source, inside = lane - b, lane - b >= first
        elif mode == "down":
            source, inside = lane + b, lane + b < first + size
        elif mode == "bfly":
            source, inside = lane ^ b, (lane ^ b) < first + size
        else:
            source, inside = first + b % size, True
        source = source if inside else lane
        assert out[thread] == value[thread - lane + source]
        assert flag[thread] == int(inside)


@pytest.mark.parametrize(
    "name",
    [
        "vote_ballot",
        "vote_all",
        "vote_any",
        "vote_uni",
        "match_any",
        "match_any64",
        "match_all",
        "activemask",
    ],
)
def test_votes(name: str) -> None:
    (value,), outs = run(CASES[name])
    for start in range(0, kernels.SIZE, 32):
        lanes = value[start : start + 32].tolist()
        assert outs[0][start : start + 32].tolist() == VOTES[name](lanes)


def _mask(bits: Iterable[Any]) -> int:
    return sum(int(bit) << lane for lane, bit in enumerate(bits))


VOTES = {
    "vote_ballot": lambda lanes: [_mask(v < 1 << 31 for v in lanes)] * 32,
    "vote_all": lambda lanes: [int(all(v > 3 for v in lanes))] * 32,
    "vote_any": lambda lanes: [int(any(v > 3 for v in lanes))] * 32,
    "vote_uni": lambda lanes: [int(len({v > 3 for v in lanes}) == 1)] * 32,
    "match_any": lambda lanes: [_mask(w & 7 == v & 7 for w in lanes) for v in lanes],
    "match_any64": lambda lanes: [_mask(w & 3 == v & 3 for w in lanes) for v in lanes],
    "match_all": lambda lanes: [0xFFFFFFFF * (len({v >> 6 for v in lanes}) == 1)] * 32,
    "activemask": lambda lanes: [_mask(w > 20 for w in lanes) * (v > 20) for v in lanes],
}


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("redux_")])
def test_redux(name: str) -> None:
    (value,), (out,) = run(CASES[name])
    op = name.split("_")[2]
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
             "or": np.bitwise_or, "xor": np.bitwise_xor}[op]  # fmt: skip
    want = ufunc.reduce(value.reshape(-1, 32), axis=1, dtype=value.dtype)
    assert out.reshape(-1, 32).tolist() == [[w] * 32 for w in want.tolist()]


@pytest.mark.parametrize("op", ["popc_u32", "and_pred", "or_pred"])
def test_barrier_reductions(op: str) -> None:
    (value,), (out,) = run(CASES[f"barrier_red_{op}"])
    yes = (value > 2).reshape(-1, kernels.BLOCK)
    want = {"popc_u32": yes.sum(1), "and_pred": yes.all(1), "or_pred": yes.any(1)}[op]
    assert out.reshape(yes.shape).tolist() == [[int(w)] * kernels.BLOCK for w in want]


APPROXIMATE: dict[str, Callable[..., Any]] = {
    "rcp": lambda x: 1 / x, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "ex2": np.exp2,
    "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "div": np.divide,
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [n for n, case in CASES.items() if case.tolerance or case.absolute]
)
def test_approximations(name: str) -> None:
    case = CASES[name]
    inputs, (out,) = run(case)
    with np.errstate(all="ignore"):
        want = APPROXIMATE[name.split("_")[0]](*[x.astype(np.float64) for x in inputs])
        # Iterations are counted in single precision, as the hardware counts them.
        most = case.absolute if name.startswith(("sin", "cos")) else 0
        np.testing.assert_allclose(out, want.astype(np.float32), rtol=2e-7, atol=most)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(4))
def test_every_case_runs(part: int) -> None:
    """Cases without a meaning above at least give the same bits in wide and in small batches."""
    for name, case in list(CASES.items())[part::4]:
        module = ptx.load(kernels.PTX_HEADER + kernels.ptx_source(case), f"{name}.ptx")
        results = []
        for batch_threads in (1, 1 << 14):
            inputs, outputs = kernels.inputs(case), kernels.outputs(case)
            module.kernel(name).launch(
                kernels.SIZE // kernels.BLOCK, kernels.BLOCK, [*inputs, *outputs],
                batch_threads=batch_threads,
            )  # fmt: skip
            results.append([o.tobytes() for o in outputs])
        assert results[0] == results[1], name


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_testp(kind: str) -> None:
    """Zeros count as normal numbers."""
    least = np.finfo(kind.replace("f", "float")).smallest_normal
    for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        (a,), (out,) = run(CASES[f"testp_{name}_{kind}"])
        small = (np.abs(a) < least) & (a != 0)
        want = {
            "finite": np.isfinite(a), "infinite": np.isinf(a), "number": ~np.isnan(a),
            "notanumber": np.isnan(a), "normal": np.isfinite(a) & ~small, "subnormal": small,
        }[name]  # fmt: skip
        assert out.tolist() == want.astype(int).tolist()
