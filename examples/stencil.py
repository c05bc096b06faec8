"""A 3 x 3 stencil on 4 x 4 lanes, once as Python, once as text; both are the same program."""

from __future__ import annotations

from warploom import Sketch, spec, synthesize
from warploom.sketch.build import Value

SIDE, TAPS = 4, 3


def along(s: Sketch, axis: int, here: Value) -> Value:
    """What a lane sends along one axis, and from whom each lane receives."""
    other = axis + 2
    shape = tuple(TAPS if a == other else length for a, length in enumerate(here.shape))
    sent = s.hole("general_select", here, shape=shape, axis=other, dims=[axis, other])
    moved = s.hole("xforms", sent, main=axis, second=other, out=axis)
    return s.hole("rots", moved, main=axis, second=other, out=axis)


def stencil() -> Sketch:
    s = Sketch("3 x 3 stencil")
    x = s.input("x", (SIDE + TAPS - 1, SIDE + TAPS - 1))
    loaded = s.apply("load_grid_2d", x, shape=(SIDE, SIDE, 2, 2))
    received = along(s, 1, along(s, 0, loaded))
    window = s.apply("reshape", received, shape=(SIDE, SIDE, TAPS * TAPS))
    s.sum("identity", window, name="out")
    s.goal(
        lambda x: [
            [spec.total(x[i : i + TAPS, j : j + TAPS]) for j in range(SIDE)] for i in range(SIDE)
        ]
    )
    return s


def main() -> None:
    sketch = stencil()
    text = sketch.text()
    print(text)
    result = synthesize(Sketch.from_text(text, "stencil.swflow"), mode="best")
    print(result.fill_text())
    assert result.verdict.value == "proved"
    assert synthesize(sketch).fills.count == 4


if __name__ == "__main__":
    main()
