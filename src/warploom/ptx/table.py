"""The records of all opcodes we know.

Those of elementwise instructions stand beside their meanings (`meaning/`), all others here.
Every form is one that ptxas assembles (for sm_90a or sm_100a; shuffles and votes without `.sync`
are of older machines), and every word of it is either consumed by its handler or listed as one
without effect: `tests/ptx/test_opcodes.py` holds both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import chain

from warploom.ptx import images, matrices
from warploom.ptx.choices import CHOICES
from warploom.ptx.meaning import bits, compare, convert, integer, video
from warploom.ptx.opcode import Control, MemoryEffect, Opcode, opcode

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
        for word in (*CHOICES[name].split("|"), "L1", "L2", "L2::cache_hint")
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
         "proxy.async.shared::cluster",
         "mbarrier_init.release.cluster"),
        "there is one way to memory, on which accesses take effect in order",
    ),
    "ftz": "no number that could be flushed comes in or out, or an H200 does the same without it",
    "noftz": "subnormal values are kept without it too",
    "sat": "an integer made of a floating number is always the nearest there is",
    **dict.fromkeys(["launch_dependents", "wait"], "they matter to launches that overlap alone"),
    "sync": "a warp comes as a whole",
    "mask": "events of the profiler are not recorded",
    **dict.fromkeys(["shared", "shared::cta"],
                    "an mbarrier lies in shared memory, and a generic address of it says so"),
    "mbarrier::complete_tx::bytes": "the one way to say that bytes came",
    "shared::cluster": "an address of the cluster's shared memory says whose it is",
    "bulk_group": "the one way to wait for copies to global memory",
    "tile": "what a tensor copy is without it",
    "level": "a texture has one level here, and that is taken",
    "fence": "registers are read and written in order",
}  # fmt: skip

_op = partial(opcode, choices=CHOICES)
_pure = partial(_op, pure=True)
_READS, _WRITES, _UPDATES, _ANYTHING = (
    MemoryEffect.READS, MemoryEffect.WRITES, MemoryEffect.UPDATES, MemoryEffect.ANYTHING
)  # fmt: skip

_FLOATS = (
    *(_pure(name, "d a b", """
        {round}? ftz? sat? f32
        {round}? f64
        rn? ftz? sat? {half}
        rn? {brain}
        {round}? ftz? f32x2
        {round}? sat? f32 f16|bf16
    """) for name in ("add", "sub")),
    _pure("mul", "d a b", """
        {round}? ftz? sat? f32
        {round}? f64
        rn? ftz? sat? {half}
        rn? {brain}
        {round}? ftz? f32x2
    """),
    _pure("mad", "d a b c", "{round} ftz? sat? f32\n{round} f64"),
    _pure("div", "d a b", "approx|full|{round} ftz? f32\n{round} f64"),
    *(_pure(name, "d a b", """
        ftz? NaN? xorsign.abs? f32
        ftz? NaN? abs? f32 = d a b c
        f64
        ftz? NaN? xorsign.abs? {half}
        NaN? xorsign.abs? {brain}
    """) for name in ("min", "max")),
    *(_pure(name, "d a", "ftz? f32|f16|f16x2\nf64|bf16|bf16x2") for name in ("neg", "abs")),
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


_ADDRESSES = (
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
    """) + "\n" + matrices.ASYNC_STORES, memory=_WRITES, any_order=True),
    _op("atom", "d [a] b",
        _atomics("d [a]", "{semantics}", _UPDATED + "exch b32|b64\ncas b16|b32|b64"),
        memory=_UPDATES, any_order=True),
    _op("red", "[a] b",
        _atomics("[a]", "relaxed|release", _UPDATED) + "\n" + matrices.ASYNC_REDUCTIONS,
        memory=_UPDATES, any_order=True),
    _op("cp", "", """
        async ~ca|cg shared|shared::cta global ~{fetch}? = [d] [a] n k?
        async ~ca|cg shared|shared::cta global ~L2::cache_hint ~{fetch}? = [d] [a] n k? p
        async commit_group|wait_all
        async wait_group = n
        async mbarrier arrive noinc? ~shared|shared::cta? b64 = [b]
    """ + matrices.bulk_copies() + "\n" + matrices.bulk_reductions(), memory=_ANYTHING, since="80"),
    _op("mbarrier", "", matrices.MBARRIERS, memory=_ANYTHING, since="80"),
    _op("prefetch", "[a]", """
        global|local? ~L1|L2
        global ~L2::evict_last|L2::evict_normal
        const|param? ~tensormap
    """),
    _op("prefetchu", "[a]", "~L1"),
    _op("applypriority", "[a] n", "global? ~L2::evict_normal", since="80"),
    _op("discard", "[a] n", "global? ~L2", memory=_ANYTHING, since="80"),
    _op("membar", "", "~cta|gl|sys", memory=_ANYTHING),
    _op("fence", "", """
        ~sc|acq_rel|acquire|release? ~{scope}
        ~proxy.alias|proxy.async|proxy.async.global|proxy.async.shared::cta|proxy.async.shared::cluster
        ~mbarrier_init.release.cluster
        proxy tensormap::generic release ~{scope}
        proxy tensormap::generic acquire ~{scope} = [a] n
    """, memory=_ANYTHING),
    _op("tensormap", "", matrices.MAP_EDITS, memory=_ANYTHING, since="90"),
    _op("createpolicy", "d", """
        ~fractional ~{policy} ~{otherwise}? b64 = d f?
        ~range ~global? ~{policy} ~{otherwise}? b64 = d [a] n k
        ~cvt ~L2 b64 = d a
    """, since="80"),
    _op("griddepcontrol", "", "~launch_dependents|wait", memory=_ANYTHING, since="90"),
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
    _op("match", "d a m", "any sync b32|b64\nall sync b32|b64 = d|p a m", control=Control.LANES,
        since="70"),
    _op("redux", "d a m", """
        sync add|min|max u32|s32
        sync and|or|xor b32
        sync min|max abs? NaN? f32
    """, control=Control.LANES, since="80"),
    _op("elect", "d|p m", "sync", control=Control.LANES, since="90"),
    _op("activemask", "d", "b32"),
    _op("mapa", "d a b", "shared::cluster? u32|u64", since="90"),
    _op("getctarank", "d a", "shared::cluster? u32|u64", since="90"),
)  # fmt: skip
_WARP = partial(_op, control=Control.LANES)  # all lanes of a warp, together
_MATRICES = (
    _WARP("mma", "d a b c", matrices.products()),
    _WARP("wgmma", "", matrices.group_products(), memory=_READS, since="90a"),
    _WARP("wmma", "", matrices.whole_matrices(), memory=_ANYTHING),
    _WARP("ldmatrix", "d [a]", matrices.MOVED, memory=_READS, since="75"),
    _WARP("stmatrix", "[a] b", matrices.STORED, memory=_WRITES, since="90"),
    _WARP("movmatrix", "d a", "sync ~aligned m8n8 trans b16", since="75"),
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
    _op("nanosleep", "a", "u32", since="70"),
    _op("alloca", "d a n?", "u64"), _op("stacksave", "d", "u32|u64"),
    _op("stackrestore", "a", "u32|u64"),
    _op("pmevent", "a", "~mask?"),
    _op("setmaxnreg", "n", "inc|dec ~sync ~aligned u32", control=Control.BARRIER, since="90+"),
)  # fmt: skip


def _merged(records: Iterable[Opcode]) -> dict[str, Opcode]:
    """By name; the forms of records of one name follow each other."""
    found: dict[str, Opcode] = {}
    for each in records:
        own = found.get(each.name)
        found[each.name] = each if own is None else replace(own, forms=own.forms + each.forms)
    return found


OPCODES = _merged(
    chain(
        integer.TABLE.opcodes, bits.TABLE.opcodes, _FLOATS, compare.TABLE.opcodes,
        convert.TABLE.opcodes, _ADDRESSES, _MEMORY, video.TABLE.opcodes, _LANES, _MATRICES,
        _IMAGES, _FLOW,
    )
)  # fmt: skip

# On integers these only take bits apart, put them together and move them.
BIT_MOVES = frozenset({"cvt", "shl", "shr", "or", "and", "prmt", "bfi", "bfe"})
