"""The forms of instructions on matrices: rows for the table of opcodes.

An operand such as `d4f` is a vector of four registers, of singles; `r` stands for 32 bits, `d`
for doubles.
"""

from __future__ import annotations


def products() -> str:
    """mma: for each shape the types, and how many registers hold a, b, c and d."""
    rows = []
    for shape, kinds, a, b in (
        ("m16n8k8", "f16", 2, 1), ("m16n8k16", "f16", 4, 2), ("m16n8k16", "e4m3|e5m2", 2, 1),
        ("m16n8k32", "e4m3|e5m2", 4, 2),
    ):  # fmt: skip
        each = _mixed(kinds)
        rows.append(f"sync ~aligned {shape} row col f32 {each} f32 = d4f a{a}r b{b}r c4f")
        rows.append(f"sync ~aligned {shape} row col f16 {each} f16 = d2r a{a}r b{b}r c2r")
    for shape, kind, a, b in (
        ("m16n8k8", "bf16", 2, 1), ("m16n8k16", "bf16", 4, 2), ("m16n8k4", "tf32", 2, 1),
        ("m16n8k8", "tf32", 4, 2),
    ):  # fmt: skip
        rows.append(f"sync ~aligned {shape} row col f32 {kind}.{kind} f32 = d4f a{a}r b{b}r c4f")
    for shape, kinds, d, a, b in (
        ("m8n8k16", "s8|u8", 2, 1, 1), ("m16n8k16", "s8|u8", 4, 2, 1),
        ("m16n8k32", "s8|u8", 4, 4, 2), ("m8n8k32", "s4|u4", 2, 1, 1),
        ("m16n8k32", "s4|u4", 4, 2, 1), ("m16n8k64", "s4|u4", 4, 4, 2),
    ):  # fmt: skip
        each = f"satfinite? s32 {_mixed(kinds)} s32"
        rows.append(f"sync ~aligned {shape} row col {each} = d{d}r a{a}r b{b}r c{d}r")
    for shape, d, a, b in (
        ("m8n8k4", 2, 1, 1), ("m16n8k4", 4, 2, 1), ("m16n8k8", 4, 4, 2), ("m16n8k16", 4, 8, 4),
    ):  # fmt: skip
        rows.append(f"sync ~aligned {shape} row col rn? f64 f64 f64 f64 = d{d}d a{a}d b{b}d c{d}d")
    rows.append("sync ~aligned m8n8k4 row|col row|col f32 f16 f16 f32 = d8f a2r b2r c8f")
    rows.append("sync ~aligned m8n8k4 row|col row|col f16 f16 f16 f16 = d4r a2r b2r c4r")
    return "\n".join(rows)


def whole_matrices() -> str:
    """wmma: what is loaded, multiplied and stored, and how many registers hold it."""
    rows = []
    wide, tall, even = "m8n32k16", "m32n8k16", "m16n16k16"
    start = "mma sync ~aligned ~row|col ~row|col"
    spaces = "global|shared|shared::cta?"
    moved = [("a|b", f"{even}|{wide}|{tall}", "f16", "8r"), ("a|b", "m16n16k8", "tf32", "4r"),
             ("a|b", "m8n8k4", "f64", "1d")]  # fmt: skip
    for kinds, own, few, many in (("bf16", 4, 2, 8), ("s8|u8", 2, 1, 4)):
        moved += [("a|b", even, kinds, f"{own}r")]
        moved += [("a", wide, kinds, f"{few}r"), ("b", wide, kinds, f"{many}r")]
        moved += [("a", tall, kinds, f"{many}r"), ("b", tall, kinds, f"{few}r")]
        total = "f32" if kinds == "bf16" else "s32"
        d = "8f" if kinds == "bf16" else "8r"
        for shape, a, b in ((even, own, own), (wide, few, many), (tall, many, few)):
            for kind in kinds.split("|"):
                sat = "" if kind == "bf16" else " satfinite?"
                types = f"{total} {kind}.{kind} {total}{sat}"
                rows.append(f"{start} {shape} {types} = d{d} a{a}r b{b}r c{d}")
    for what, shape, kinds, registers in moved:
        there = f"sync ~aligned row|col {shape} {spaces} {kinds}"
        rows.append(f"load {what} {there} = d{registers} [a] n?")
    for shape, kind, registers in (
        (f"{even}|{wide}|{tall}", "f32", "8f"), (f"{even}|{wide}|{tall}", "f16", "4r"),
        (f"{even}|{wide}|{tall}", "s32", "8r"), ("m16n16k8", "f32", "8f"), ("m8n8k4", "f64", "2d"),
    ):  # fmt: skip
        there = f"sync ~aligned row|col {shape} {spaces} {kind}"
        rows.append(f"load c {there} = d{registers} [a] n?")
        rows.append(f"store d {there} = [a] b{registers} n?")
    rows.append(f"{start} {even}|{wide}|{tall} f32 f32 = d8f a8r b8r c8f")
    rows.append(f"{start} {even}|{wide}|{tall} f16 f16 = d4r a8r b8r c4r")
    rows.append(f"{start} m16n16k8 f32 tf32.tf32 f32 = d8f a4r b4r c8f")
    rows.append(f"{start} m8n8k4 rn? f64 f64 f64 f64 = d2d a1d b1d c2d")
    return "\n".join(rows)


