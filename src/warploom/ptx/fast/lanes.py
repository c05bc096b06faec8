"""What goes across the lanes of a warp, in C: shuffles, votes, matches, reductions."""

from __future__ import annotations

from warploom.ptx.emulate.shape import type_of
from warploom.ptx.fast.operand import NotTaken, Spell, Writer
from warploom.ptx.ir import Instruction, Operand, Pair

_MODES = ("up", "down", "bfly", "idx")


def members(w: Writer, ins: Instruction, operand: Operand) -> None:
    """The lanes that are named have come, and nobody else."""
    if w.guard:
        raise NotTaken(f"{ins.name} under a predicate")
    w.must(f"named(S, {w.filled(32, w.read(operand, 'b32'))}, @)")


def shfl(w: Writer, ins: Instruction) -> None:
    if "sync" not in ins.modifiers:
        raise NotTaken(ins.name)
    members(w, ins, ins.operands[4])
    target = ins.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    mode = next(n for n, word in enumerate(_MODES) if word in ins.modifiers)
    given = ", ".join(w.filled(32, w.read(each, "b32")) for each in ins.operands[1:4])
    out, inside = w.array(32), w.array(32)
    w.must(f"shuffle({mode}, {given}, @, {out}, {inside})")
    w.write(pair[0], "b32", f"{out}[l]")
    if pair[1] is not None:
        w.write(pair[1], "pred", f"{inside}[l]")


def vote(w: Writer, ins: Instruction) -> None:
    if "sync" not in ins.modifiers:
        raise NotTaken(ins.name)
    members(w, ins, ins.operands[2])
    asked = w.filled(32, w.read(ins.operands[1], "pred"))
    yes = f"y{w.count}"
    w.put(f"const uint32_t {yes} = packed({asked}) & m;")
    if "ballot" in ins.modifiers:
        w.write(ins.operands[0], "b32", yes)
        return
    texts = {"any": f"{yes} != 0", "all": f"{yes} == m", "uni": f"({yes} == m) | ({yes} == 0)"}
    text = next(texts[word] for word in ins.modifiers if word in texts)
    w.write(ins.operands[0], "pred", text)


def activemask(w: Writer, ins: Instruction) -> None:
    if w.guard:
        raise NotTaken("activemask under a predicate")
    w.write(ins.operands[0], "b32", "m")


def redux(w: Writer, ins: Instruction) -> None:
    """One value of all lanes; of floats the least or greatest, in which -0 is below +0."""
    members(w, ins, ins.operands[2])
    kind = type_of(ins)
    name = next(m for m in ins.modifiers if m in ("add", "and", "or", "xor", "min", "max"))
    given = w.filled(32, w.read(ins.operands[1], "u32"))
    w.count += 1
    found = f"y{w.count}"
    if kind == "f32":
        least, keep = int(name == "min"), int("NaN" in ins.modifiers)
        own = f"{given}, m, {least}, {int('abs' in ins.modifiers)}, {keep}"
        w.put(f"const uint32_t {found} = extreme_lane({own});")
    else:
        signed = int(kind == "s32")
        w.put(f"const uint32_t {found} = reduced_{name}({given}, m, {signed});")
    w.write(ins.operands[0], "u32", found)


def match(w: Writer, ins: Instruction) -> None:
    members(w, ins, ins.operands[2])
    bits = int(type_of(ins)[1:])
    given = w.filled(64, f"(uint64_t){w.read(ins.operands[1], f'u{bits}')}")
    out, agree = w.array(32), w.array(32)
    w.put(f"matched({given}, m, {int('all' in ins.modifiers)}, {out}, {agree});")
    target = ins.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    w.write(pair[0], "b32", f"{out}[l]")
    if pair[1] is not None:
        w.write(pair[1], "pred", f"{agree}[l]")


def elect(w: Writer, ins: Instruction) -> None:
    """The lowest lane that is there leads."""
    members(w, ins, ins.operands[1])
    target = ins.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    w.write(pair[0], "b32", "(uint32_t)__builtin_ctz(m)")
    if pair[1] is not None:
        w.write(pair[1], "pred", "l == __builtin_ctz(m)")


TABLE: dict[str, Spell] = {
    "shfl": shfl, "vote": vote, "activemask": activemask, "redux": redux, "match": match,
    "elect": elect,
}  # fmt: skip
