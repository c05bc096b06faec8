"""The forms of instructions on textures and surfaces: rows for the table of opcodes.

An operand such as `[hrf]` is a handle with two coordinates, a whole one and a floating one.
"""

from __future__ import annotations

# Coordinates by geometry, where `x` is one of the type that the instruction names. Three are
# written as four, and before those of a layer comes its number.
_COORDINATES = {"1d": "x", "2d": "xx", "3d": "xxxx", "a1d": "rx", "a2d": "rxxx"}
_ACCESSES = (
    ("b8|b16", 1, "h"), ("v2.b8|v2.b16", 2, "h"), ("v4.b8|v4.b16", 4, "h"), ("b32", 1, "r"),
    ("v2.b32", 2, "r"), ("v4.b32", 4, "r"), ("b64", 1, "l"), ("v2.b64", 2, "l"),
)  # fmt: skip


def fetches() -> str:
    """tex by coordinates of both types, at a level too."""
    rows = []
    for geometry, coordinates in _COORDINATES.items():
        for kind, letter in (("f32", "f"), ("s32", "r")):
            there = f"[h{coordinates.replace('x', letter)}]"
            words = f"{geometry} v4 f32|s32|u32 {kind}"
            rows += [f"{words} = d4r {there}", f"~level {words} = d4r {there} l"]
    return "\n".join(rows)


GATHERS = "r|g|b|a 2d v4 f32|s32|u32 f32 = d4r [hff]"


def loads() -> str:
    return "\n".join(
        f"b {geometry} ~ca|cg|cs|cv? {kinds} trap|clamp|zero = d{count}{bank} {there}"
        for geometry, there in _surfaces()
        for kinds, count, bank in _ACCESSES
    )


def stores() -> str:
    return "\n".join(
        f"b {geometry} ~wb|cg|cs|wt? {kinds} trap|clamp|zero = {there} b{count}{bank}"
        for geometry, there in _surfaces()
        for kinds, count, bank in _ACCESSES
    )


def _surfaces() -> list[tuple[str, str]]:
    return [(name, f"[h{each.replace('x', 'r')}]") for name, each in _COORDINATES.items()]