def _mixed(kinds: str) -> str:
    each = kinds.split("|")
    return "|".join(f"{one}.{other}" for one in each for other in each)


def bulk_copies() -> str:
    """cp.async.bulk, plain and by tensor maps of one to five axes."""
    there, back = "mbarrier::complete_tx::bytes", "bulk_group"
    rows = [
        f"async bulk shared::cluster|shared::cta global ~{there} = [s] [a] n [b]",
        f"async bulk shared::cluster global ~{there} ~L2::cache_hint = [s] [a] n [b] p",
        f"async bulk shared::cluster global ~{there} multicast::cluster = [s] [a] n [b] h",
        f"async bulk shared::cluster global ~{there} multicast::cluster ~L2::cache_hint "
        "= [s] [a] n [b] h p",
        f"async bulk shared::cluster shared::cta ~{there} = [s] [s] n [b]",
        f"async bulk global shared::cta ~{back} = [a] [s] n",
        f"async bulk global shared::cta ~{back} ~L2::cache_hint = [a] [s] n p",
        "async bulk prefetch ~L2 global = [a] n",
        "async bulk prefetch ~L2 global ~L2::cache_hint = [a] n p",
        "async bulk commit_group",
        "async bulk wait_group read? = i",
    ]
    for rank in range(1, 6):
        box = f"async bulk tensor {rank}d"
        rows += [
            f"{box} shared::cluster|shared::cta global ~tile? ~{there} = [s] [t{rank}] [b]",
            f"{box} shared::cluster global ~tile? ~{there} ~L2::cache_hint = [s] [t{rank}] [b] p",
            f"{box} shared::cluster global ~tile? ~{there} multicast::cluster "
            f"= [s] [t{rank}] [b] h",
            f"{box} shared::cluster global ~tile? ~{there} multicast::cluster ~L2::cache_hint "
            f"= [s] [t{rank}] [b] h p",
            f"{box} global shared::cta ~tile? ~{back} = [t{rank}] [s]",
            f"{box} global shared::cta ~tile? ~{back} ~L2::cache_hint = [t{rank}] [s] p",
            f"async bulk prefetch tensor {rank}d ~L2 global ~tile? = [t{rank}]",
            f"async bulk prefetch tensor {rank}d ~L2 global ~tile? ~L2::cache_hint = [t{rank}] p",
        ]
    return "\n".join(rows)


_THERE = "~mbarrier::complete_tx::bytes"
ASYNC_STORES = f"""
    async ~weak? ~shared::cluster? {_THERE} v2? b32|b64|u32|u64|s32|s64|f32|f64 = [a] b [b]
    async ~weak? ~shared::cluster? {_THERE} v4 b32|u32|s32|f32 = [a] b [b]
"""
ASYNC_REDUCTIONS = f"""
    async ~relaxed ~cluster ~shared::cluster? {_THERE} inc|dec u32 = [a] b [b]
    async ~relaxed ~cluster ~shared::cluster? {_THERE} min|max u32|s32 = [a] b [b]
    async ~relaxed ~cluster ~shared::cluster? {_THERE} add u32|s32|u64 = [a] b [b]
    async ~relaxed ~cluster ~shared::cluster? {_THERE} and|or|xor b32 = [a] b [b]
"""


def bulk_reductions() -> str:
    """cp.reduce.async.bulk, plain and by tensor maps, whose elements have a type of their own."""
    start, back, hint = "reduce async bulk", "~bulk_group", "~L2::cache_hint"
    near = f"{start} shared::cluster shared::cta {_THERE}"
    close = ("and|or|xor b32", "add u32|s32|u64", "inc|dec u32", "min|max u32|s32")
    rows = [f"{near} {each} = [s] [s] n [b]" for each in close]
    far = (
        "and|or|xor b32|b64", "add u32|s32|u64|f32|f64", "add.noftz f16|bf16", "inc|dec u32",
        "min|max u32|s32|u64|s64|f16|bf16",
    )  # fmt: skip
    for each in far:
        rows.append(f"{start} global shared::cta {back} {each} = [a] [s] n")
        rows.append(f"{start} global shared::cta {back} {hint} {each} = [a] [s] n p")
    for rank in range(1, 6):
        box = f"{start} tensor {rank}d global shared::cta add|min|max|inc|dec|and|or|xor ~tile?"
        rows.append(f"{box} {back} = [t{rank}] [s]")
        rows.append(f"{box} {back} {hint} = [t{rank}] [s] p")
    return "\n".join(rows)


