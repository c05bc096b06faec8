"""What PTX ISA 9.0 may spell: for every opcode rows of modifiers and operands, rather too many.

The rows are written as in `warploom.ptx.opcode`; operands that begin with `%`, `[`, `{` or a digit
stand for themselves, others are filled in by `spelling`. Which spellings exist is for ptxas to say;
`bench/ptx/isa.py` asks it, and lists which of them the emulator runs and which it refuses.
"""

from __future__ import annotations

from warploom.ptx.opcode import Opcode, opcode

TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")
HEADER = """.version 9.0
.target {target}
.address_size 64
.visible .entry k()
{{ .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<140>; .reg .b64 %l<70>; .reg .b128 %q<9>; .reg .b8 %c<9>;
.reg .f32 %f<140>; .reg .f64 %d<40>; .local .align 16 .b8 own[32]; .shared .align 128 .b8 tile[4096];
"""
_INTEGER = "u8|u16|u32|u64|s8|s16|s32|s64"
_FLOAT = "f16|f16x2|bf16|bf16x2|f32|f32x2|f64|tf32"
_PACKED = "u16x2|s16x2|u8x4|s8x4"
_BITS = "b8|b16|b32|b64|b128"
_FP8 = "e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2|ue8m0x2"
_CHOICES = {
    "integer": _INTEGER, "float": _FLOAT, "packed": _PACKED, "bits": _BITS,
    "number": f"{_INTEGER}|{_FLOAT}|{_PACKED}", "every": f"pred|{_INTEGER}|{_FLOAT}|{_PACKED}|{_BITS}",
    "plain": f"{_BITS}|{_INTEGER}|f16|f16x2|bf16|f32|f64",
    "fp8": _FP8, "fp8x4": "e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4",
    "round": "rn|rz|rm|rp|rna|rs", "integral": "rni|rzi|rmi|rpi",
    "compare": "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan",
    "join": "and|or|xor",
    "scope": "cta|cluster|gpu|sys", "semantics": "relaxed|acquire|release|acq_rel|sc|weak|volatile",
    "space": "global|shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func",
    "shared": "shared|shared::cta|shared::cluster",
    "cache": "ca|cg|cs|lu|cv|wb|wt",
    "evict": "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
    "evict_far": "L2::evict_normal|L2::evict_first|L2::evict_last", "fetch": "L2::64B|L2::128B|L2::256B",
    "vector": "v2|v4|v8",
    "ordered_load": "|".join(f"{w}.{s}" for w in ("relaxed", "acquire") for s in ("cta", "cluster", "gpu", "sys")),
    "ordered_store": "|".join(f"{w}.{s}" for w in ("relaxed", "release") for s in ("cta", "cluster", "gpu", "sys")),
    "mixed": "f16|bf16", "tex_to": "f32|s32|u32",
}  # fmt: skip

_SURFACES = (("1d", "[%l1,{%r2}]"), ("2d", "[%l1,{%r2,%r3}]"), ("3d", "[%l1,{%r2,%r3,%r4,%r4}]"),
             ("a1d", "[%l1,{%r2,%r3}]"), ("a2d", "[%l1,{%r2,%r3,%r4,%r4}]"))  # fmt: skip
_TEXELS = (("b8|b16", "{%h1}"), ("v2.b8|v2.b16", "{%h1,%h2}"), ("v4.b8|v4.b16", "{%h1,%h2,%h3,%h4}"), ("b32", "{%r1}"),
           ("v2.b32", "{%r1,%r2}"), ("v4.b32", "{%r1,%r2,%r3,%r4}"), ("b64", "{%l1}"), ("v2.b64", "{%l1,%l2}"))  # fmt: skip


def _op(name: str, operands: str, rows: str) -> Opcode:
    return opcode(name, operands, rows, _CHOICES)


