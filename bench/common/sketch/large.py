"""Large sketches, one for each way in which a search can take long or much memory."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.catalogue import texts


def summed(rows: int, columns: int, holes: str) -> str:
    """`holes`: r and c, one letter for each. Every fill is right: the cells are only summed."""
    names = {"r": "row_xforms", "c": "col_xforms"}
    shape = f"[{rows},{columns}]"
    lines = [f"h0: {shape} = range(0, {rows * columns})"]
    lines += [f"h{n + 1}: {shape} = ?{names[kind]}(h{n})" for n, kind in enumerate(holes)]
    lines.append(f"s: [1,{rows * columns}] = + reshape(h{len(holes)})")
    lines.append(f"goal: [1] = fold [{list(range(rows * columns))}]")
    return "\n".join(lines) + "\n"


def rotated(lanes: int, holes: int) -> str:
    """Rotations that together do nothing."""
    shape = f"[{lanes},2]"
    lines = [f"h0: {shape} = range(0, {2 * lanes})"]
    lines += [f"h{n + 1}: {shape} = ?col_rots_no_group(h{n})" for n in range(holes)]
    return "\n".join([*lines, f"goal: {shape} id"]) + "\n"


def unread(holes: int, apart: bool = False) -> str:
    """Holes of 64 choices whose cells nobody reads: one after the other, or side by side."""
    args = holes if apart else 1
    shapes = ", ".join(["[64,1]"] * args)
    lines = [f"define last({shapes}, [2]) -> [2] = [({args}, (0,)), ({args}, (1,))]"]
    lines += ["h0: [64,1] = range(0, 64)", "z: [2] = [0, 1]"]
    for n in range(holes):
        lines.append(f"h{n + 1}: [64,1] = ?col_rots_no_group(h{0 if apart else n})")
    read = [f"h{n + 1}" for n in range(holes)][-args:]
    lines += [f"out: [2] = last({', '.join(read)}, z)", "goal: [2] = [0, 1]"]
    return "\n".join(lines) + "\n"


def dead(holes: int) -> str:
    """Holes of 64 choices that the last step does not depend on."""
    lines = ["x: [64,1] = range(0, 64)"]
    lines += [f"h{n}: [64,1] = ?col_rots_no_group(x)" for n in range(holes)]
    return "\n".join([*lines, "out: [64,1] = ?col_rots_no_group(x)", "goal: [64,1] id"]) + "\n"


def joined(lanes: int, sides: int) -> str:
    """Values of different holes, summed together: every combination of their states is right."""
    lines = []
    for n in range(sides):
        lines.append(f"x{n}: [{lanes},2] = range({2 * lanes * n}, {2 * lanes * (n + 1)})")
        lines.append(f"h{n}: [{lanes},2] = ?col_xforms(x{n})")
    cells = 2 * lanes * sides
    args = ", ".join(f"h{n}" for n in range(sides))
    lines.append(f"p: [{lanes},2,{sides}] = stack({args})")
    lines.append(f"s: [1,{cells}] = + reshape(p)")
    lines.append(f"goal: [1] = fold [{list(range(cells))}]")
    return "\n".join(lines) + "\n"


def shared(lanes: int) -> str:
    """A value of many states that two holes read; their values meet again."""
    shape, cells = f"[{lanes},2]", 2 * lanes
    lines = [
        f"x: {shape} = range(0, {cells})",
        f"a: {shape} = ?col_xforms(x)",
        f"b: {shape} = ?col_xforms(a)",
        f"c: {shape} = ?row_xforms(b)",
        f"d: {shape} = ?col_rots(b)",
        f"p: [{lanes},2,2] = stack(c, d)",
        f"s: [1,{2 * cells}] = + reshape(p)",
        f"goal: [1] = fold [{[n // 2 for n in range(2 * cells)]}]",
    ]
    return "\n".join(lines) + "\n"


def permuted(holes: int) -> str:
    """Permutations of eight, 40,320 choices each, that together do nothing."""
    lines = ["h0: [8,2] = range(0, 16)"]
    lines += [f"h{n + 1}: [8,2] = ?grouped_perms{{axis=0,group=8}}(h{n})" for n in range(holes)]
    return "\n".join([*lines, "goal: [8,2] id"]) + "\n"


# Which of them have fills that any search meets early.
EASY = (
    "expanding", "summed", "unread", "unread 5", "unread 4", "unread 3", "unread apart", "dead",
    "joined", "joined 3", "shared",
)  # fmt: skip

LARGE: Mapping[str, str] = {
    "expanding": summed(96, 2, "cc"),  # one step expands 154 million states
    "summed": summed(32, 31, "rcr"),
    "unread": unread(12),
    "unread 5": unread(5),
    "unread 4": unread(4),
    "unread 3": unread(3),  # 262,144 fills
    "unread apart": unread(6, apart=True),
    "dead": dead(6),
    "joined": joined(64, 2),
    "joined 3": joined(32, 3),
    "shared": shared(64),
    "permuted": permuted(3),
    "rotated": rotated(512, 3),
    "transposition": texts.transposition("crc", 31, 3),
    "transposition rcr": texts.transposition("rcr", 5, 3, rows=96),
}