def group_products() -> str:
    """wgmma: d has a quarter of a register of 32 bits for each result of a lane."""
    rows = ["~fence ~sync ~aligned", "commit_group ~sync ~aligned", "wait_group ~sync ~aligned = i"]
    for n in range(8, 257, 8):
        f32, half, whole = f"d{n // 2}f", f"d{n // 4}r", f"d{n // 2}r"
        start = "mma_async ~sync ~aligned"
        wide = f"{start} m64n{n}k16"
        rows += [
            f"{wide} f32 f16.f16|bf16.bf16 = {f32} x y q i i z z",
            f"{wide} f32 f16.f16|bf16.bf16 = {f32} a4r y q i i z",
            f"{wide} f16 f16.f16 = {half} x y q i i z z",
            f"{wide} f16 f16.f16 = {half} a4r y q i i z",
            f"{start} m64n{n}k8 f32 tf32.tf32 = {f32} x y q i i",
            f"{start} m64n{n}k8 f32 tf32.tf32 = {f32} a4r y q i i",
        ]
        small = _mixed("e4m3|e5m2")
        bytes_ = f"{start} m64n{n}k32"
        rows += [
            f"{bytes_} f32 {small} = {f32} x y q i i",
            f"{bytes_} f32 {small} = {f32} a4r y q i i",
            f"{bytes_} f16 {small} = {half} x y q i i",
            f"{bytes_} f16 {small} = {half} a4r y q i i",
        ]
        if n <= 32 or n % 16 == 0:
            rows += [
                f"{bytes_} s32 {_mixed('s8|u8')} satfinite? = {whole} x y q",
                f"{bytes_} s32 {_mixed('s8|u8')} satfinite? = {whole} a4r y q",
            ]
    return "\n".join(rows)


MBARRIERS = """
    init ~shared|shared::cta? b64 = [b] n
    inval ~shared|shared::cta? b64 = [b]
    expect_tx|complete_tx ~relaxed.cta|relaxed.cluster? shared::cluster? b64 = [b] n
    expect_tx|complete_tx ~relaxed.cta|relaxed.cluster? ~shared|shared::cta b64 = [b] n
    arrive|arrive_drop b64 = d [b] n?
    arrive|arrive_drop ~shared|shared::cta b64 = d [b] n?
    arrive|arrive_drop relaxed|release ~cta|cluster ~shared|shared::cta? b64 = d [b] n?
    arrive|arrive_drop expect_tx ~shared|shared::cta? b64 = d [b] n
    arrive|arrive_drop expect_tx relaxed|release ~cta|cluster ~shared|shared::cta? b64 = d [b] n
    arrive|arrive_drop shared::cluster b64 = _ [b] n?
    arrive|arrive_drop relaxed|release ~cta|cluster shared::cluster b64 = _ [b] n?
    arrive|arrive_drop expect_tx shared::cluster b64 = _ [b] n
    arrive|arrive_drop expect_tx relaxed|release ~cta|cluster shared::cluster b64 = _ [b] n
    arrive|arrive_drop noComplete ~shared|shared::cta? b64 = d [b] n
    test_wait|try_wait ~shared|shared::cta? b64 = d [b] s
    test_wait|try_wait acquire|relaxed ~cta|cluster ~shared|shared::cta? b64 = d [b] s
    test_wait|try_wait parity ~shared|shared::cta? b64 = d [b] s
    test_wait|try_wait parity acquire|relaxed ~cta|cluster ~shared|shared::cta? b64 = d [b] s
    try_wait parity? ~shared|shared::cta? b64 = d [b] s t
    pending_count b64 = d s
"""
_MAP = "replace tile"
_WHERE = "global|shared::cta? b1024"
_TO_MAPS = "tensormap::generic release"
MAP_EDITS = f"""
    {_MAP} global_address {_WHERE} b64 = [a] b
    {_MAP} rank {_WHERE} b32 = [a] b
    {_MAP} box_dim|global_dim|element_stride {_WHERE} b32 = [a] i b
    {_MAP} global_stride {_WHERE} b64 = [a] i b
    {_MAP} elemtype|interleave_layout|swizzle_mode|fill_mode {_WHERE} b32 = [a] i
    cp_fenceproxy global shared::cta {_TO_MAPS} ~{{scope}} ~sync ~aligned = [a] [s] n @ lanes
"""
MOVED = "\n".join(
    f"sync ~aligned m8n8 x{count} trans? shared|shared::cta? b16 = d{count}r [a]"
    for count in (1, 2, 4)
)
STORED = "\n".join(
    f"sync ~aligned m8n8 x{count} trans? shared|shared::cta? b16 = [a] b{count}r"
    for count in (1, 2, 4)
)