_ARITHMETIC = """
    {integer}|{packed}
    sat|cc {integer}|{packed}
    {round}? ftz? sat|relu? {float}
    {round}? ftz? sat? f32 {mixed}
"""
_EXTREME = """
    relu? {integer}|{packed}
    ftz? NaN? xorsign.abs? {float}
    ftz? NaN? relu? {float}
    ftz? NaN? abs? {float} = d a b c
"""
_ONE = "approx|full|{round}? ftz? {float}"
_FLOATS = (
    _op("add", "d a b", _ARITHMETIC), _op("sub", "d a b", _ARITHMETIC),
    _op("mul", "d a b", "lo|hi|wide {integer}|{packed}" + _ARITHMETIC),
    _op("mad", "d a b c", """
        lo|hi|wide sat? cc? {integer}
        {round}? ftz? sat? {float}
    """),
    _op("fma", "d a b c", """
        {round}? ftz? sat|relu? {float}
        {round}? oob relu? {float}
        {round}? ftz? sat? f32 {mixed}
    """),
    _op("div", "d a b", "{integer}|{packed}\napprox|full|{round}? ftz? {float}"),
    _op("rem", "d a b", "{integer}|{packed}"),
    _op("min", "d a b", _EXTREME), _op("max", "d a b", _EXTREME),
    _op("neg", "d a", "ftz? {number}"), _op("abs", "d a", "ftz? {number}"),
    *(_op(name, "d a", _ONE) for name in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh")),
    _op("copysign", "d a b", "{float}"),
    _op("testp", "d a", "finite|infinite|number|notanumber|normal|subnormal {float}"),
)  # fmt: skip
_INTEGERS = (
    *(_op(name, "d a b", "cc? {integer}") for name in ("addc", "subc")),
    _op("madc", "d a b c", "lo|hi|wide cc? {integer}"),
    _op("mul24", "d a b", "lo|hi {integer}"), _op("mad24", "d a b c", "lo|hi sat? {integer}"),
    _op("sad", "d a b c", "{integer}|{packed}"),
    _op("dp4a", "d a b c", "u32|s32|u64|s64 u32|s32"), _op("dp2a", "d a b c", "lo|hi u32|s32 u32|s32"),
    *(_op(name, "d a", "{bits}|{integer}") for name in ("popc", "clz", "brev")),
    _op("bfind", "d a", "shiftamt? {bits}|{integer}"), _op("fns", "d a b c", "{bits}"),
    _op("bfe", "d a b c", "{bits}|{integer}"), _op("bfi", "d a b c e", "{bits}|{integer}"),
    _op("bmsk", "d a b", "clamp|wrap {bits}"), _op("szext", "d a b", "clamp|wrap {integer}"),
    *(_op(name, "d a b", "pred|{bits}|{integer}") for name in ("and", "or", "xor")),
    *(_op(name, "d a", "pred|{bits}|{integer}") for name in ("not", "cnot")),
    *(_op(name, "d a b", "{bits}|{integer}") for name in ("shl", "shr")),
    _op("shf", "d a b c", "l|r clamp|wrap {bits}"),
    _op("lop3", "d a b c t", "b32|b64\nand|or b32 = %r1|%p1 a b c t %p2"),
    _op("prmt", "d a b c", "b32 f4e|b4e|rc8|ecl|ecr|rc16?"),
)  # fmt: skip
_COMPARISONS = (
    _op("setp", "d|p a b", "{compare} ftz? {bits}|{number}\n{compare} {join} ftz? {bits}|{number} = d|p a b c"),
    _op("set", "d a b", "{compare} ftz? u16|s16|u32|s32|f16|f16x2|bf16|bf16x2|f32 {bits}|{number}\n"
        "{compare} {join} ftz? u16|s16|u32|s32|f16|f16x2|bf16|bf16x2|f32 {bits}|{number} = d a b c"),
    _op("selp", "d a b c", "{every}"), _op("slct", "d a b c", "ftz? {every} s32|f32\n{every} ftz f32"),
)  # fmt: skip
_CONVERSIONS = (
    _op("cvt", "d a", """
        {integral}|{round}? ftz? sat? {integer}|{float} {integer}|{float}
        {round}? satfinite? relu? ftz? f16|bf16|tf32 f32
        {round}? relu? satfinite? f16|bf16|tf32 f32
        {round}? relu? satfinite? f16x2|bf16x2 f32 = d a b
        rs relu? satfinite? f16x2|bf16x2 f32 = d a b %r5
        {round}? satfinite? relu? {fp8} f32 = d a b
        {round}? satfinite? relu? {fp8} f16x2|bf16x2
        {round}? relu? f16x2|bf16x2 {fp8}
        rs relu? satfinite {fp8x4} f32 = d {%f1,%f2,%f3,%f4} %r5
        pack sat u16|s16|u8|s8 s32 = d a b
        pack sat u16|s16|u8|s8|u4|s4|u2|s2 s32 b32 = d a b c
    """),
    _op("mov", "d a", "v2|v4? {every}"),
    _op("cvta", "d a", "to? {space} u32|u64"), _op("isspacep", "d a", "{space}"),
    _op("mapa", "d a %r1", "{shared}? u32|u64"), _op("getctarank", "%r1 a", "{shared}? u32|u64"),
    _op("istypep", "%p1 %l1", "texref|samplerref|surfref"),
)  # fmt: skip
_MEMORY = (
    _op("ld", "d [a]", """
        weak? {space}? {cache}? {evict}? {evict_far}? {fetch}? {vector}? {plain}
        weak? {space}? {cache}? {evict}? {evict_far}? L2::cache_hint {fetch}? {vector}? {plain} = d [a] p
        volatile|mmio.relaxed.sys|{ordered_load} {space}? {evict}? {fetch}? {vector}? {plain}
        {ordered_load} {space}? {evict}? L2::cache_hint {fetch}? {vector}? {plain} = d [a] p
        global {cache}? nc {evict}? {evict_far}? {fetch}? {vector}? {plain}
        global {cache}? nc {evict}? {evict_far}? L2::cache_hint {fetch}? {vector}? {plain} = d [a] p
    """),
    _op("ldu", "d [a]", "global? {vector}? {plain}"),
    _op("st", "[a] b", """
        weak? {space}? {cache}? {evict}? {evict_far}? {vector}? {plain}
        weak? {space}? {evict}? {evict_far}? L2::cache_hint {vector}? {plain} = [a] b p
        volatile|mmio.relaxed.sys|{ordered_store} {space}? {evict}? {vector}? {plain}
        {ordered_store} {space}? {evict}? L2::cache_hint {vector}? {plain} = [a] b p
        async weak? shared::cluster? mbarrier::complete_tx::bytes {vector}? b32|b64|u32|s32|f32|u64|s64|f64 = [%r1] b [%r2]
        bulk weak? shared::cta = [%r1] %l1 0
    """),
    _op("atom", "d [a] b", """
        {semantics}? {scope}? global|{shared}? and|or|xor|exch|add|inc|dec|min|max {bits}|{number}
        {semantics}? {scope}? global|{shared}? add|min|max noftz f16|f16x2|bf16|bf16x2
        {semantics}? {scope}? global|{shared}? cas|cas.noftz {bits} = d [a] b c
        global|{shared} {scope} and|or|xor|exch|add|inc|dec|min|max {bits}|{number}
        global|{shared} {scope} add|min|max noftz f16|f16x2|bf16|bf16x2
        global|{shared} {scope} cas {bits} = d [a] b c
        {semantics}? {scope}? global? add|min|max noftz? {vector} f16|f16x2|bf16|bf16x2|f32
        {semantics}? {scope}? global? add|min|max noftz? L2::cache_hint {vector}? f16|f16x2|bf16|bf16x2|f32|f64 = d [a] b p
        {semantics}? {scope}? global? and|or|xor|exch|add|inc|dec|min|max L2::cache_hint {bits}|{number} = d [a] b p
    """),
    _op("red", "[a] b", """
        {semantics}? {scope}? global|{shared}? and|or|xor|exch|add|inc|dec|min|max {bits}|{number}
        {semantics}? {scope}? global|{shared}? add|min|max noftz f16|f16x2|bf16|bf16x2
        {semantics}? {scope}? global? add|min|max noftz? {vector} f16|f16x2|bf16|bf16x2|f32
        {semantics}? {scope}? global? add|min|max noftz? L2::cache_hint {vector}? f16|f16x2|bf16|bf16x2|f32|f64 = [a] b p
        {semantics}? {scope}? global? and|or|xor|add|inc|dec|min|max L2::cache_hint {bits}|{number} = [a] b p
        global|{shared} {scope} and|or|xor|add|inc|dec|min|max {bits}|{number}
        global|{shared} {scope} add|min|max noftz f16|f16x2|bf16|bf16x2
        async relaxed cluster global|shared::cluster? mbarrier::complete_tx::bytes inc|dec|min|max|and|or|xor|add u32|s32|u64|b32 = [%r1] b [%r2]
    """),
    _op("cp", "", """
        async ca|cg {shared} global {fetch}? = [%r1] [%l1] 16
        async ca|cg {shared} global L2::cache_hint {fetch}? = [%r1] [%l1] 16 %l2
        async commit_group|wait_all
        async wait_group = 0
        async mbarrier arrive noinc? {shared}? b64 = [%r1]
        async bulk shared::cluster|shared::cta global mbarrier::complete_tx::bytes = [%r1] [%l1] %r2 [%r3]
        async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster = [%r1] [%l1] %r2 [%r3] %h1
        async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint = [%r1] [%l1] %r2 [%r3] %h1 %l2
        async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes = [%r1] [%r4] %r2 [%r3]
        async bulk global shared::cta bulk_group cp_mask? = [%l1] [%r1] %r2
        async bulk global shared::cta bulk_group L2::cache_hint = [%l1] [%r1] %r2 %l2
        async bulk shared::cluster global mbarrier::complete_tx::bytes L2::cache_hint = [%r1] [%l1] %r2 [%r3] %l2
        async bulk commit_group
        async bulk wait_group read? = 0
        async bulk prefetch L2 global = [%l1] %r2
        async bulk prefetch L2 global L2::cache_hint = [%l1] %r2 %l2
        async bulk prefetch tensor 1d L2 global tile? = [%l1,{%r2}]
        async bulk prefetch tensor 1d L2 global tile? L2::cache_hint = [%l1,{%r2}] %l2
        async bulk prefetch tensor 2d L2 global tile? = [%l1,{%r2,%r4}]
        async bulk prefetch tensor 2d L2 global tile? L2::cache_hint = [%l1,{%r2,%r4}] %l2
        async bulk prefetch tensor 3d L2 global tile? = [%l1,{%r2,%r4,%r5}]
        async bulk prefetch tensor 3d L2 global tile? L2::cache_hint = [%l1,{%r2,%r4,%r5}] %l2
        async bulk prefetch tensor 4d L2 global tile? = [%l1,{%r2,%r4,%r5,%r6}]
        async bulk prefetch tensor 4d L2 global tile? L2::cache_hint = [%l1,{%r2,%r4,%r5,%r6}] %l2
        async bulk prefetch tensor 5d L2 global tile? = [%l1,{%r2,%r4,%r5,%r6,%r7}]
        async bulk prefetch tensor 5d L2 global tile? L2::cache_hint = [%l1,{%r2,%r4,%r5,%r6,%r7}] %l2
        async bulk tensor 1d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes = [%r1] [%l1,{%r2}] [%r3]
        async bulk tensor 2d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes = [%r1] [%l1,{%r2,%r4}] [%r3]
        async bulk tensor 3d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes = [%r1] [%l1,{%r2,%r4,%r5}] [%r3]
        async bulk tensor 4d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes = [%r1] [%l1,{%r2,%r4,%r5,%r6}] [%r3]
        async bulk tensor 5d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes = [%r1] [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r3]
        async bulk tensor 1d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster = [%r1] [%l1,{%r2}] [%r3] %h1
        async bulk tensor 1d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint = [%r1] [%l1,{%r2}] [%r3] %h1 %l2
        async bulk tensor 2d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster = [%r1] [%l1,{%r2,%r4}] [%r3] %h1
        async bulk tensor 2d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint = [%r1] [%l1,{%r2,%r4}] [%r3] %h1 %l2
        async bulk tensor 3d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster = [%r1] [%l1,{%r2,%r4,%r5}] [%r3] %h1
        async bulk tensor 3d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint = [%r1] [%l1,{%r2,%r4,%r5}] [%r3] %h1 %l2
        async bulk tensor 4d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster = [%r1] [%l1,{%r2,%r4,%r5,%r6}] [%r3] %h1
        async bulk tensor 4d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint = [%r1] [%l1,{%r2,%r4,%r5,%r6}] [%r3] %h1 %l2
        async bulk tensor 5d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster = [%r1] [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r3] %h1
        async bulk tensor 5d shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster L2::cache_hint = [%r1] [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r3] %h1 %l2
        async bulk tensor 3d shared::cluster global im2col mbarrier::complete_tx::bytes = [%r1] [%l1,{%r2,%r4,%r5}] [%r3] {%h1}
        async bulk tensor 4d shared::cluster global im2col mbarrier::complete_tx::bytes = [%r1] [%l1,{%r2,%r4,%r5,%r6}] [%r3] {%h1,%h2}
        async bulk tensor 1d shared::cluster global tile? mbarrier::complete_tx::bytes L2::cache_hint = [%r1] [%l1,{%r2}] [%r3] %l2
        async bulk tensor 1d global shared::cta tile? bulk_group L2::cache_hint = [%l1,{%r2}] [%r1] %l2
        async bulk tensor 1d global shared::cta tile? bulk_group = [%l1,{%r2}] [%r1]
        async bulk tensor 2d shared::cluster global tile? mbarrier::complete_tx::bytes L2::cache_hint = [%r1] [%l1,{%r2,%r4}] [%r3] %l2
        async bulk tensor 2d global shared::cta tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4}] [%r1] %l2
        async bulk tensor 3d shared::cluster global tile? mbarrier::complete_tx::bytes L2::cache_hint = [%r1] [%l1,{%r2,%r4,%r5}] [%r3] %l2
        async bulk tensor 3d global shared::cta tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4,%r5}] [%r1] %l2
        async bulk tensor 4d shared::cluster global tile? mbarrier::complete_tx::bytes L2::cache_hint = [%r1] [%l1,{%r2,%r4,%r5,%r6}] [%r3] %l2
        async bulk tensor 4d global shared::cta tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4,%r5,%r6}] [%r1] %l2
        async bulk tensor 4d global shared::cta tile? bulk_group = [%l1,{%r2,%r4,%r5,%r6}] [%r1]
        async bulk tensor 5d shared::cluster global tile? mbarrier::complete_tx::bytes L2::cache_hint = [%r1] [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r3] %l2
        async bulk tensor 5d global shared::cta tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r1] %l2
        async bulk tensor 5d global shared::cta tile? bulk_group = [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r1]
        async bulk tensor 2d global shared::cta tile? bulk_group = [%l1,{%r2,%r4}] [%r1]
        async bulk tensor 3d global shared::cta tile|im2col_no_offs? bulk_group = [%l1,{%r2,%r4,%r5}] [%r1]
        reduce async bulk global shared::cta bulk_group add|min|max|inc|dec|and|or|xor u32|s32|u64|s64|b32|b64|f16|bf16|f32|f64 = [%l1] [%r1] %r2
        reduce async bulk global shared::cta bulk_group add noftz f16|bf16 = [%l1] [%r1] %r2
        reduce async bulk global shared::cta bulk_group L2::cache_hint add|min|max|inc|dec|and|or|xor u32|s32|u64|s64|b32|b64|f16|bf16|f32|f64 = [%l1] [%r1] %r2 %l2
        reduce async bulk global shared::cta bulk_group L2::cache_hint add noftz f16|bf16 = [%l1] [%r1] %r2 %l2
        reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes add|min|max|inc|dec|and|or|xor u32|s32|u64|b32 = [%r1] [%r4] %r2 [%r3]
        reduce async bulk tensor 1d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group = [%l1,{%r2}] [%r1]
        reduce async bulk tensor 1d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint = [%l1,{%r2}] [%r1] %l2
        reduce async bulk tensor 2d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group = [%l1,{%r2,%r4}] [%r1]
        reduce async bulk tensor 2d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4}] [%r1] %l2
        reduce async bulk tensor 3d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group = [%l1,{%r2,%r4,%r5}] [%r1]
        reduce async bulk tensor 3d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4,%r5}] [%r1] %l2
        reduce async bulk tensor 4d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group = [%l1,{%r2,%r4,%r5,%r6}] [%r1]
        reduce async bulk tensor 4d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4,%r5,%r6}] [%r1] %l2
        reduce async bulk tensor 5d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group = [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r1]
        reduce async bulk tensor 5d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint = [%l1,{%r2,%r4,%r5,%r6,%r7}] [%r1] %l2
    """),
    _op("prefetch", "[a]", "global|local|const|param|tensormap? L1|L2\nglobal L2::evict_last|L2::evict_normal\nconst|param? tensormap"),
    _op("prefetchu", "[a]", "L1"), _op("applypriority", "[a] n", "global? L2::evict_normal"),
    _op("discard", "[a] n", "global? L2"),
    _op("createpolicy", "%l1", """
        fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged L2::evict_first|L2::evict_unchanged? b64 = %l1 0f3F800000
        range global? L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged L2::evict_first|L2::evict_unchanged? b64 = %l1 [%l2] %r1 %r2
        cvt L2 b64 = %l1 %l2
    """),
    _op("multimem", "%r1 [%l1]", """
        ld_reduce weak|relaxed.gpu|relaxed.sys|acquire.gpu? global? min|max|add|and|or|xor u32|s32|u64|s64|b32|b64|f32|f64 = d [%l1]
        ld_reduce relaxed.gpu? global? min|max|add acc::f32? f16x2|bf16x2 = %r1 [%l1]
        ld_reduce relaxed.gpu? global? min|max|add v4 f32|f16x2|bf16x2 = {%r1,%r2,%r3,%r4} [%l1]
        st weak|relaxed.gpu|release.gpu? global? u32|s32|u64|s64|b32|b64|f32|f64 = [%l1] b
        red relaxed.gpu|release.gpu? global? min|max|add|and|or|xor u32|s32|u64|s64|b32|b64|f32|f64 = [%l1] b
        red relaxed.gpu? global? min|max|add v2|v4 f16x2|bf16x2 = [%l1] {%r1,%r2}
    """),
    _op("membar", "", "cta|gl|sys\nproxy.alias|proxy.async"),
    _op("fence", "", """
        sc|acq_rel|acquire|release? {scope}
        acquire|release sync_restrict::shared::cluster|sync_restrict::shared::cta cluster
        mbarrier_init.release.cluster
        proxy.alias|proxy.async|proxy.async.global|proxy.async.shared::cta|proxy.async.shared::cluster
        proxy.tensormap::generic release {scope}
        proxy.tensormap::generic acquire {scope} = [%l1] 128
        proxy.async::generic acquire|release sync_restrict::shared::cluster|sync_restrict::shared::cta cluster
    """),
    _op("tensormap", "[%l1]", """
        replace tile global_address global|shared::cta? b1024 b64 = [%l1] %l2
        replace tile rank|elemtype|interleave_layout|swizzle_mode|fill_mode|swizzle_atomicity global|shared::cta? b1024 b32 = [%l1] 1
        replace tile box_dim|global_dim|element_stride global|shared::cta? b1024 b32 = [%l1] 0 %r1
        replace tile global_stride global|shared::cta? b1024 b64 = [%l1] 0 %l2
        cp_fenceproxy global shared::cta tensormap::generic release {scope} sync aligned = [%l1] [%r1] 128
    """),
    _op("griddepcontrol", "", "launch_dependents|wait"),
    _op("clusterlaunchcontrol", "", """
        try_cancel async shared::cta? mbarrier::complete_tx::bytes multicast::cluster::all? b128 = [%r1] [%r2]
        query_cancel is_canceled pred b128 = %p1 %q1
        query_cancel get_first_ctaid v4 b32 b128 = {%r1,%r2,%r3,%r4} %q1
        query_cancel get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z b32 b128 = %r1 %q1
    """),
    _op("mbarrier", "[%r1]", """
        init|inval {shared}? b64 = [%r1]
        init {shared}? b64 = [%r1] 1
        expect_tx|complete_tx relaxed? {scope}? {shared}? b64 = [%r1] 16
        arrive|arrive_drop relaxed|release? cta|cluster? {shared}? b64 = %l1 [%r1]
        arrive|arrive_drop relaxed|release? cta|cluster? {shared}? b64 = %l1 [%r1] 2
        arrive|arrive_drop release? cta|cluster? shared::cluster b64 = _ [%r1] 2
        arrive|arrive_drop expect_tx relaxed|release? cta|cluster? {shared}? b64 = %l1 [%r1] 16
        arrive|arrive_drop expect_tx release? cta|cluster? shared::cluster b64 = _ [%r1] 16
        arrive|arrive_drop noComplete release? cta? {shared}? b64 = %l1 [%r1] 2
        test_wait|try_wait acquire|relaxed? cta|cluster? {shared}? b64 = %p1 [%r1] %l1
        test_wait|try_wait parity acquire|relaxed? cta|cluster? {shared}? b64 = %p1 [%r1] %r2
        try_wait parity? acquire? cta? {shared}? b64 = %p1 [%r1] %r2 %r3
        pending_count b64 = %r1 %l1
    """),
)  # fmt: skip
_LANES = (
    _op("shfl", "d|p a b c", "sync up|down|bfly|idx {bits} = d|p a b c m"),
    _op("vote", "d a", "sync all|any|uni pred = d a m\nsync ballot b32 = d a m"),
    _op("match", "d a m", "any sync b32|b64\nall sync b32|b64 = d|p a m"),
    _op("redux", "d a m", "sync add|min|max|and|or|xor u32|s32|b32|u64|f16|f32\nsync min|max abs? NaN? f32"),
    _op("elect", "d|p m", "sync"), _op("activemask", "d", "b32"),
)  # fmt: skip
_FLOW = (
    _op("bra", "L", "uni?"), _op("ret", "", "uni?"), _op("exit", "", "."), _op("trap", "", "."), _op("brkpt", "", "."),
    _op("bar", "a b?", "cta? sync = 1\ncta? sync = 1 64\ncta? arrive = 1 64\ncta? red popc u32 = %r1 1 %p1\n"
        "cta? red and|or pred = %p1 1 64 %p2\nwarp sync = m"),
    _op("barrier", "a b?", "cta? sync aligned? = 1\ncta? sync aligned? = 1 64\ncta? arrive aligned? = 1 64\n"
        "cta? red popc aligned? u32 = %r1 1 %p1\ncta? red and|or aligned? pred = %p1 1 64 %p2\n"
        "cluster arrive release|relaxed? aligned?\ncluster wait acquire? aligned?"),
    _op("nanosleep", "a", "u32"), _op("pmevent", "1", "mask?"), _op("setmaxnreg", "64", "inc|dec sync aligned u32"),
    _op("stacksave", "d", "u32|u64"), _op("stackrestore", "a", "u32|u64"), _op("alloca", "%l1 %l2", "u32|u64"),
)  # fmt: skip


def _registers(bank: str, count: int, first: int = 1) -> str:
    return "{" + ",".join(f"%{bank}{number}" for number in range(first, first + count)) + "}"


def _products() -> str:
    """mma of every shape: registers of d, a, b and c by type."""
    rows = []
    for shape, kinds, a, b in (
        ("m8n8k4", "f16", 2, 2), ("m16n8k8", "f16|bf16", 2, 1), ("m16n8k16", "f16|bf16", 4, 2), ("m16n8k4", "tf32", 2, 1),
        ("m16n8k8", "tf32", 4, 2), ("m16n8k16", "e4m3|e5m2", 2, 1), ("m16n8k32", "e4m3|e5m2", 4, 2),
    ):  # fmt: skip
        counts = {"f32": 8 if shape == "m8n8k4" else 4, "f16": 4 if shape == "m8n8k4" else 2}
        for result in ("f32", "f16"):
            bank = "f" if result == "f32" else "r"
            accumulator = _registers(bank, counts[result])
            rows.append(f"sync aligned {shape} row|col row|col {result} {kinds} {kinds} {result} = "
                        f"{accumulator} {_registers('r', a, 20)} {_registers('r', b, 30)} {accumulator}")  # fmt: skip
    for shape, kinds, d, a, b in (
        ("m8n8k16", "u8|s8", 2, 1, 1), ("m16n8k16", "u8|s8", 4, 2, 1), ("m16n8k32", "u8|s8", 4, 4, 2),
        ("m8n8k32", "u4|s4", 2, 1, 1), ("m16n8k32", "u4|s4", 4, 2, 1), ("m16n8k64", "u4|s4", 4, 4, 2),
    ):  # fmt: skip
        rows.append(f"sync aligned {shape} row col satfinite? s32 {kinds} {kinds} s32 = {_registers('r', d)} "
                    f"{_registers('r', a, 20)} {_registers('r', b, 30)} {_registers('r', d)}")  # fmt: skip
    for shape, d, a, b in (("m8n8k128", 2, 1, 1), ("m16n8k128", 4, 2, 1), ("m16n8k256", 4, 4, 2)):
        rows.append(f"sync aligned {shape} row col s32 b1 b1 s32 xor.popc|and.popc = {_registers('r', d)} "
                    f"{_registers('r', a, 20)} {_registers('r', b, 30)} {_registers('r', d)}")  # fmt: skip
    for shape, d, a, b in (
        ("m8n8k4", 2, 1, 1),
        ("m16n8k4", 4, 2, 1),
        ("m16n8k8", 4, 4, 2),
        ("m16n8k16", 4, 8, 4),
    ):
        rows.append(f"sync aligned {shape} row col {'rn|rz|rm|rp?'} f64 f64 f64 f64 = {_registers('d', d)} "
                    f"{_registers('d', a, 10)} {_registers('d', b, 20)} {_registers('d', d)}")  # fmt: skip
    rows += [
        f"sync aligned m16n8k32 row col kind::f8f6f4 f32|f16 e4m3|e5m2|e3m2|e2m3|e2m1 e4m3|e5m2|e3m2|e2m3|e2m1 f32|f16 = {_registers('f', 4)} {_registers('r', 4, 20)} {_registers('r', 2, 30)} {_registers('f', 4)}",
        f"sync aligned m16n8k64 row col kind::mxf4|kind::mxf4nvf4 block_scale scale_vec::2X|scale_vec::4X? f32 e2m1 e2m1 f32 ue8m0|ue4m3 = {_registers('f', 4)} {_registers('r', 4, 20)} {_registers('r', 2, 30)} {_registers('f', 4)} %r1 {{%h1,%h2}} %r2 {{%h1,%h2}}",
        f"sync aligned m16n8k32 row col kind::mxf8f6f4 block_scale scale_vec::1X? f32 e4m3|e2m1 e4m3|e2m1 f32 ue8m0 = {_registers('f', 4)} {_registers('r', 4, 20)} {_registers('r', 2, 30)} {_registers('f', 4)} %r1 {{%h1,%h2}} %r2 {{%h1,%h2}}",
        f"sp|sp::ordered_metadata sync aligned m16n8k32 row col f32 f16|bf16 f16|bf16 f32 = {_registers('f', 4)} {_registers('r', 4, 20)} {_registers('r', 4, 30)} {_registers('f', 4)} %r1 0x0",
        f"sp|sp::ordered_metadata sync aligned m16n8k64 row col satfinite? s32 s8|u8 s8|u8 s32 = {_registers('r', 4)} {_registers('r', 4, 20)} {_registers('r', 4, 30)} {_registers('r', 4)} %r10 0x0",
        f"sp|sp::ordered_metadata sync aligned m16n8k64 row col f32 e4m3|e5m2 e4m3|e5m2 f32 = {_registers('f', 4)} {_registers('r', 4, 20)} {_registers('r', 4, 30)} {_registers('f', 4)} %r10 0x0",
    ]
    return "\n".join(rows)


def _wmma() -> str:
    f8, r8 = _registers("f", 8), _registers("r", 8)
    shapes = "m16n16k16|m8n32k16|m32n8k16"
    totals = [(shapes, "f32", f8), (shapes, "f16", _registers("r", 4)), (shapes, "s32", r8),
              ("m16n16k8", "f32", f8), ("m8n8k4", "f64", "{%d1,%d2}")]  # fmt: skip
    factors = [("a|load.b", "m16n16k8", "tf32", 4), ("a|load.b", "m16n16k16", "bf16", 4),
               ("a|load.b", "m16n16k16", "u8|s8", 2)]  # fmt: skip
    for kinds, few, many in (("bf16", 2, 8), ("u8|s8", 1, 4)):
        factors += [("a", "m8n32k16", kinds, few), ("b", "m8n32k16", kinds, many),
                    ("a", "m32n8k16", kinds, many), ("b", "m32n8k16", kinds, few)]  # fmt: skip
    return "\n".join([
        f"load.a|load.b sync aligned row|col {shapes} global|shared|shared::cta? f16 = {r8} [%l1] %r9",
        *(f"load.c sync aligned row|col {shape} global|shared|shared::cta? {kind} = {held} [%l1] %r9"
          for shape, kind, held in totals),
        *(f"store.d sync aligned row|col {shape} global|shared|shared::cta? {kind} = [%l1] {held} %r9"
          for shape, kind, held in totals),
        *(f"load.{which} sync aligned row|col {shape} global|shared|shared::cta? {kinds} = {_registers('r', count)} [%l1] %r9"
          for which, shape, kinds, count in factors),
        "load.a|load.b sync aligned row|col m8n8k4 global|shared|shared::cta? f64 = {%d1} [%l1] %r9",
        *(f"mma sync aligned row|col row|col {shape} f32 bf16 bf16 f32 = {f8} {_registers('r', a)} {_registers('r', b)} {f8}"
          for shape, a, b in (("m16n16k16", 4, 4), ("m8n32k16", 2, 8), ("m32n8k16", 8, 2))),
        *(f"mma sync aligned row|col row|col {shape} s32 u8|s8 u8|s8 s32 satfinite? = {r8} {_registers('r', a)} {_registers('r', b)} {r8}"
          for shape, a, b in (("m8n32k16", 1, 4), ("m32n8k16", 4, 1))),
        f"mma sync aligned row|col row|col {shapes} f32 f32 = {f8} {r8} {r8} {f8}",
        f"mma sync aligned row|col row|col {shapes} f16 f16 satfinite? = {_registers('r', 4)} {r8} {r8} {_registers('r', 4)}",
        f"mma sync aligned row|col row|col m16n16k16 f32 bf16 bf16 f32 = {f8} {_registers('r', 4)} {_registers('r', 4)} {f8}",
        f"mma sync aligned row|col row|col m16n16k8 f32 tf32 tf32 f32 = {f8} {_registers('r', 4)} {_registers('r', 4)} {f8}",
        f"mma sync aligned row|col row|col m16n16k16 s32 u8|s8 u8|s8 s32 satfinite? = {r8} {_registers('r', 2)} {_registers('r', 2)} {r8}",
        "mma sync aligned row|col row|col m8n8k4 rn|rz|rm|rp? f64 f64 f64 f64 = {%d1,%d2} {%d3} {%d4} {%d1,%d2}",
    ])  # fmt: skip


def _wgmma() -> str:
    rows = ["fence sync aligned", "commit_group sync aligned", "wait_group sync aligned = 0"]
    for n in range(8, 257, 8):
        f32, packed, whole = (
            _registers("f", n // 2),
            _registers("r", max(n // 4, 1)),
            _registers("r", n // 2),
        )
        for a, turned in (("%l1", "0 0"), (_registers("r", 4, 130), "0")):
            rows += [
                f"mma_async sync aligned m64n{n}k16 f32 f16|bf16 f16|bf16 = {f32} {a} %l2 %p1 1 1 {turned}",
                f"mma_async sync aligned m64n{n}k16 f16 f16 f16 = {packed} {a} %l2 %p1 1 1 {turned}",
                f"mma_async sync aligned m64n{n}k8 f32 tf32 tf32 = {f32} {a} %l2 %p1 1 1",
                f"mma_async sync aligned m64n{n}k32 f32 e4m3|e5m2 e4m3|e5m2 = {f32} {a} %l2 %p1 1 1",
                f"mma_async sync aligned m64n{n}k32 f16 e4m3|e5m2 e4m3|e5m2 = {packed} {a} %l2 %p1 1 1",
                f"mma_async sync aligned m64n{n}k32 s32 s8|u8 s8|u8 satfinite? = {whole} {a} %l2 %p1",
            ]
        if n in (8, 64, 256):
            rows.append(
                f"mma_async sp sync aligned m64n{n}k32 f32 f16|bf16 f16|bf16 = {f32} %l1 %l2 %r1 0 %p1 1 1 0 0"
            )
    return "\n".join(rows)


_MATRICES = (
    _op("ldmatrix", "", "\n".join(
        f"sync aligned m8n8 x{n} trans? {{shared}}? b16 = {_registers('r', n)} [%r9]" for n in (1, 2, 4))
        + "\nsync aligned m16n16 x1 trans {shared}? b8|b8x16.b6x16_p32|b8x16.b4x16_p64 = {%r1,%r2} [%r9]"
        + "\nsync aligned m8n16 x1 {shared}? b8x16.b6x16_p32|b8x16.b4x16_p64 = {%r1} [%r9]"),
    _op("stmatrix", "", "\n".join(
        f"sync aligned m8n8 x{n} trans? {{shared}}? b16 = [%r9] {_registers('r', n)}" for n in (1, 2, 4))
        + "\nsync aligned m16n8 x1 trans {shared}? b8 = [%r9] {%r1}"),
    _op("movmatrix", "%r1 %r2", "sync aligned m8n8 trans b16"),
    _op("mma", "", _products()), _op("wmma", "", _wmma()), _op("wgmma", "", _wgmma()),
    _op("tcgen05", "", """
        alloc cta_group::1|cta_group::2 sync aligned {shared}? b32 = [%r1] %r2
        dealloc cta_group::1|cta_group::2 sync aligned b32 = %r1 %r2
        relinquish_alloc_permit cta_group::1|cta_group::2 sync aligned
        ld sync aligned 32x32b|16x64b|16x128b|16x256b x1 b32 = {%r1} [%r2]
        ld sync aligned 32x32b|16x64b x2 pack::16b? b32 = {%r1,%r3} [%r2]
        st sync aligned 32x32b|16x64b x1 b32 = [%r2] {%r1}
        wait::ld|wait::st sync aligned
        shift cta_group::1|cta_group::2 down = [%r1]
        cp cta_group::1|cta_group::2 128x256b|4x256b|128x128b = [%r1] %l1
        fence::before_thread_sync|fence::after_thread_sync
        commit cta_group::1|cta_group::2 mbarrier::arrive::one shared::cluster? b64 = [%r1]
        mma cta_group::1|cta_group::2 kind::f16|kind::tf32|kind::f8f6f4 = [%r1] %l1 %l2 %r2 %p1
        mma cta_group::1|cta_group::2 kind::i8 = [%r1] %l1 %l2 %r2 %p1
    """),
)  # fmt: skip
_TEXTURES = (
    _op("tex", "", """
        base? 1d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5}]
        base? 2d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6}]
        base? 3d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6,%r7,%r7}]
        base? a1d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6}]
        base? a2d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6,%r7,%r7}]
        base? 1d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5}]
        base? 2d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5,%f6}]
        base? 3d|cube v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5,%f6,%f7,%f7}]
        base? a1d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%f6}]
        base? a2d|acube v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%f6,%f7,%f7}]
        level 1d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5}] %f1
        level 2d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5,%f6}] %f1
        level 3d|cube v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5,%f6,%f7,%f7}] %f1
        level a1d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%f6}] %f1
        level a2d|acube v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%f6,%f7,%f7}] %f1
        level 1d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5}] %r1
        level 2d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6}] %r1
        level 3d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6,%r7,%r7}] %r1
        level a1d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6}] %r1
        level a2d v4 {tex_to} s32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%r6,%r7,%r7}] %r1
        grad 1d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5}] {%f1} {%f2}
        grad 2d v4 {tex_to} f32 = {%r1,%r2,%r3,%r4} [%l1,{%f5,%f6}] {%f1,%f2} {%f3,%f4}
        2d v2 f16x2 f32 = {%r1,%r2} [%l1,{%f5,%f6}]
        2d v2 f16x2 s32 = {%r1,%r2} [%l1,{%r5,%r6}]
    """),
    _op("tld4", "{%r1,%r2,%r3,%r4} [%l1,{%f5,%f6}]", "r|g|b|a 2d v4 f32|s32|u32 f32\n"
        "r|g|b|a a2d|cube v4 f32|s32|u32 f32 = {%r1,%r2,%r3,%r4} [%l1,{%r5,%f5,%f6,%f6}]"),
    _op("txq", "%r1 [%l1]", "width|height|depth|channel_data_type|channel_order|normalized_coords|array_size|num_mipmap_levels|num_samples b32\n"
        "level width|height|depth b32 = %r1 [%l1] %r2"),
    _op("suld", "", "\n".join(f"b {g} ca|cg|cs|cv? {kinds} trap|clamp|zero? = {into} {at}" for g, at in _SURFACES for kinds, into in _TEXELS)),
    _op("sust", "", "\n".join(f"b|p {g} wb|cg|cs|wt? {kinds} trap|clamp|zero? = {at} {of}" for g, at in _SURFACES for kinds, of in _TEXELS)),
    _op("sured", "", "\n".join(f"b|p add|min|max|and|or {g} {kinds} trap|clamp|zero = {at} {of}" for g, at in _SURFACES[:3]
        for kinds, of in (("u32|s32|b32", "%r1"), ("u64|s64|b64", "%l1")))),
    _op("suq", "%r1 [%l1]", "width|height|depth|channel_data_type|channel_order|array_size|memory_layout b32"),
)  # fmt: skip
_PART = "%r1.b0 %r2.h1 %r3.b2 %r4"  # parts of registers, of which all results are narrow
_PARTS = {"": "%r1 %r2.h1 %r3.b2", "add|min|max": "%r1 %r2.h1 %r3.b2 %r4", "merged": _PART}


def _scalar(row: str) -> str:
    """With nothing more, with a second operation, and merged into a third operand."""
    return "\n".join(
        f"{row} {second.replace('merged', '')} = {operands}" for second, operands in _PARTS.items()
    )


_VIDEO = (
    *(_op(name, "", _scalar("u32|s32 u32|s32 u32|s32 sat?")) for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")),
    *(_op(name, "", _scalar("u32|s32 u32|s32 u32|s32 sat? clamp|wrap")) for name in ("vshl", "vshr")),
    _op("vmad", "%r1 %r2.h1 %r3.b2 %r4", "u32|s32 u32|s32 u32|s32 po? sat? shr7|shr15?\n"
        "u32|s32 u32|s32 u32|s32 sat? shr7|shr15? = %r1 -%r2.h1 %r3.b2 %r4\nu32|s32 u32|s32 u32|s32 sat? shr7|shr15? = %r1 %r2.h1 %r3.b2 -%r4"),
    _op("vset", "", _scalar("u32|s32 u32|s32 eq|ne|lt|le|gt|ge")),
    *(_op(f"{name}{count}", "%r1 %r2 %r3 %r4", "u32|s32 u32|s32 u32|s32 sat|add?\n"
          f"u32|s32 u32|s32 u32|s32 sat|add? = {selected}")
      for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")
      for count, selected in ((2, "%r1.h1 %r2.h31 %r3.h02 %r4"), (4, "%r1.b31 %r2.b7102 %r3.b3345 %r4"))),
    *(_op(f"vset{count}", "%r1 %r2 %r3 %r4", "u32|s32 u32|s32 eq|ne|lt|le|gt|ge add?") for count in (2, 4)),
)  # fmt: skip

ISA: dict[str, Opcode] = {
    record.name: record
    for group in (
        _FLOATS,
        _INTEGERS,
        _COMPARISONS,
        _CONVERSIONS,
        _MEMORY,
        _LANES,
        _FLOW,
        _MATRICES,
        _TEXTURES,
        _VIDEO,
    )
    for record in group
}
