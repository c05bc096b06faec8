"""What goes across the lanes of a warp, in C: shuffles, votes, matches, reductions."""

from __future__ import annotations

from warploom.ptx.fast.operand import LANES, NotTaken, Spell, Writer
from warploom.ptx.ir import Instruction, Operand, Pair
from warploom.ptx.types import type_of

_MODES = ("up", "down", "bfly", "idx")


def members(w: Writer, ins: Instruction, operand: Operand) -> str:
    """The lanes that each lane names, as an array: they have come, and name the same ones."""
    if w.guard:
        raise NotTaken(f"{ins.name} under a predicate")
    given = w.filled(LANES, w.read(operand, "b32"))
    w.must(f"named(S, {given}, @)")
    return given


def shfl(w: Writer, ins: Instruction) -> None:
    if "sync" not in ins.modifiers:
        raise NotTaken(ins.name)
    group = members(w, ins, ins.operands[4])
    target = ins.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    mode = next(n for n, word in enumerate(_MODES) if word in ins.modifiers)
    given = ", ".join(w.filled(LANES, w.read(each, "b32")) for each in ins.operands[1:4])
    out, inside, none = w.array(LANES), w.array(LANES), w.array(1)
    flags = w.flags(ins.operands[1])
    own = w.filled(1, flags) if flags else "0"
    w.must(f"shuffle(L, {mode}, {given}, {group}, @, {out}, {inside}, {own}, {none})")
    w.put("TALLY(shuffles, 1);")
    w.write(pair[0], "b32", f"{out}[l]")
    w.set_flags(pair[0], f"{none}[l]")
    if pair[1] is not None:
        w.write(pair[1], "pred", f"{inside}[l]")
        w.set_flags(pair[1], "0u")


def vote(w: Writer, ins: Instruction) -> None:
    if "sync" not in ins.modifiers:
        raise NotTaken(ins.name)
    group = f"{members(w, ins, ins.operands[2])}[l]"
    asked = w.filled(LANES, w.read(ins.operands[1], "pred"))
    w.count += 1
    yes = f"y{w.count}"
    w.put(f"const uint32_t {yes} = packed({asked}) & m;")
    if "ballot" in ins.modifiers:
        w.write(ins.operands[0], "b32", f"{yes} & {group}")
        return
    every, none = f"({yes} & {group}) == (m & {group})", f"({yes} & {group}) == 0"
    texts = {"any": f"({yes} & {group}) != 0", "all": every, "uni": f"({every}) | ({none})"}
    text = next(texts[word] for word in ins.modifiers if word in texts)
    w.write(ins.operands[0], "pred", text)


def activemask(w: Writer, ins: Instruction) -> None:
    """Under a predicate: the lanes for which it holds."""
    if not w.guard:
        w.write(ins.operands[0], "b32", "m")
        return
    w.count += 1
    w.put(f"const uint32_t y{w.count} = m & packed({w.guard});")
    w.write(ins.operands[0], "b32", f"y{w.count}")


def redux(w: Writer, ins: Instruction) -> None:
    """One value of all lanes; of floats the least or greatest, in which -0 is below +0."""
    group = members(w, ins, ins.operands[2])
    kind = type_of(ins)
    name = next(m for m in ins.modifiers if m in ("add", "and", "or", "xor", "min", "max"))
    given, out = w.filled(LANES, w.bits(ins.operands[1], kind)), w.array(LANES)
    made = f"reduced_{name}({given}, group, {int(kind == 's32')})"
    if kind == "f32":
        least, keep = int(name == "min"), int("NaN" in ins.modifiers)
        made = f"extreme_lane({given}, group, {least}, {int('abs' in ins.modifiers)}, {keep})"
    w.put(f"EACH_GROUP({group}, m, {out}, {made})")
    w.write(ins.operands[0], "u32", f"{out}[l]")


def match(w: Writer, ins: Instruction) -> None:
    group = members(w, ins, ins.operands[2])
    bits = int(type_of(ins)[1:])
    given = w.filled(64, f"(uint64_t){w.read(ins.operands[1], f'u{bits}')}")
    out, agree = w.array(LANES), w.array(LANES)
    w.put(f"matched({given}, {group}, m, {int('all' in ins.modifiers)}, {out}, {agree});")
    target = ins.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    w.write(pair[0], "b32", f"{out}[l]")
    if pair[1] is not None:
        w.write(pair[1], "pred", f"{agree}[l]")


def elect(w: Writer, ins: Instruction) -> None:
    """The lowest lane that is there and named leads."""
    group = members(w, ins, ins.operands[1])
    target = ins.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target, None)
    leads = f"__builtin_ctz(m & {group}[l])"
    w.write(pair[0], "b32", f"on[l] ? (uint32_t){leads} : 0")
    if pair[1] is not None:
        w.write(pair[1], "pred", f"on[l] ? l == {leads} : 0")


def join(w: Writer, ins: Instruction) -> None:
    """A barrier that reduces: what this warp brings, and where its lanes will find the result."""
    if w.watched:
        raise NotTaken(f"{ins.name} with uninitialised values")
    counts = "popc" in ins.modifiers
    how = "COUNTED" if counts else "EVERY" if "and" in ins.modifiers else "SOME"
    yes = w.filled(1, w.read(ins.operands[-1], "pred"))
    place = w.lasting_array(ins.operands[0], LANES if counts else 1)
    w.put(f"S->yes = __builtin_popcount(packed({yes}) & m); S->came = __builtin_popcount(m);")
    w.put(f"S->how = {how}; S->joined = {place};")


TABLE: dict[str, Spell] = {
    "shfl": shfl, "vote": vote, "activemask": activemask, "redux": redux, "match": match,
    "elect": elect,
}  # fmt: skip
