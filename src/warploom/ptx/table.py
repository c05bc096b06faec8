"""The records of all opcodes we know.

Every form is one that ptxas assembles (for sm_90a or sm_100a; shuffles and votes without `.sync`
are of older machines), and every word of it is either consumed by its handler or listed as one
without effect: `tests/ptx/test_opcodes.py` holds both.
"""

from __future__ import annotations

from functools import partial

from warploom.ptx import images, matrices
from warploom.ptx.opcode import Control, MemoryEffect, Opcode, opcode

_LOADED = [kind + bits for kind, sizes in (("b", "8 16 32 64"), ("u", "8 16 32 64"),
           ("s", "8 16 32 64"), ("f", "32 64")) for bits in sizes.split()]  # fmt: skip
_VECTORS = [f"v2.{kind}" for kind in _LOADED] + [
    f"v4.{kind}" for kind in _LOADED if not kind.endswith("64")
]


def _range(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every number of one integer type is one of another."""
    low, high = _range(narrow)
    return _range(wide)[0] <= low and high <= _range(wide)[1]


_SMALL = ["u8", "s8", "u16", "u32", "u64", "s16", "s32", "s64"]
_CHOICES = {
    "round": "rn|rz|rm|rp",
    "integral": "rni|rzi|rmi|rpi",
    "integer": "u16|u32|u64|s16|s32|s64",
    "small": "|".join(_SMALL),
    "narrowed": "|".join(f"{to}.{of}" for to in _SMALL for of in _SMALL if not _holds(to, of)),
    "carry": "u32|s32|u64|s64",
    "bits": "b16|b32|b64",
    "any": "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64",
    "scalar": "|".join(_LOADED),
    "loaded": "|".join((*_LOADED, *_VECTORS, "b128")),
    "wide": "|".join((*(f"v4.{t}" for t in _LOADED if t.endswith("64")),
                      *(f"v8.{t}" for t in _LOADED if t.endswith("32")))),
    "half": "f16|f16x2",
    "eight": "e4m3x2|e5m2x2",
    "six": "e2m3x2|e3m2x2",
    "brain": "bf16|bf16x2",
    "word": "u32|s32",
    "second": "add|min|max",
    "signs": "s32.u32|s32.s32|u32.s32",
    "order": "eq|ne|lt|le|gt|ge",
    "unsigned_order": "lo|ls|hi|hs",
    "unordered": "equ|neu|ltu|leu|gtu|geu|num|nan",
    "join": "and|or|xor",
    "scope": "cta|cluster|gpu|sys",
    "semantics": "relaxed|acquire|release|acq_rel",
    "space": "global|shared|shared::cta|shared::cluster|local|const|param|param::entry",
    "shared": "shared|shared::cta|shared::cluster",
    "evict": "|".join(
        f"L1::{word}" for word in
        ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
    ),
    "evict_far": "L2::evict_normal|L2::evict_first|L2::evict_last",
    "fetch": "L2::64B|L2::128B|L2::256B",
    "policy": "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged",
    "otherwise": "L2::evict_first|L2::evict_unchanged",
}  # fmt: skip
WITHOUT_EFFECT = {
    "uni": "a promise that all threads go the same way",
    "aligned": "a promise that all threads of the warp execute it together",
    "cta": "the scope of a block, which is meant without it too",
    "weak": "what an access is without it",
    **dict.fromkeys(
        ["fractional", "range", "cvt", "global"], "how a hint to a cache is made; there are none"
    ),
    **dict.fromkeys(
        ["row", "col"], "how factors of wmma were loaded; their fragments lie in one order"
    ),
    "tensormap": "what a prefetch fetches; there are no caches here",
    "nc": "the way through the read-only cache; a value is the same on every way",
    **dict.fromkeys(
        ["ca", "cg", "cs", "lu", "cv", "wb", "wt"], "a cache operator; there are no caches here"
    ),
    **{
        word: "a hint to a cache; there are no caches here"
        for name in ("evict", "evict_far", "fetch", "policy")
        for word in (*_CHOICES[name].split("|"), "L1", "L2", "L2::cache_hint")
    },
    **dict.fromkeys(
        ["gpu", "gl", "sys", "cluster"], "an access takes effect at once, for all threads"
    ),
    **dict.fromkeys(
        ["relaxed", "acquire", "release", "acq_rel", "sc", "relaxed.cta", "relaxed.cluster"],
        "accesses take effect in order, one by one",
    ),
    **dict.fromkeys(
        ("proxy.alias", "proxy.async", "proxy.async.global", "proxy.async.shared::cta",
         "mbarrier_init.release.cluster"),
        "there is one way to memory, on which accesses take effect in order",
    ),
    "ftz": "no number that could be flushed comes in or out, or an H200 does the same without it",
    "noftz": "subnormal values are kept without it too",
    "sat": "an integer made of a floating number is always the nearest there is",
    **dict.fromkeys(["launch_dependents", "wait"], "one grid runs at a time"),
    **dict.fromkeys(["inc", "dec", "sync"], "registers are not rationed"),
    "mask": "events of the profiler are not recorded",
    **dict.fromkeys(["shared", "shared::cta"],
                    "an mbarrier lies in shared memory, and a generic address of it says so"),
    "mbarrier::complete_tx::bytes": "the one way to say that bytes came",
    "bulk_group": "the one way to wait for copies to global memory",
    "tile": "what a tensor copy is without it",
    "level": "a texture has one level here, and that is taken",
    "fence": "registers are read and written in order",
}  # fmt: skip

_op = partial(opcode, choices=_CHOICES)
_pure = partial(_op, pure=True)
_READS, _WRITES, _UPDATES, _ANYTHING = (
    MemoryEffect.READS, MemoryEffect.WRITES, MemoryEffect.UPDATES, MemoryEffect.ANYTHING
)  # fmt: skip

_SUM = """
    {integer}
    sat s32
    cc {carry}
    {round}? ftz? sat? f32
    {round}? f64
    rn? ftz? sat? {half}
    rn? {brain}
    {round}? ftz? f32x2
    {round}? sat? f32 f16|bf16
"""
_EXTREME = """
    u16|u32|u64|s16|s64|u16x2
    relu? s32|s16x2
    ftz? NaN? xorsign.abs? f32
    ftz? NaN? abs? f32 = d a b c
    f64
    ftz? NaN? xorsign.abs? {half}
    NaN? xorsign.abs? {brain}
"""
_SIGN = """
    s16|s32|s64
    ftz? f32|f16|f16x2
    f64|bf16|bf16x2
"""
_INTEGERS = (
    _pure("add", "d a b", "u16x2|s16x2" + _SUM),
    _pure("sub", "d a b", _SUM),
    _op("addc", "d a b", "cc? {carry}", reads_carry=True),
    _op("subc", "d a b", "cc? {carry}", reads_carry=True),
    _pure("mul", "d a b", """
        lo|hi {integer}
        wide u16|u32|s16|s32
        {round}? ftz? sat? f32
        {round}? f64
        rn? ftz? sat? {half}
        rn? {brain}
        {round}? ftz? f32x2
    """),
    _pure("mad", "d a b c", """
        lo|hi {integer}
        wide u16|u32|s16|s32
        hi sat s32
        lo|hi cc {carry}
        {round} ftz? sat? f32
        {round} f64
    """),
    _op("madc", "d a b c", "lo|hi cc? {carry}", reads_carry=True),
    _pure("mul24", "d a b", "lo|hi u32|s32"),
    _pure("mad24", "d a b c", "lo|hi u32|s32\nhi sat s32"),
    _pure("div", "d a b", "{integer}\napprox|full|{round} ftz? f32\n{round} f64"),
    _pure("rem", "d a b", "{integer}"),
    _pure("min", "d a b", _EXTREME),
    _pure("max", "d a b", _EXTREME),
    _pure("neg", "d a", _SIGN),
    _pure("abs", "d a", _SIGN),
    _pure("sad", "d a b c", "{integer}"),
    _pure("dp4a", "d a b c", "u32|s32 u32|s32"),
    _pure("dp2a", "d a b c", "lo|hi u32|s32 u32|s32"),
)  # fmt: skip
_BITS = (
    *(_pure(name, "d a b", "pred|{bits}") for name in ("and", "or", "xor")),
    _pure("not", "d a", "pred|{bits}"),
    _pure("cnot", "d a", "{bits}"),
    _pure("shl", "d a b", "{bits}"),
    _pure("shr", "d a b", "{bits}|{integer}"),
    _pure("shf", "d a b c", "l|r clamp|wrap b32"),
    _pure("lop3", "d a b c t", "b32\nor|and b32 = d|p a b c t q"),
    _pure("bfe", "d a b c", "{carry}"),
    _pure("bfi", "d a b c e", "b32|b64"),
    _pure("bfind", "d a", "shiftamt? {carry}"),
    *(_pure(name, "d a", "b32|b64") for name in ("clz", "popc", "brev")),
    _pure("fns", "d a b c", "b32"),
    _pure("prmt", "d a b c", "b32 f4e|b4e|rc8|ecl|ecr|rc16?"),
    _pure("bmsk", "d a b", "clamp|wrap b32"),
    _pure("szext", "d a b", "clamp|wrap u32|s32"),
)
_FLOATS = (
    _pure("fma", "d a b c", """
        {round} ftz? sat? f32
        {round} f64
        rn ftz? sat? {half}
        rn ftz? relu {half}
        rn relu? {brain}
        {round} ftz? f32x2
        {round} sat? f32 f16|bf16
    """),
    _pure("rcp", "d a", "approx|{round} ftz? f32\n{round} f64\napprox ftz f64"),
    _pure("sqrt", "d a", "approx|{round} ftz? f32\n{round} f64"),
    _pure("rsqrt", "d a", "approx ftz? f32|f64"),
    *(_pure(name, "d a", "approx ~ftz? f32") for name in ("sin", "cos")),
    _pure("lg2", "d a", "approx ftz? f32"),
    _pure("ex2", "d a", "approx ftz? f32\napprox {half}\napprox ftz {brain}"),
    _pure("tanh", "d a", "approx f32|{half}|{brain}"),
    _pure("copysign", "d a b", "f32|f64"),
    _pure("testp", "d a", "finite|infinite|number|notanumber|normal|subnormal f32|f64"),
)  # fmt: skip


def _compared(operands: str, rows: str) -> str:
    """Comparisons, each plain and, at JOIN, joined with one more predicate."""
    return "\n".join(
        row.replace("JOIN", join) + f" = {operands}{more}"
        for row in rows.strip().split("\n")
        for join, more in (("", ""), ("{join}", " c"))
    )


_COMPARISONS = (
    _pure("setp", "d|p a b", _compared("d|p a b", """
        eq|ne JOIN {bits}
        {order} JOIN {integer}
        {unsigned_order} JOIN u16|u32|u64
        {order}|{unordered} JOIN ftz? f32|{half}
        {order}|{unordered} JOIN f64|{brain}
    """)),
    _pure("set", "d a b", _compared("d a b", """
        eq|ne JOIN u32|s32|f32 {bits}
        {order} JOIN u32|s32|f32 {integer}
        {unsigned_order} JOIN u32|s32|f32 u16|u32|u64
        {order}|{unordered} JOIN ftz? u32|s32|f32 f32
        {order}|{unordered} JOIN u32|s32|f32 f64
        {order}|{unordered} JOIN ftz? u16|s16|u32|s32|f16 f16
        {order}|{unordered} JOIN u16|s16|u32|s32|bf16 bf16
        {order}|{unordered} JOIN ftz? u32|s32|f16x2 f16x2
        {order}|{unordered} JOIN u32|s32|bf16x2 bf16x2
    """)),
    _pure("selp", "d a b c", "{any}"),
    _pure("slct", "d a b c", "{any} s32\n{any} ftz? f32\nftz {any} f32"),
)  # fmt: skip
_CONVERSIONS = (
    _pure("cvt", "d a", """
        {small} {small}
        sat {narrowed}
        {round} sat? f16|f32|f64 {small}
        {round} bf16 {integer}
        {integral} ftz? ~sat? {small} f32
        {integral} ~sat? {small} f16|f64
        {integral} {integer} bf16
        {integral}? ftz? sat? f32 f32
        {integral}? sat? f64 f64
        {integral}? sat? f16 f16
        {integral} bf16 bf16
        ftz? sat? f64 f32
        ~ftz? sat? f32 f16
        sat? f64 f16
        f32|f64 bf16
        {round} ftz? sat? f32 f64
        {round} ~ftz? sat? f16 f32
        {round} sat? f16 f64
        {round}? f16 bf16
        {round}? bf16 f16
        {round} bf16 f32|f64
        rn|rz relu f16|bf16 f32
        rn|rz relu? satfinite f16|bf16 f32
        rn|rz satfinite relu f16|bf16 f32
        rn|rz relu? satfinite? f16x2|bf16x2 f32 = d a b
        rn|rz|rna tf32 f32
        rna satfinite tf32 f32
        rn|rz satfinite? relu tf32 f32
        rn|rz relu? satfinite tf32 f32
        rn satfinite relu? {eight}|{six}|e2m1x2 f32 = d a b
        rn satfinite relu? {eight}|e2m1x2 f16x2
        rn relu? f16x2 {eight}|{six}|e2m1x2
        rz|rp satfinite? ue8m0x2 f32 = d a b
        rz|rp satfinite? ue8m0x2 bf16x2
        rn bf16x2 ue8m0x2
        rs relu? satfinite? f16x2|bf16x2 f32 = d a b e
        rs relu? satfinite e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4 f32 = d v e
        pack sat u16|s16 s32 = d a b
        pack sat u8|s8|u4|s4|u2|s2 s32 b32 = d a b c
    """),
    _pure("mov", "d a", "pred|b128|{any}"),
    _pure("cvta", "d a", "to? {space} u32|u64"),
    _pure("isspacep", "d a", "{space}"),
)  # fmt: skip


def _hinted(operands: str, rows: str) -> str:
    """Loads and stores; at HINT may stand a hint that brings a cache policy as last operand."""
    return "\n".join(
        row.replace("HINT", hint) + f" = {operands}{more}"
        for row in rows.strip().split("\n")
        for hint, more in (("", ""), ("~L2::cache_hint", " p"))[: 1 + ("HINT" in row)]
    )


def _atomics(operands: str, semantics: str, rows: str) -> str:
    """Operations on memory: their name, then their types. Vectors are in global memory only."""
    order = f"~{semantics}? ~{{scope}}?"
    starts = {"": "global|{shared}?", "v": "global?"}
    forms = []
    for row in rows.strip().split("\n"):
        name, kinds = row.split(maxsplit=1)
        values = operands + (" b c" if name == "cas" else " b")
        space = starts["v" if kinds.startswith("v") else ""]
        forms.append(f"{order} {space} {name} {kinds} = {values}")
        if not kinds.startswith("v"):  # as nvcc writes its atomics of a block
            forms.append(f"global|{{shared}} ~{{scope}} {name} {kinds} = {values}")
        if name != "cas":
            forms.append(f"{order} global? {name} ~L2::cache_hint {kinds} = {values} p")
    return "\n".join(forms)


_UPDATED = """
    and|or|xor b32|b64
    add u32|s32|u64|f32|f64
    add.noftz f16|f16x2|bf16|bf16x2
    add v2|v4 f32
    add.noftz|min.noftz|max.noftz v2|v4|v8 f16|bf16
    add.noftz|min.noftz|max.noftz v2|v4 f16x2|bf16x2
    inc|dec u32
    min|max u32|s32|u64|s64
"""
_MEMORY = (
    _op("ld", "d [a]", _hinted("d [a]", """
        ~weak? {space}|param::func? ~ca|cg|cs|lu|cv? {loaded}
        ~weak? global? ~{evict}? HINT ~{fetch}? {loaded}
        ~weak? global? ~{evict}? ~{evict_far}? HINT ~{fetch}? {wide}
        global ~ca|cg|cs? ~nc HINT ~{fetch}? {loaded}
        global ~nc ~{evict} HINT ~{fetch}? {loaded}
        global ~nc ~{evict}? ~{evict_far}? HINT ~{fetch}? {wide}
        volatile global|{shared}? {loaded}
        relaxed|acquire ~{scope} {shared}? {loaded}
        relaxed|acquire ~{scope} global? ~{evict}? HINT ~{fetch}? {loaded}
        mmio relaxed ~sys global? {scalar}
    """), memory=_READS, any_order=True),
    _op("ldu", "d [a]", "global? {loaded}", memory=_READS),
    _op("st", "[a] b", _hinted("[a] b", """
        ~weak? global|{shared}|local|param|param::func? ~wb|cg|cs|wt? {loaded}
        ~weak? global? ~{evict}? HINT {loaded}
        ~weak? global? ~{evict}? ~{evict_far}? HINT {wide}
        volatile global|{shared}? {loaded}
        relaxed|release ~{scope} {shared}? {loaded}
        relaxed|release ~{scope} global? ~{evict}? HINT {loaded}
        mmio relaxed ~sys global? {scalar}
    """), memory=_WRITES, any_order=True),
    _op("atom", "d [a] b",
        _atomics("d [a]", "{semantics}", _UPDATED + "exch b32|b64\ncas b16|b32|b64"),
        memory=_UPDATES, any_order=True),
    _op("red", "[a] b", _atomics("[a]", "relaxed|release", _UPDATED), memory=_UPDATES,
        any_order=True),
    _op("cp", "", """
        async ~ca|cg shared|shared::cta global ~{fetch}? = [d] [a] n k?
        async ~ca|cg shared|shared::cta global ~L2::cache_hint ~{fetch}? = [d] [a] n k? p
        async commit_group|wait_all
        async wait_group = n
        async mbarrier arrive noinc? ~shared|shared::cta? b64 = [b]
    """ + matrices.bulk_copies(), memory=_ANYTHING),
    _op("mbarrier", "", matrices.MBARRIERS, memory=_ANYTHING),
    _op("prefetch", "[a]", """
        global|local? ~L1|L2
        global ~L2::evict_last|L2::evict_normal
        const|param? ~tensormap
    """),
    _op("prefetchu", "[a]", "~L1"),
    _op("applypriority", "[a] n", "global? ~L2::evict_normal"),
    _op("discard", "[a] n", "global? ~L2", memory=_ANYTHING),
    _op("membar", "", "~cta|gl|sys", memory=_ANYTHING),
    _op("fence", "", """
        ~sc|acq_rel|acquire|release? ~{scope}
        ~proxy.alias|proxy.async|proxy.async.global|proxy.async.shared::cta
        ~mbarrier_init.release.cluster
    """, memory=_ANYTHING),
    _op("createpolicy", "d", """
        ~fractional ~{policy} ~{otherwise}? b64 = d f?
        ~range ~global? ~{policy} ~{otherwise}? b64 = d [a] n k
        ~cvt ~L2 b64 = d a
    """),
    _op("griddepcontrol", "", "~launch_dependents|wait", memory=_ANYTHING),
)  # fmt: skip
_LANES = (
    _op("shfl", "d|p a b c", """
        sync up|down|bfly|idx b32 = d|p a b c m @ lanes
        up|down|bfly|idx b32
    """),
    _op("vote", "d a", """
        sync all|any|uni pred = d a m @ lanes
        sync ballot b32 = d a m @ lanes
        all|any|uni pred
        ballot b32
    """),
    _op("match", "d a m", "any sync b32|b64\nall sync b32|b64 = d|p a m", control=Control.LANES),
    _op("redux", "d a m", """
        sync add|min|max u32|s32
        sync and|or|xor b32
        sync min|max abs? NaN? f32
    """, control=Control.LANES),
    _op("elect", "d|p m", "sync", control=Control.LANES),
    _op("activemask", "d", "b32"),
    _op("mapa", "d a b", "shared::cluster? u32|u64"),
    _op("getctarank", "d a", "shared::cluster? u32|u64"),
)  # fmt: skip
# Of scalar video instructions only the forms of which ptxas makes for sm_90 what the manual says;
# of some it does so for narrow sources alone: `doubt` of `meaning/video.py` knows.
_SCALAR = """
    {word} {word} {word} sat? = d a b
    {word} {word} {word} sat? add = d a b c
    {word} {word} {word} sat min|max = d a b c
    s32 {word} {word} min|max = d a b c
    {word} {word} {word} = d.part a b c
"""
_NOT_NEGATIVE = """
    u32 u32 u32 min|max = d a b c
    {word} u32 u32 sat = d.part a b c
"""
_SHIFTED = """
    {word} {word} u32 clamp|wrap = d a b
    {word} {word} u32 clamp|wrap add = d a b c
    {word} {word} u32 clamp|wrap = d.part a b c
"""
_VIDEO = (
    *(_pure(f"v{name}", "d a b", _SCALAR + _NOT_NEGATIVE) for name in ("add", "min", "max")),
    _pure("vabsdiff", "d a b", _SCALAR + """
        u32 {word} {word} min|max = d a b c
        {word} {word} {word} sat = d.part a b c
    """),
    _pure("vsub", "d a b", _SCALAR),
    _pure("vshl", "d a b", _SHIFTED),
    _pure("vshr", "d a b", _SHIFTED + """
        {word} {word} u32 sat clamp|wrap = d a b
        {word} {word} u32 sat clamp|wrap {second} = d a b c
        s32 {word} u32 clamp|wrap min|max = d a b c
        u32 u32 u32 clamp|wrap min|max = d a b c
    """),
    _pure("vset", "d a b", """
        {word} {word} {order}
        {word} {word} {order} add = d a b c
        u32 {word} {order} min|max = d a b c
        {word} {word} {order} = d.part a b c
    """),
    _pure("vmad", "d a b c", """
        {word} {word} {word} po?
        {word} {signs} po? sat? shr7|shr15
        {word} {signs} po? sat
    """),
    *(_pure(f"v{name}{lanes}", "d a b c", "{word} {word} {word} sat|add?")
      for name in ("add", "sub", "avrg", "absdiff", "min", "max") for lanes in (2, 4)),
    *(_pure(f"vset{lanes}", "d a b c", "{word} {word} {order} add?") for lanes in (2, 4)),
)  # fmt: skip
_WARP = partial(_op, control=Control.LANES)  # all lanes of a warp, together
_MATRICES = (
    _WARP("mma", "d a b c", matrices.products()),
    _WARP("wgmma", "", matrices.group_products(), memory=_READS),
    _WARP("wmma", "", matrices.whole_matrices(), memory=_ANYTHING),
    _WARP("ldmatrix", "d [a]", matrices.MOVED, memory=_READS),
    _WARP("stmatrix", "[a] b", matrices.STORED, memory=_WRITES),
    _WARP("movmatrix", "d a", "sync ~aligned m8n8 trans b16"),
)
_IMAGES = (
    _op("tex", "d [h]", images.fetches(), memory=_READS),
    _op("tld4", "d [h]", images.GATHERS, memory=_READS),
    _op("txq", "d [h]", "width|height|depth|array_size|normalized_coords b32"),
    _op("suld", "d [h]", images.loads(), memory=_READS),
    _op("sust", "[h] b", images.stores(), memory=_WRITES),
    _op("suq", "d [h]", "width|height|depth|array_size b32"),
)
_MEET = partial(_op, memory=MemoryEffect.MEETS, control=Control.BARRIER)
_FLOW = (
    _op("bra", "t", "~uni?", control=Control.BRANCH),
    _op("brx", "a t", "idx ~uni?", control=Control.SWITCH),
    _op("ret", "", "~uni?", control=Control.LEAVE),
    _op("exit", "", ".", control=Control.LEAVE),
    _op("trap", "", ".", control=Control.LEAVE),
    _op("brkpt", "", "."),
    _op("call", "r? f a? t?", "~uni?", memory=_ANYTHING, control=Control.CALL),
    _MEET("bar", "a b?", """
        ~cta? sync
        ~cta? arrive = a b
        ~cta? red popc u32 = d a b? p
        ~cta? red and|or pred = d a b? p
        warp sync = m @ lanes
    """),
    _MEET("barrier", "", """
        ~cta? sync ~aligned? = a b?
        ~cta? arrive ~aligned? = a b
        cluster arrive release|relaxed? ~aligned? @ next
        cluster wait ~acquire? ~aligned?
        ~cta? red popc ~aligned? u32 = d a b? p
        ~cta? red and|or ~aligned? pred = d a b? p
    """),
    _op("nanosleep", "a", "u32"),
    _op("alloca", "d a n?", "u64"), _op("stacksave", "d", "u32|u64"),
    _op("stackrestore", "a", "u32|u64"),
    _op("pmevent", "a", "~mask?"),
    _op("setmaxnreg", "n", "~inc|dec ~sync ~aligned u32"),
)  # fmt: skip

OPCODES: dict[str, Opcode] = {
    record.name: record
    for group in (
        _INTEGERS,
        _BITS,
        _FLOATS,
        _COMPARISONS,
        _CONVERSIONS,
        _MEMORY,
        _VIDEO,
        _LANES,
        _MATRICES,
        _IMAGES,
        _FLOW,
    )
    for record in group
}

# On integers these only take bits apart, put them together and move them.
BIT_MOVES = frozenset({"cvt", "shl", "shr", "or", "and", "prmt", "bfi", "bfe"})
