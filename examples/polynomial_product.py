"""The product of two polynomials on four lanes: which coefficients does each lane multiply when?

Every lane keeps two sums. In each iteration it picks one coefficient of `a` and one of `b` (holes),
multiplies them and adds the product to one of the sums, or to neither (holes).
"""

from __future__ import annotations

from warploom import Sketch, synthesize
from warploom.sketch.build import Value


def picked(s: Sketch, operand: Value, width: int) -> Value:
    """One coefficient for each (lane, iteration)."""
    everywhere = s.apply("broadcast", operand, shape=(width, width))
    first = s.hole("xforms_no_group", everywhere, main=0, second=1, out=1)
    return s.hole("rots_no_group", first, main=0, second=1, out=1)


def product(width: int = 4) -> Sketch:
    s = Sketch(f"product of polynomials of {width} coefficients")
    a, b = s.input("a", width), s.input("b", width)
    products = s.product("stack", picked(s, a, width), picked(s, b, width), name="products")
    kept = s.apply("broadcast", products, shape=(width, 2, width), group=1)
    for accumulator in (0, 1):
        kept = s.hole("cond_keep_no_consts", kept, restrict=[1, accumulator])
    sums = s.sum("reshape", kept, name="sums")
    s.apply("reshape", s.apply("transpose", sums, shape=(2, width)), shape=2 * width)

    def coefficients(a, b):  # type: ignore[no-untyped-def]  # plain Python on symbols
        out = [0] * (2 * width)
        for i in range(width):
            for j in range(width):
                out[i + j] += a[i] * b[j]
        return out

    s.goal(coefficients)
    return s


def main() -> None:
    result = synthesize(product().program(), mode="best")
    print(result.fill_text())
    assert result.verdict.value == "proved"
    everything = synthesize(product().program())
    assert everything.complete
    assert everything.fills.count == 2


if __name__ == "__main__":
    main()
