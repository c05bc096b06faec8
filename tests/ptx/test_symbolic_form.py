"""Normal forms against plain integers: what a form says is what the machine would compute."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.sampled import examples

from warploom.ptx.symbolic.form import Atom, Form, Pool, constant

ATOMS = ("%tid.x", "n", "m")
VALUES = {"%tid.x": 17, "n": 0xFFFF_FFF0, "m": 0x1234_5678}


def fresh() -> tuple[Pool, dict[str, Form]]:
    pool = Pool()
    return pool, {
        "%tid.x": pool.symbol("%tid.x", 32, moves=True, uniform=False, bounds=(0, 1023)),
        "n": pool.symbol("n", 32),
        "m": pool.symbol("m", 32),
    }


def value(pool: Pool, form: Form, given: dict[str, int]) -> int:
    total = 0
    for monomial, coefficient in form.terms.items():
        product = coefficient
        for index in monomial:
            product *= atom_value(pool, pool.atoms[index], given)
        total += product
    return total % (1 << form.width)


def atom_value(pool: Pool, atom: Atom, given: dict[str, int]) -> int:
    if atom.op in given:
        return given[atom.op]
    inner = [value(pool, form, given) for form in atom.forms]
    width = atom.forms[0].width
    match atom.op:
        case "zext":
            return inner[0]
        case "sext":
            return signed(inner[0], width)
        case "mul":
            return inner[0] * inner[1] % (1 << atom.width)
        case _:
            raise AssertionError(atom.op)


def signed(number: int, width: int) -> int:
    number %= 1 << width
    return number - (1 << width) if number >> (width - 1) else number


# A program: (operation, operand numbers, constant). Widths follow the operations.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "sub", "mul", "scale", "const", "narrow", "sext", "zext"]),
        st.integers(0, 50),
        st.integers(0, 50),
        st.integers(-(2**31), 2**32),
    ),
    max_size=14,
)


def run(steps: list[tuple[str, int, int, int]], given: dict[str, int]) -> list[tuple[Form, int]]:
    """The same program on forms and on numbers."""
    pool, symbols = fresh()
    results: list[tuple[Form, int]] = [(symbols[name], given[name]) for name in ATOMS]
    for op, i, j, number in steps:
        (a, x), (b, y) = results[i % len(results)], results[j % len(results)]
        width = min(a.width, b.width)
        if op in ("add", "sub", "mul"):
            a, b = pool.truncate(a, width), pool.truncate(b, width)
        match op:
            case "add":
                new = (a + b, x + y)
            case "sub":
                new = (a - b, x - y)
            case "mul":
                new = (pool.multiply(a, b), x * y)
            case "scale":
                new = (a.scaled(number), x * number)
            case "const":
                new = (a + constant(a.width, number), x + number)
            case "narrow":
                new = (pool.truncate(a, max(8, a.width // 2)), x)
            case "sext":
                new = (pool.extend(a, 2 * a.width, signed=True), signed(x, a.width))
            case _:
                new = (pool.extend(a, 2 * a.width, signed=False), x % (1 << a.width))
        if new[0].width <= 128:
            results.append((new[0], new[1] % (1 << new[0].width)))
    for form, number in results:
        assert value(pool, form, given) == number
    LAST.clear()
    LAST.append(pool)
    return results


LAST: list[Pool] = []


@examples(150)
@given(STEPS, st.integers(0, 1023), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_forms_compute_what_the_machine_does(
    steps: list[tuple[str, int, int, int]], lane: int, n: int, m: int
) -> None:
    run(steps, {"%tid.x": lane, "n": n, "m": m})


@examples(150)
@given(STEPS, st.integers(31, 992), st.integers(-31, 31), st.integers(0, 2**32 - 1))
def test_a_form_moved_by_lanes_is_the_form_in_that_lane(
    steps: list[tuple[str, int, int, int]], lane: int, lanes: int, n: int
) -> None:
    given = {"%tid.x": lane, "n": n, "m": 5}
    there = {**given, "%tid.x": lane + lanes}
    results = run(steps, given)
    (pool,) = LAST
    for form, _ in results:
        assert value(pool, pool.moved(form, lanes), given) == value(pool, form, there)


def test_equal_computations_have_equal_forms() -> None:
    pool, symbols = fresh()
    t, n = symbols["%tid.x"], symbols["n"]
    left = pool.multiply(t + constant(32, 1), n)
    right = pool.multiply(n, t) + n
    assert left == right


def test_a_wrap_is_not_forgotten() -> None:
    """sext(n + 1) is not sext(n) + 1; for a thread index, which is small, it is."""
    pool, symbols = fresh()
    one32, one64 = constant(32, 1), constant(64, 1)
    n, t = symbols["n"], symbols["%tid.x"]
    assert pool.extend(n + one32, 64, True) != pool.extend(n, 64, True) + one64
    assert pool.extend(t + one32, 64, True) == pool.extend(t, 64, True) + one64
    # Going down again meets the narrow form itself.
    assert pool.truncate(pool.extend(n + one32, 64, True), 32) == n + one32
