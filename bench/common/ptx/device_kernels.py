"""Small kernels that cover the instruction list, as data: CUDA source with inline PTX.

`bench/ptx/device.py` runs them on a GPU and on the emulator and compares every bit;
`test_device_kernels.py` runs them on the emulator alone. Each case is one kernel
`k(const A* a, …, R* out…, int n)` with one thread per element.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

C_TYPES = {
    "u16": ("unsigned short", "h", np.uint16), "s16": ("short", "h", np.int16),
    "u32": ("unsigned", "r", np.uint32), "s32": ("int", "r", np.int32),
    "u64": ("unsigned long long", "l", np.uint64), "s64": ("long long", "l", np.int64),
    "f32": ("float", "f", np.float32), "f64": ("double", "d", np.float64),
    "f16": ("unsigned short", "h", np.float16), "bf16": ("unsigned short", "h", np.uint16),
    "f16x2": ("unsigned", "r", np.uint32), "bf16x2": ("unsigned", "r", np.uint32),
    "b32": ("unsigned", "r", np.uint32), "b64": ("unsigned long long", "l", np.uint64),
    "small": ("unsigned", "r", np.uint32),  # 0 … 70: amounts of shifts and lengths of fields
    "angle": ("float", "f", np.float32),  # −6 … 6
    "plain": ("double", "d", np.float64),  # moderate size, no NaN
}  # fmt: skip
SIZE = 1024
BLOCK = 128


@dataclass(frozen=True, slots=True)
class Case:
    """`asm` uses %0… for results and the following numbers for sources."""

    name: str
    asm: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    # Largest relative error where the instruction is approximate, on results of normal size.
    tolerance: float = 0.0
    absolute: float = 0.0


def _simple(name: str, kind: str, count: int, **kwargs: float) -> Case:
    operands = ", ".join(f"%{i}" for i in range(count + 1))
    return Case(_c_name(name), f"{name} {operands};", (kind,), (kind,) * count, **kwargs)


def _typed(name: str, result: str, *sources: str, extra: str = "", **kwargs: float) -> Case:
    operands = ", ".join(f"%{i}" for i in range(len(sources) + 1)) + extra
    return Case(_c_name(name + extra), f"{name} {operands};", (result,), sources, **kwargs)


def _c_name(text: str) -> str:
    return "".join(ch if ch.isalnum() else "_" for ch in text)


def _integers() -> list[Case]:
    out = [_simple(f"{op}.{t}", t, 2) for op in ("add", "sub", "mul.lo", "min", "max", "div", "rem")
           for t in ("s32", "u32", "s64", "u64")]  # fmt: skip
    out += [_simple(f"{op}.{t}", t, 2) for op in ("add", "mul.lo", "max") for t in ("s16", "u16")]
    out += [_simple(f"mul.hi.{t}", t, 2) for t in ("s16", "s32", "u32", "s64", "u64")]
    out += [_typed(f"mul.wide.{a}", b, a, a)
            for a, b in (("s16", "s32"), ("u16", "u32"), ("s32", "s64"), ("u32", "u64"))]  # fmt: skip
    out += [
        _simple(f"mad.{m}.{t}", t, 3) for m in ("lo", "hi") for t in ("s32", "u32", "s64", "u64")
    ]
    out += [_typed("mad.wide.s32", "s64", "s32", "s32", "s64"), _simple("mad.hi.sat.s32", "s32", 3)]
    out += [_simple(f"{op}.sat.s32", "s32", 2) for op in ("add", "sub")]
    out += [_simple(f"mul24.{m}.{t}", t, 2) for m in ("lo", "hi") for t in ("s32", "u32")]
    out += [_simple(f"mad24.lo.{t}", t, 3) for t in ("s32", "u32")]
    out += [_simple(f"sad.{t}", t, 3) for t in ("s32", "u32")]
    out += [_simple(f"{op}.{t}", t, 1) for op in ("abs", "neg") for t in ("s32", "s64")]
    out += [
        _typed(f"dp4a.{a}.{b}", "s32", "b32", "b32", "s32")
        for a in ("s32", "u32")
        for b in ("s32", "u32")
    ]
    out += [_typed(f"dp2a.{m}.s32.u32", "s32", "b32", "b32", "s32") for m in ("lo", "hi")]
    out.append(Case("carry_add", "add.cc.u32 %0, %3, %4; addc.cc.u32 %1, %4, %5; addc.u32 %2, %5, %3;",
                    ("u32", "u32", "u32"), ("u32", "u32", "u32")))  # fmt: skip
    out.append(Case("carry_sub", "sub.cc.u32 %0, %3, %4; subc.cc.u32 %1, %4, %5; subc.u32 %2, %5, %3;",
                    ("u32", "u32", "u32"), ("u32", "u32", "u32")))  # fmt: skip
    out.append(Case("carry_mad", "mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %4;",
                    ("u32", "u32"), ("u32", "u32", "u32")))  # fmt: skip
    out.append(
        Case(
            "carry_add64",
            "add.cc.u64 %0, %2, %3; addc.u64 %1, %3, %2;",
            ("u64", "u64"),
            ("u64", "u64"),
        )
    )
    return out


def _bits() -> list[Case]:
    out = [_simple(f"{op}.{t}", t, 2) for op in ("and", "or", "xor") for t in ("b32", "b64")]
    out += [_simple(f"{op}.{t}", t, 1) for op in ("not", "cnot", "brev") for t in ("b32", "b64")]
    out += [_typed(f"{op}.{t}", "u32", t) for op in ("popc", "clz") for t in ("b32", "b64")]
    out += [
        _typed(f"bfind{m}.{t}", "u32", t)
        for m in ("", ".shiftamt")
        for t in ("s32", "u32", "s64", "u64")
    ]
    out += [_typed(f"shl.{t}", t, t, "small") for t in ("b32", "b64")]
    out += [_typed(f"shr.{t}", t, t, "small") for t in ("s32", "u32", "s64", "u64", "s16", "u16")]
    out += [
        _typed(f"shf.{d}.{m}.b32", "b32", "b32", "b32", "small")
        for d in "lr"
        for m in ("wrap", "clamp")
    ]
    out += [_typed(f"bfe.{t}", t, t, "small", "small") for t in ("s32", "u32", "s64", "u64")]
    out += [_typed(f"bfi.{t}", t, t, t, "small", "small") for t in ("b32", "b64")]
    out += [_typed("lop3.b32", "b32", "b32", "b32", "b32", extra=f", {table:#x}")
            for table in (0x96, 0xE8, 0x1B, 0xC5, 0x80, 0xFE)]  # fmt: skip
    out += [_typed(f"prmt.b32{m}", "b32", "b32", "b32", "b32")
            for m in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")]  # fmt: skip
    out += [_typed(f"bmsk.{m}.b32", "b32", "small", "small") for m in ("clamp", "wrap")]
    out += [
        _typed(f"szext.{m}.{t}", t, t, "small") for m in ("clamp", "wrap") for t in ("s32", "u32")
    ]
    out.append(Case("fns", "{ .reg .b32 n; and.b32 n, %2, 15; sub.s32 n, n, 7; .reg .b32 b; and.b32 b, %3, 31; "
                    "fns.b32 %0, %1, b, n; }", ("b32",), ("b32", "b32", "b32")))  # fmt: skip
    return out


def _floats() -> list[Case]:
    out = [_simple(f"{op}.{r}.{t}", t, 2) for op in ("add", "sub", "mul", "div")
           for r in ("rn", "rz", "rm", "rp") for t in ("f32", "f64")]  # fmt: skip
    out += [_simple(f"fma.{r}.{t}", t, 3) for r in ("rn", "rz", "rm", "rp") for t in ("f32", "f64")]
    out += [_simple(f"{op}.{r}.{t}", t, 1) for op in ("sqrt", "rcp")
            for r in ("rn", "rz", "rm", "rp") for t in ("f32", "f64")]  # fmt: skip
    out += [
        _simple(f"{op}.ftz.f32", "f32", 2) for op in ("add.rn", "mul.rn", "sub.rz", "min", "max")
    ]
    out += [_simple("fma.rn.ftz.f32", "f32", 3), _simple("fma.rn.sat.f32", "f32", 3)]
    out += [_simple(f"{op}.sat.f32", "f32", 2) for op in ("add", "mul")]
    out += [
        _simple(f"{op}.{t}", t, 2) for op in ("min", "max") for t in ("f32", "f64", "f16", "f16x2")
    ]
    out += [_simple(f"{op}.NaN.{t}", t, 2) for op in ("min", "max") for t in ("f32", "f16")]
    out += [
        _simple(f"{op}.{t}", t, 1)
        for op in ("abs", "neg")
        for t in ("f32", "f64", "f16", "bf16", "f16x2")
    ]
    out += [_simple(f"copysign.{t}", t, 2) for t in ("f32", "f64")]
    out += [
        _simple(f"{op}.{t}", t, 2)
        for op in ("add.rn", "sub.rn", "mul.rn")
        for t in ("f16", "f16x2")
    ]
    out += [_simple(f"fma.rn.{t}", t, 3) for t in ("f16", "f16x2", "bf16", "bf16x2")]
    out += [_simple(f"{op}.{t}", t, 2) for op in ("add.rn", "mul.rn") for t in ("bf16", "bf16x2")]
    out += [Case(_c_name(f"testp.{m}.{t}"), f"{{ .reg .pred p; testp.{m}.{t} p, %1; selp.u32 %0, 1, 0, p; }}",
                 ("u32",), (t,))
            for m in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
            for t in ("f32", "f64")]  # fmt: skip
    return out


def _approximate() -> list[Case]:
    """Errors as documented for the instructions, doubled where the input is not reduced."""
    ulp = 2.0**-23
    out = [_typed(f"{op}.approx.f32", "f32", "f32", tolerance=t) for op, t in
           (("rcp", ulp), ("sqrt", 2 * ulp), ("rsqrt", 2 * ulp))]  # fmt: skip
    out += [_typed("ex2.approx.f32", "f32", "angle", tolerance=2.0**-22),
            _typed("lg2.approx.f32", "f32", "f32", tolerance=2.0**-21, absolute=2.0**-22),
            _typed("sin.approx.f32", "f32", "angle", absolute=2.0**-20),
            _typed("cos.approx.f32", "f32", "angle", absolute=2.0**-20),
            _typed("tanh.approx.f32", "f32", "angle", tolerance=2.0**-10.9),
            _typed("div.approx.f32", "f32", "angle", "angle", tolerance=4 * ulp),
            _typed("div.full.f32", "f32", "angle", "angle", tolerance=4 * ulp)]  # fmt: skip
    return out


def _conversions() -> list[Case]:
    integers = ("s16", "u16", "s32", "u32", "s64", "u64")
    out = [_typed(f"cvt.{b}.{a}", b, a) for a in integers for b in integers if a != b]
    out += [_typed(f"cvt.sat.{b}.{a}", b, a) for a, b in
            (("s32", "u32"), ("s64", "s32"), ("u64", "u16"), ("s32", "s16"), ("u32", "s32"))]  # fmt: skip
    out += [_typed(f"cvt.{r}.{b}.{a}", b, a) for a in ("f32", "f64", "f16") for b in integers
            for r in ("rni", "rzi", "rmi", "rpi")]  # fmt: skip
    out += [_typed(f"cvt.{r}.{b}.{a}", b, a) for a in ("s32", "u32", "s64", "u64")
            for b in ("f32", "f64", "f16") for r in ("rn", "rz", "rm", "rp")
            if not (b == "f64" and r != "rn" and a[1:] == "32")]  # fmt: skip
    out += [_typed(f"cvt.{r}.f32.f64", "f32", "f64") for r in ("rn", "rz", "rm", "rp")]
    out += [_typed(f"cvt.{r}.{b}.f32", b, "f32") for r in ("rn", "rz") for b in ("f16", "bf16")]
    out += [_typed("cvt.f32.f16", "f32", "f16"), _typed("cvt.f64.f32", "f64", "f32"),
            _typed("cvt.f32.bf16", "f32", "bf16"), _typed("cvt.f64.f16", "f64", "f16")]  # fmt: skip
    out += [_typed(f"cvt.{r}.f32.f32", "f32", "f32") for r in ("rni", "rzi", "rmi", "rpi")]
    out += [_typed("cvt.sat.f32.f32", "f32", "f32"), _typed("cvt.rn.sat.f16.f32", "f16", "f32"),
            _typed("cvt.ftz.f64.f32", "f64", "f32"), _typed("cvt.rna.tf32.f32", "b32", "f32"),
            _typed("cvt.rn.f16x2.f32", "f16x2", "f32", "f32"),
            _typed("cvt.rn.bf16x2.f32", "bf16x2", "f32", "f32"),
            _typed("cvt.rn.relu.f16.f32", "f16", "f32"),
            _typed("cvt.pack.sat.s16.s32", "b32", "s32", "s32"),
            _typed("cvt.pack.sat.u8.s32.b32", "b32", "s32", "s32", "b32")]  # fmt: skip
    return out


def _comparisons() -> list[Case]:
    def test(instruction: str, kind: str, name: str) -> Case:
        asm = f"{{ .reg .pred p; {instruction} p, %1, %2; selp.u32 %0, 1, 0, p; }}"
        return Case(_c_name(name), asm, ("u32",), (kind, kind))

    out = [test(f"setp.{c}.{t}", t, f"setp.{c}.{t}") for c in ("eq", "lt", "ge") for t in
           ("s32", "u32", "s64", "u64", "s16", "u16", "f32", "f64", "f16", "bf16")]  # fmt: skip
    out += [test(f"setp.{c}.f32", "f32", f"setp.{c}.f32") for c in
            ("ne", "le", "gt", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", "lt.ftz")]  # fmt: skip
    out += [test(f"setp.{c}.u32", "u32", f"setp.{c}.u32") for c in ("lo", "ls", "hi", "hs")]
    for op in ("and", "or", "xor"):
        asm = (f"{{ .reg .pred p, q, r; setp.lt.u32 r, %3, 0x80000000; setp.le.{op}.s32 p|q, %2, %3, r; "
               "selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }")  # fmt: skip
        out.append(Case(f"setp_{op}_pair", asm, ("u32", "u32"), ("s32", "s32")))
    out += [_typed("set.lt.u32.f32", "u32", "f32", "f32"), _typed("set.ge.f32.s32", "f32", "s32", "s32"),
            _typed("slct.u32.s32", "u32", "u32", "u32", "s32"),
            _typed("slct.f32.f32", "f32", "f32", "f32", "f32")]  # fmt: skip
    return out


def _warps() -> list[Case]:
    out = []
    for mode, last in (("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)):
        for segment in (0, 0x1800, 0x1C00, 0x1000):
            c = (segment | (last & 31)) if mode != "up" else segment
            asm = ("{ .reg .pred p; .reg .b32 b; and.b32 b, %3, 31; "
                   f"shfl.sync.{mode}.b32 %0|p, %2, b, {c}, -1; selp.u32 %1, 1, 0, p; }}")  # fmt: skip
            out.append(Case(f"shfl_{mode}_{segment:x}", asm, ("b32", "u32"), ("b32", "small")))
    pred = ".reg .pred p, q; setp.lt.u32 p, %1, 0x80000000;"
    out.append(
        Case("vote_ballot", f"{{ {pred} vote.sync.ballot.b32 %0, p, -1; }}", ("b32",), ("u32",))
    )
    for mode in ("all", "any", "uni"):
        asm = f"{{ .reg .pred p, q; setp.gt.u32 p, %1, 3; vote.sync.{mode}.pred q, p, -1; selp.u32 %0, 1, 0, q; }}"
        out.append(Case(f"vote_{mode}", asm, ("u32",), ("small",)))
    out.append(
        Case(
            "match_any",
            "{ .reg .b32 v; and.b32 v, %1, 7; match.any.sync.b32 %0, v, -1; }",
            ("b32",),
            ("u32",),
        )
    )
    out.append(
        Case(
            "match_any64",
            "{ .reg .b64 v; and.b64 v, %1, 3; match.any.sync.b64 %0, v, -1; }",
            ("b32",),
            ("u64",),
        )
    )
    out.append(Case("match_all", "{ .reg .pred p; .reg .b32 v; shr.u32 v, %2, 6; match.all.sync.b32 %0|p, v, -1; "
                    "selp.u32 %1, 1, 0, p; }", ("b32", "u32"), ("small",)))  # fmt: skip
    out += [_typed(f"redux.sync.{op}.{t}", t, t, extra=", -1") for op, t in
            (("add", "u32"), ("add", "s32"), ("min", "s32"), ("max", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"))]  # fmt: skip
    out.append(Case("activemask", "{ .reg .pred p; setp.gt.u32 p, %1, 20; mov.b32 %0, 0; @p activemask.b32 %0; }",
                    ("b32",), ("small",)))  # fmt: skip
    for op in ("popc.u32", "and.pred", "or.pred"):
        target, pick = ("%0", "") if op == "popc.u32" else ("q", " selp.u32 %0, 1, 0, q;")
        asm = f"{{ .reg .pred p, q; setp.gt.u32 p, %1, 2; barrier.sync.aligned 0; barrier.red.{op} {target}, 0, p;{pick} }}"
        out.append(Case(_c_name(f"barrier_red_{op}"), asm, ("u32",), ("small",)))
    return out


def cases() -> list[Case]:
    groups = (_integers, _bits, _floats, _approximate, _conversions, _comparisons, _warps)
    return [case for group in groups for case in group()]


def source(case: Case) -> str:
    """The CUDA text of one case."""
    parameters = [f"const {C_TYPES[t][0]}* a{i}" for i, t in enumerate(case.sources)]
    parameters += [f"{C_TYPES[t][0]}* out{i}" for i, t in enumerate(case.results)]
    results = ", ".join(f'"={C_TYPES[t][1]}"(r{i})' for i, t in enumerate(case.results))
    sources = ", ".join(f'"{C_TYPES[t][1]}"(a{i}[i])' for i, t in enumerate(case.sources))
    declared = " ".join(f"{C_TYPES[t][0]} r{i};" for i, t in enumerate(case.results))
    stores = " ".join(f"out{i}[i] = r{i};" for i in range(len(case.results)))
    return (
        f'extern "C" __global__ void {case.name}({", ".join(parameters)}) {{\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"    {declared}\n"
        f'    asm volatile("{case.asm}" : {results} : {sources});\n'
        f"    {stores}\n}}\n"
    )


def all_source() -> str:
    return "".join(map(source, cases()))


_EDGES = (0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF,
          0x80000000, 0x80000001, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000,
          0xFFFFFFFFFFFFFFFF)  # fmt: skip


def inputs(case: Case, seed: int = 1) -> list[np.ndarray]:
    """Random values of every size, edge cases met with each other; no zero divisors."""
    rng = np.random.default_rng([seed, *case.name.encode()])
    arrays = [_values(rng, kind, place) for place, kind in enumerate(case.sources)]
    if case.name.startswith(("div_s", "div_u", "rem_")):
        arrays[1][arrays[1] == 0] = 1
        if case.sources[0][0] == "s":  # the smallest number by −1 does not fit
            arrays[1][arrays[1] == -1] = 1
    return arrays


def _values(rng: np.random.Generator, kind: str, place: int) -> np.ndarray:
    dtype = np.dtype(C_TYPES[kind][2])
    if kind == "small":
        return rng.integers(0, 71, SIZE, dtype=np.uint32)
    if kind == "angle":
        return rng.uniform(-6, 6, SIZE).astype(np.float32)
    if kind == "f32" or kind == "f64" or kind == "f16":
        return _float_values(rng, dtype, place)
    raw = rng.integers(0, 1 << 64, SIZE, dtype=np.uint64, endpoint=False) if SIZE else None
    assert raw is not None
    raw >>= rng.integers(0, 64, SIZE, dtype=np.uint64)
    edges = np.array(_EDGES, np.uint64)
    count = len(edges) ** 2
    pick = np.arange(count) // len(edges) if place % 2 else np.arange(count) % len(edges)
    raw[:count] = edges[pick]
    bits = raw.astype(np.dtype(f"u{dtype.itemsize}"))
    return bits.view(dtype)


def _float_values(rng: np.random.Generator, dtype: np.dtype, place: int) -> np.ndarray:
    info = np.finfo(dtype)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, SIZE, dtype=unsigned, endpoint=False) \
        if dtype.itemsize < 8 else rng.integers(0, 1 << 64, SIZE, dtype=np.uint64)  # fmt: skip
    out = bits.view(dtype).copy()
    out[np.isnan(out)] = np.nan
    near = rng.normal(0, 4, SIZE // 2).astype(dtype)
    out[SIZE // 2 :] = near  # half of them close together, so that sums cancel
    edges = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3.0e4,
                      float(info.max), float(info.tiny), float(info.smallest_subnormal),
                      -float(info.smallest_subnormal), 127.5, 255.5, -128.5]).astype(dtype)  # fmt: skip
    count = len(edges) ** 2
    pick = np.arange(count) // len(edges) if place % 2 else np.arange(count) % len(edges)
    out[:count] = edges[pick]
    return out


def outputs(case: Case) -> list[np.ndarray]:
    return [np.zeros(SIZE, C_TYPES[kind][2]) for kind in case.results]


_REGISTERS = {
    "h": ("b16", "u16"),
    "r": ("b32", "u32"),
    "l": ("b64", "u64"),
    "f": ("f32", "f32"),
    "d": ("f64", "f64"),
}
PTX_HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"


def ptx_source(case: Case) -> str:
    """The same kernel as PTX text, for machines without a CUDA compiler."""
    kinds = [*case.results, *case.sources]
    count = len(case.results)
    declared, loads, stores = [], [], []
    asm = case.asm
    for number in range(len(kinds) - 1, -1, -1):
        asm = asm.replace(f"%{number}", f"v{number}")
    for number, kind in enumerate(kinds):
        register, memory = _REGISTERS[C_TYPES[kind][1]]
        size = np.dtype(C_TYPES[kind][2]).itemsize
        declared.append(f"  .reg .{register} v{number};")
        place = number - count if number >= count else number + len(case.sources)
        address = (f"  ld.param.u64 %rd1, [p{place}];\n  cvta.to.global.u64 %rd1, %rd1;\n"
                   f"  mad.wide.u32 %rd1, %r4, {size}, %rd1;\n")  # fmt: skip
        if number < count:
            stores.append(f"{address}  st.global.{memory} [%rd1], v{number};")
        else:
            loads.append(f"{address}  ld.global.{memory} v{number}, [%rd1];")
    parameters = ", ".join(f".param .u64 p{i}" for i in range(len(kinds)))
    body = "\n".join(
        [*declared, "  .reg .b32 %r<5>;", "  .reg .b64 %rd<2>;", "  mov.u32 %r1, %ctaid.x;",
         "  mov.u32 %r2, %ntid.x;", "  mov.u32 %r3, %tid.x;", "  mad.lo.s32 %r4, %r1, %r2, %r3;",
         *loads, "  " + asm, *stores, "  ret;"]
    )  # fmt: skip
    return f".visible .entry {case.name}({parameters})\n{{\n{body}\n}}\n"
