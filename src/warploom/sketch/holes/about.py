"""What each built-in function is, for people: what it does, its options, an example, the letters.

`warploom holes` prints it. A test asks every function which options it reads, and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from warploom.errors import ParseError, nearest
from warploom.sketch.holes import build, known
from warploom.sketch.holes.call import Option
from warploom.sketch.term.gather import GatherSet, Shape


@dataclass(frozen=True, slots=True)
class Example:
    """A call by which the function is shown."""

    options: Mapping[str, Option]
    arguments: tuple[Shape, ...]
    out: Shape


@dataclass(frozen=True, slots=True)
class About:
    """One function, or several that differ in what `names` says of each."""

    names: Mapping[str, str]
    what: str
    example: Example
    options: Mapping[str, str] = field(default_factory=dict)
    letters: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_hole(self) -> bool:
        return len(self.shown(next(iter(self.names)))) > 1

    def shown(self, name: str) -> GatherSet:
        """What the example gives under one of the names."""
        # Without axes of its own a plain name has to be told which ones are meant.
        needs = name in ("xforms", "rots", "linear", "bits", "xforms_no_group", "rots_no_group")
        axes: Mapping[str, Option] = {"main": 0, "second": 1, "out": 0} if needs else {}
        example = self.example
        return build(name, {**example.options, **axes}, example.arguments, example.out)


TILE = Example({}, ((4, 3),), (4, 3))
_AXES = {
    "main": "the axis whose coordinate is moved",
    "second": "the axis whose coordinate says how far",
    "out": "the axis along which the result is read",
}
_ROW_COLUMN = "row_: within a row (axis 1, by axis 0); col_: within a column (axis 0, by axis 1)"
_HVX = {
    "in": "which pairs of registers are read: [a,b,a,b,…]",
    "in_lim": "only the first so many registers are read",
    "out": "which registers are written: a list, in pairs where two are",
    "fresh": "the results become new registers at the end",
    "swaps": "also vswap and vmux with every mask",
}
_LETTERS_OF_LINEAR = {
    "x": "the coordinate that is moved (x0, x1, … by its axis)",
    "y": "the second coordinate",
    "L, S": "the lengths of their axes",
    "c": "the greatest common divisor of L and S",
    "a, b": "L / c and S / c",
    "u": "the inverse of b modulo a",
}
_COMPARED = {"d0, d1, …": "the coordinates that are compared", "c ± d": "what with"}
_CONDITIONS = {"consts": "the constants c; without it 0, ±1 and ± a length"}


def _both(name: str, suffix: str = "") -> dict[str, str]:
    return {
        f"row_{name}{suffix}": "axes 1, 0, 1",
        f"col_{name}{suffix}": "axes 0, 1, 0",
        f"{name}{suffix}": "axes as its options say",
    }


ABOUT: tuple[About, ...] = (
    About({"id": "", "identity": "", "reshape": ""}, "the same cells in order", TILE),
    About({"transpose": ""}, "all axes in reversed order", Example({}, ((4, 3),), (3, 4))),
    About(
        {"rot_idx": ""},
        "axes rotated",
        Example({"r": 1}, ((2, 3, 4),), (4, 2, 3)),
        {"r": "to the right by so many", "l": "to the left; one of the two is given"},
    ),
    About(
        {"stack": ""},
        "the arguments side by side along a new last axis",
        Example({}, ((4,), (4,)), (4, 2)),
    ),
    About(
        {"broadcast": ""},
        "new axes, along which the argument is repeated",
        Example({"group": 0}, ((3,),), (4, 3)),
        {"group": "after so many axes of the argument; 0 if it is left out"},
    ),
    About(
        {"load_rep": "past the end it begins again", "load_trunc": "past the end undefined"},
        "a coalesced load: lane i holds elements i, i + lanes, …",
        Example({}, ((12,),), (4, 3)),
    ),
    About(
        {"load_grid_2d": ""},
        "the same in two dimensions",
        Example({}, ((8, 8),), (4, 4, 2, 2)),
    ),
    About(
        {**_both("xforms"), **_both("xforms", "_no_group")},
        f"swizzles: a coordinate fanned and rotated by a second one. {_ROW_COLUMN}; _no_group: "
        "over the whole axis only",
        TILE,
        _AXES,
        {
            "cf": "the fan: i becomes cf·i, and one more for each time round",
            "cr, dr": "rotated by cr·k + k // dr, k the second coordinate",
            "group": "within groups of so many; the whole axis where it is not said",
            "wrap": "the rotation is taken modulo the greatest common divisor of group and cf",
        },
    ),
    About(
        {**_both("rots"), **_both("rots", "_no_group")},
        f"rotations by a constant. {_ROW_COLUMN}; _no_group: over the whole axis only",
        TILE,
        _AXES,
        {"shift": "by how much", "group": "within groups of so many"},
    ),
    About(
        _both("linear"),
        f"permutations by column-major linearisation; the forms name no size. {_ROW_COLUMN}",
        TILE,
        _AXES,
        _LETTERS_OF_LINEAR,
    ),
    About(
        _both("bits"),
        f"bit operations on a coordinate below a power of two: M·x ^ t ^ c. {_ROW_COLUMN}",
        Example({}, ((4, 4),), (4, 4)),
        {**_AXES, "main": "the axis whose coordinate is changed; alone, no second one is used"},
        {
            "xor": "the constant c, or t by the second coordinate k: k, k+1, 1<<k, k&2, …",
            "turn": "all bits turned by so many places",
            "reverse": "all bits, the low or the high ones reversed",
        },
    ),
    About(
        {"reg_select": "", "reg_select_no_consts": "comparisons without constants"},
        "which of two registers: the first where a condition holds, else the second",
        Example({}, ((4, 2),), (4, 3)),
        _CONDITIONS,
        _COMPARED,
    ),
    About(
        {"general_select": "", "general_select_no_consts": "comparisons without constants"},
        "which of several positions along an axis, by conditions in order",
        Example({"axis": 1}, ((4, 2),), (4, 3)),
        {
            "axis": "along which it is chosen",
            "dims": "the coordinates that conditions compare; all if it is left out",
            **_CONDITIONS,
        },
        _COMPARED,
    ),
    About(
        {"cond_keep": "", "cond_keep_no_consts": "comparisons without constants"},
        "keeps a cell where a condition holds, else zero",
        TILE,
        {"restrict": "[axis,position,…]: only there; other cells are kept", **_CONDITIONS},
        _COMPARED,
    ),
    *(
        About(
            {name: ""},
            f"HVX instructions on [registers, lanes] with {results}",
            Example({"fresh": None}, ((2, 4),), out),
            {**_HVX, "inplace": "the results replace what was read"},
        )
        for name, results, out in (
            ("hvx_2x1", "one result", (3, 4)),
            ("hvx_2x2", "two results", (4, 4)),
        )
    ),
    About(
        {"hvx_inplace": ""},
        "HVX instructions whose results replace what was read",
        Example({}, ((2, 4),), (2, 4)),
        _HVX,
    ),
    About(
        {"grouped_perms": "", "amd_swizzles_perm": "and AMD's XOR swizzles"},
        "every permutation within groups",
        Example({"axis": 0, "group": 4}, ((32,),), (32,)),
        {
            "axis": "along which groups lie",
            "group": "how many belong together",
            "restrict": "[axis,position]: only there; other cells stay",
        },
    ),
)


def about(name: str) -> About:
    for each in ABOUT:
        if name in each.names:
            return each
    raise ParseError(
        f"there is no function '{name[:80]}'",
        advice=nearest(name, known(), "'warploom holes' lists them", cutoff=0.4),
    )
