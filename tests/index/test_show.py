"""The text means what the expression means: read by Python's own grammar, and compiled as C."""

from __future__ import annotations

import ast
import operator
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from tests.index.strategies import BOUNDS, NAMES, environments, expressions, grid
from tests.sampled import examples

from warploom.errors import CheckError, EmitError, UnsupportedError
from warploom.index.evaluate import evaluate
from warploom.index.ir import Binary, Const, Expr, Var, select, walk
from warploom.index.show import c_helpers, c_text, show

x, y = Var("x"), Var("y")

PYTHON: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


def python_value(part: ast.expr, env: dict[str, int]) -> int:
    match part:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return env[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -python_value(operand, env)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not python_value(operand, env))
        case ast.BinOp(left=left, op=op, right=right):
            return int(PYTHON[type(op)](python_value(left, env), python_value(right, env)))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return int(PYTHON[type(op)](python_value(left, env), python_value(right, env)))
        case ast.BoolOp(op=op, values=values):
            truths = [bool(python_value(value, env)) for value in values]
            return int(all(truths) if isinstance(op, ast.And) else any(truths))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return python_value(body if python_value(test, env) else orelse, env)
    raise AssertionError(ast.dump(part))


@given(expressions(), environments())
@examples(200)
def test_python_reads_the_text_as_we_mean_it(expr: Expr, env: dict[str, int]) -> None:
    try:
        expected = evaluate(expr, env)
    except CheckError:
        return
    assert python_value(ast.parse(show(expr), mode="eval").body, env) == expected


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((3 - x) % 8 + 2 * y, "(3 - x) % 8 + 2 * y"),
        (x - (y - 1), "x - (y - 1)"),
        (x - y - 1, "x - y - 1"),
        (-(x + 1), "-(x + 1)"),
        (-Const(3), "-(3)"),
        (x * -3, "x * -3"),
        (x.lt(3).and_(y.ge(2)).not_(), "not (x < 3 and y >= 2)"),
        (x.lt(3).not_(), "not x < 3"),
        (x.lt(y).eq(1), "(x < y) == 1"),
        (select(x.lt(3), y, 0) + 1, "(y if x < 3 else 0) + 1"),
        (select(x, 1, select(y, 2, 3)), "1 if x else 2 if y else 3"),
        (select(x, select(y, 1, 2), 3), "(1 if y else 2) if x else 3"),
        ((x ^ y) & 3 | 4, "(x ^ y) & 3 | 4"),
        ((x + 1) << 2, "x + 1 << 2"),
    ],
)
def test_parentheses_are_few(expr: Expr, text: str) -> None:
    assert show(expr) == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (x // 3, "floor_div(x, 3)"),
        (y // 3 + y % 4, "y / 3 + y % 4"),
        (x // 4, "x >> 2"),
        (x % 4 + 1, "(x & 3) + 1"),
        (y << 2, "y << 2"),
        (x << 2, "shift_left(x, 2)"),
        (-(-x), "-(-x)"),  # noqa: B002
        (x - Const(-3), "x - -3"),
        ((x & 3).eq(0), "(x & 3) == 0"),
        (x.lt(1).and_(y.lt(2)).or_(x), "(x < 1 && y < 2) || x"),
        (x.lt(1).and_(y).and_(x), "x < 1 && y && x"),
        (select(x.not_(), 1, y), "!x ? 1 : y"),
        (x + 2**31, "x + 2147483648LL"),
        (x + -(2**31), "x + (-2147483647 - 1)"),
        (Var("threadIdx.x") + 1, "threadIdx.x + 1"),
        (y * 5 % 7, "y * 5 % 7"),
        (x + (y * 8 + y), "x + y * 8 + y"),
        (y + (x + y), "y + (x + y)"),  # y + x may be too small for an int
        (y + (y - 3), "y + (y - 3)"),
        ((x ^ y) ^ 1, "x ^ y ^ 1"),
        (x ^ (y ^ 1), "x ^ y ^ 1"),
        (x ^ y // 4, "x ^ (y >> 2)"),
        (x & y % 4, "x & y & 3"),
        (x ^ y % 4 * 2, "x ^ ((y & 3) << 1)"),
        (x ^ 32 * y, "x ^ (y << 5)"),
        (x ^ x * 32, "x ^ (x * 32)"),  # a negative number may not be shifted
        ((x ^ y) % 8, "(x ^ y) & 7"),
        ((x ^ y % 4) + y * 32, "(x ^ (y & 3)) + y * 32"),
        (y // 4 * 3 + y % 4, "y / 4 * 3 + y % 4"),
        ((y & 4) // 4, "(y & 4) >> 2"),
        ((y & 4) // 3, "(y & 4) / 3"),
    ],
)
def test_c_text(expr: Expr, text: str) -> None:
    assert c_text(expr, {"y": (0, 7)}) == text


def test_depth_is_no_limit_and_blow_up_is_an_error() -> None:
    deep: Expr = x
    for _ in range(10_000):
        deep = 1 - deep
    assert show(deep).count("(") == 9_999
    assert c_text(deep).count("(") == 9_999
    doubled: Expr = x
    for _ in range(100):
        doubled = doubled + doubled
    for write in (show, c_text):
        with pytest.raises(UnsupportedError, match="parts"):
            write(doubled)


def test_a_name_cannot_smuggle_code_into_c() -> None:
    with pytest.raises(EmitError):
        c_text(Var("x; abort()"))


def sample_expressions(count: int) -> list[Expr]:
    found: list[Expr] = []

    @given(expressions(10))
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate])
    def collect(expr: Expr) -> None:
        found.append(expr)

    collect()
    return list(dict.fromkeys(found))


def c_program(functions: list[str], integer: str) -> str:
    parameters = ", ".join(f"{integer} {name}" for name in NAMES)
    parts = ["#include <stdio.h>", "#include <stdlib.h>", *c_helpers(integer).values()]
    for i, body in enumerate(functions):
        parts.append(f"static long long f{i}({parameters}) {{ return {body}; }}")
    calls = "\n".join(
        f"    case {i}: r = f{i}(a[0], a[1], a[2]); break;" for i in range(len(functions))
    )
    parts.append(f"""
int main(void) {{
  int k; long long a[3], r = 0;
  while (scanf("%d %lld %lld %lld", &k, a, a + 1, a + 2) == 4) {{
    switch (k) {{
{calls}
    }}
    printf("%lld\\n", r);
  }}
  return 0;
}}""")
    return "\n".join(parts)


@pytest.mark.sampled(1)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("suffix", ["", "LL"])
@pytest.mark.parametrize("bounds", [None, BOUNDS], ids=["any", "bounded"])
def test_compiled_c_gives_the_same_numbers(
    tmp_path: Path, suffix: str, bounds: dict[str, tuple[int, int]] | None
) -> None:
    integer, limit = ("long long", 2**63) if suffix else ("int", 2**31)
    exprs = sample_expressions(120)
    source, program = tmp_path / "all.c", tmp_path / "all"
    source.write_text(c_program([c_text(expr, bounds, suffix) for expr in exprs], integer))
    # The sanitiser stops at anything C leaves undefined.
    flags = ["-std=c11", "-w", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    points = list(zip(*(grid()[name].tolist()[::7] for name in NAMES), strict=True))
    questions, expected = [], []
    for number, expr in enumerate(exprs):
        for point in points:
            env = dict(zip(NAMES, point, strict=True))
            value = small_value(expr, env, limit)
            if value is not None:
                questions.append(f"{number} {' '.join(map(str, point))}")
                expected.append(value)
    assert len(expected) > 1000
    answer = subprocess.run(
        [program], input="\n".join(questions), capture_output=True, text=True, check=True
    )
    assert answer.stderr == ""
    assert [int(line) for line in answer.stdout.split()] == expected


def small_value(expr: Expr, env: dict[str, int], limit: int) -> int | None:
    """The value, or None where some part is undefined or needs a wider type."""
    try:
        parts = [evaluate(part, env) for part in walk(expr)]
    except CheckError:
        return None
    width = limit.bit_length() - 1
    counts = [
        evaluate(part.right, env) for part in walk(expr)
        if isinstance(part, Binary) and part.op in ("<<", ">>")
    ]  # fmt: skip
    fits = all(-limit <= int(part) < limit for part in parts)
    return int(parts[-1]) if fits and all(int(count) < width for count in counts) else None


def test_helpers_are_for_int_unless_asked_and_have_a_prefix() -> None:
    assert list(c_helpers()) == ["floor_div", "floor_mod", "shift_left"]
    assert c_helpers()["floor_div"].startswith("static inline int floor_div(int x")
    long = c_helpers("long long", "__device__", "mine_")
    assert long["mine_floor_div"].startswith("__device__ long long mine_floor_div(long long x")
    assert c_text(x // 3 + x % 5, prefix="mine_") == "mine_floor_div(x, 3) + mine_floor_mod(x, 5)"
