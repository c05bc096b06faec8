"""wgmma in C: each warp makes its sixteen rows at once, as in the evaluator.

That no register of a product is touched before its group was waited for is found in the text:
where some way through it might touch one, the evaluator, which watches, runs the kernel.
"""

from __future__ import annotations

import re

from warploom.machine.fused import rule_for
from warploom.machine.semantics import Kind
from warploom.ptx import flow
from warploom.ptx.emulate import fragment
from warploom.ptx.emulate.compile import uses
from warploom.ptx.emulate.product import BITS, vector
from warploom.ptx.emulate.warpgroup import ROWS
from warploom.ptx.fast.matrix import FLOATS, places_table
from warploom.ptx.fast.operand import NotTaken, Spell, Writer
from warploom.ptx.ir import Immediate, Instruction, Vector
from warploom.ptx.known import keys_of, registers

_LEFT = "left "
_OLDEST = 8  # groups between an issue and now; no kernel keeps more in flight


def wgmma(w: Writer, ins: Instruction) -> None:
    words, operands = ins.modifiers, ins.operands
    if w.noted.notes.races:
        raise NotTaken(f"{ins.name}: what orders the asynchronous way")
    if words[0] != "mma_async":
        return
    if w.noted.notes:
        w.must(f"noted_asynchronous(L, {w.site(ins, 1, Kind.READ)}, @)")
    shape = re.match(r"m64n(\d+)k(\d+)", next(x for x in words if x.startswith("m64n")))
    assert shape is not None
    columns, depth = int(shape[1]), int(shape[2])
    result, kind, other = [x for x in words if x in BITS or x in ("f32", "s32")][:3]
    if w.guard:
        raise NotTaken(ins.name)
    rest = [each.value for each in operands[4:] if isinstance(each, Immediate)]
    in_registers = isinstance(operands[1], Vector)
    signs = [rest[0] < 0, rest[1] < 0] if len(rest) > 1 else [False, False]
    turned = [bool(x) for x in rest[2:]] or [False, False]
    turned = [False, turned[0]] if in_registers else turned
    left = vector(operands[1])
    a = [w.filled(32, w.read(each, "b32")) for each in left] if in_registers else ["0"]
    described = [
        "0" if in_registers else w.filled(64, w.read(operands[1], "b64")),
        w.filled(64, w.read(operands[2], "b64")),
    ]
    adds = w.filled(1, _truth(w, ins))
    flags = w.flags(*vector(operands[0]))
    if flags:
        w.must(f"!({adds}[0] && packed({w.filled(1, flags)}))")
    sums = [w.filled(32, w.read(each, "b32")) for each in vector(operands[0])]
    tables = [
        places_table(w, fragment.left(ROWS, depth, 32 // BITS[kind])),
        places_table(w, fragment.result(ROWS, columns)),
    ]
    lists = [f"(uint32_t *[]){{{', '.join(part)}}}" for part in (a, sums)]
    common = [
        w.module.span(ins).line,
        columns,
        depth,
        BITS[kind] // 8,
        *map(int, (*turned, *signs)),
    ]
    own: list[object]
    if result == "s32":
        own = [-1, 0, 0, 0, 0, 0, *(int(each[0] == "s") for each in (kind, other)),
               int("satfinite" in words)]  # fmt: skip
    else:
        rule = rule_for(90, kind, depth, warpgroup=True)
        own = [FLOATS[kind], FLOATS[other], rule.group, rule.below, rule.kept,
               int(result == "f16"), 0, 0, 0]  # fmt: skip
    product = f"(Product){{{', '.join(map(str, (*common, *own)))}}}"
    given = [*lists, *described, adds, "@", *tables, product]
    w.must(f"group_product(L, S, {', '.join(given)})")
    for target, made in zip(vector(operands[0]), sums, strict=True):
        w.write(target, "u32", f"{made}[l]")


def _truth(w: Writer, ins: Instruction) -> str:
    """Whether the sums are added to; else they start from zero."""
    if len(ins.operands) < 4:
        return "1u"
    operand = ins.operands[3]
    if isinstance(operand, Immediate):
        return f"{int(operand.value != 0)}u"
    return w.read(operand, "pred")


# -- waiting -------------------------------------------------------------------------------------


def check_waits(graph: flow.Graph) -> None:
    """Refuses a text in which registers of a product may be touched while nobody waited for it."""
    if not any(step.opcode == "wgmma" for step in graph.code):
        return
    coming: dict[int, dict[str, int]] = {0: {}}
    work = [0]
    while work:
        number = work.pop()
        block = graph.blocks[number]
        flying = dict(coming[number])
        for step in graph.instructions(block):
            _pass(step, flying)
        for after in block.successors:
            if after not in coming:
                coming[after] = dict(flying)
                work.append(after)
                continue
            known = coming[after]
            fresh = {key: min(age, known.get(key, _OLDEST + 1)) for key, age in flying.items()}
            if any(known.get(key) != age for key, age in fresh.items()):
                known |= fresh
                work.append(after)


def _pass(step: Instruction, flying: dict[str, int]) -> None:
    """Updates how many groups were closed, at least, since each register's wgmma in flight.

    Those of a left matrix have a mark before their names: they may be read.
    """
    read, written = uses(step)
    product = step.opcode == "wgmma" and step.modifiers[0] == "mma_async"
    touched = read - written if product else read | written
    if touched & flying.keys() or {f"{_LEFT}{key}" for key in written} & flying.keys():
        raise NotTaken("a register of a wgmma that may not have been waited for")
    if product:
        sums, left = (registers(step.operands[at : at + 1]) for at in (0, 1))
        flying |= {key: 0 for register in sums for key in keys_of(register)}
        if isinstance(step.operands[1], Vector):
            flying |= {f"{_LEFT}{key}": 0 for register in left for key in keys_of(register)}
    elif step.opcode == "wgmma" and step.modifiers[0] == "commit_group":
        for key in flying:
            flying[key] = min(flying[key] + 1, _OLDEST)
    elif step.opcode == "wgmma" and step.modifiers[0] == "wait_group":
        newest = step.operands[0]
        assert isinstance(newest, Immediate)
        for key in [key for key, age in flying.items() if age > newest.value]:
            del flying[key]


TABLE: dict[str, Spell] = {"wgmma": wgmma}
