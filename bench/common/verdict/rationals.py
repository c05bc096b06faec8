"""Small kernels that were drawn, each judged beside a reference, and what exact rationals say."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from bench.common.verdict.terms import (
    CANCELLED,
    INPUTS,
    LANES,
    Term,
    UndefinedError,
    broken,
    by_numpy,
    changed,
    constant,
    drawn,
    exactly,
    made,
    x,
)
from bench.common.verdict.terms_ptx import text_of

from warploom import judge
from warploom.verdict.answer import Judgement

POINTS, TRIES = 3, 60
FINE = 24  # inputs are whole numbers from -24 to 24; where no exponent is, fractions


@dataclass(frozen=True)
class Drawn:
    """`same`: whether both are the same over the reals. `lost`: of each sum of all threads, a step
    that the kernel leaves out."""

    name: str
    reference: Term
    kernel: Term
    kind: str
    same: bool
    lost: int | None = None

    def text(self) -> str:
        return text_of(self.kernel, self.kind, Random(self.name), self.lost)

    def judged(self, seed: int) -> Judgement:
        term = self.reference

        def reference(x0: Any, x1: Any, x2: Any) -> Any:
            return by_numpy(term, (x0, x1, x2))

        args = {f"x{n}": f"{self.kind}[{LANES}]" for n in range(INPUTS)}
        return judge(self.text(), reference, args | {"y": f"{self.kind}[{LANES}]=out"}, seed=seed)


def drawn_case(number: int) -> Drawn:
    """Every fourth is a trap; of the others half are broken in one place."""
    if number % 4 == 3:
        return trap(number // 4)
    r = Random(number)
    kind = r.choice(("f32", "f32", "f64"))
    while True:
        reference = drawn(r, 4)
        kernel = changed(r, reference)
        if r.random() < 0.5:
            kernel = broken(r, kernel)
        lost = r.randrange(5) if r.random() < 0.1 else None
        if len(kernel.parts()) > 80 or not any(p.op == "x" for p in kernel.parts()):
            continue
        same = are_same(reference, kernel, kind, r, lost)
        if same is not None:
            return Drawn(f"drawn {number}", reference, kernel, kind, same, lost)


def are_same(a: Term, b: Term, kind: str, r: Random, lost: int | None = None) -> bool | None:
    """By their exact values at points that are drawn; None where too few are defined."""
    good = 0
    exponents = any(p.op == "exp2" for t in (a, b) for p in t.parts())
    for _ in range(TRIES):
        rows = [
            [
                Fraction(r.randint(-FINE, FINE))
                if exponents
                else Fraction(r.randint(-999, 999), r.randint(1, 99))
                for _ in range(LANES)
            ]
            for _ in range(INPUTS)
        ]
        try:
            if exactly(a, rows, kind) != exactly(b, rows, kind, lost):
                return False
        except (UndefinedError, OverflowError):
            continue
        good += 1
        if good == POINTS:
            return True
    return None


# -- traps -----------------------------------------------------------------------------------------


def trap(number: int) -> Drawn:
    """What samples, or another ring, would take for the same; or what rounding makes different."""
    r = Random(1000 + number)
    inner = drawn(r, 1) if number >= len(TRAPS) else x(0)
    name, kind, reference, kernel, same = TRAPS[number % len(TRAPS)](inner, r)
    return Drawn(f"{name} {number}", reference, kernel, kind, same)


Trap = tuple[str, str, Term, Term, bool]


def _high_power(_inner: Term, r: Random) -> Trap:
    power = x(r.randrange(INPUTS))
    first = power
    for _ in range(r.randint(60, 62)):
        power = made("mul", power, power)
    return "x^p", "f64", first, power, False


def _even(_: Term, r: Random) -> Trap:
    one = x(r.randrange(INPUTS))
    product = made("mul", one, made("add", one, constant(1.0)))
    return "2^63 x(x+1)", "f64", constant(0.0), made("mul", constant(2.0**63), product), False


def _root(_: Term, r: Random) -> Trap:
    one = x(r.randrange(INPUTS))
    root = made("sqrt", one)
    return "sqrt(x)^2", r.choice(("f32", "f64")), one, made("mul", root, root), False


def _cancelled(inner: Term, r: Random) -> Trap:
    big = constant(r.choice(CANCELLED))
    return "(x+C)-C", "f32", inner, made("sub", made("add", inner, big), big), True


def _masked(_: Term, r: Random) -> Trap:
    """A mask of -1e30 is none of -1e29, though no float shows it."""
    one = x(r.randrange(INPUTS))
    away = r.choice((-1e29, -2e30))
    kernel, reference = (
        made("exp2", made("first", one, made("add", one, constant(c)))) for c in (-1e30, away)
    )
    return "-1e30 mask", "f32", reference, kernel, False


def _tenth(inner: Term, r: Random) -> Trap:
    """0.1 and 0.1f: in singles the constant is taken for the float, in doubles it is not."""
    kind = r.choice(("f32", "f64"))
    near = 0.10000000149011612
    reference, kernel = (made("mul", x(0), constant(c)) for c in (0.1, near))
    return "0.1", kind, made("add", reference, inner), made("add", kernel, inner), kind == "f32"


def _never(_: Term, r: Random) -> Trap:
    """A fraction of what is always 0."""
    a, b = x(r.randrange(INPUTS)), constant(0.0)
    nothing = made("sub", made("max", a, b), made("max", b, a))
    return "0/0", "f32", constant(1.0), made("div", nothing, nothing), False


TRAPS = (_high_power, _even, _root, _cancelled, _masked, _tenth, _never)


def wrong(case: Drawn, found: Judgement) -> bool:
    """Whether a verdict says what is not so."""
    return found.verdict == ("different" if case.same else "equal")
