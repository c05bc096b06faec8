"""How each language of the C family spells what a kernel says: one table per language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from warploom.kernel.dtype import DType
from warploom.kernel.ir import Operator

Language: TypeAlias = str  # one of `choices.LANGUAGES`


@dataclass(frozen=True, slots=True)
class Dialect:
    """Spellings. `thread` and `block` give the hardware's coordinates by axis x, y, z."""

    language: Language
    types: dict[DType, str]
    thread: tuple[str, str, str]
    block: tuple[str, str, str]
    shared: str
    barrier: str
    warp_barrier: str
    restrict: str
    helper_qualifiers: str
    unroll: str
    # Functions on f32 and f64, where the language has what the operator means.
    functions: dict[Operator, tuple[str, str]]
    infinity: str
    nan: str
    # How an array is aligned to so many bytes, where accesses of several elements need it.
    align: str = ""
    # The suffix of 64-bit integer literals.
    long: str = "ll"
    # Whether integers have min and max.
    integer_extremes: bool = True
    # Whether a pointer to shared memory is like any other.
    generic: bool = False
    # Of index functions and of their tables: what stands before them, and what reverses bits.
    placing: str = "static inline"  # plain `inline` is no definition where nothing is inlined
    table: str = "static const"
    reverse: str = ""
    # Small integers become `int` in expressions, among which overloads then cannot choose.
    cast_small: bool = False
    # What picks four bytes of two words by a selector, if the language has it.
    byte_select: str = ""


def unsigned(dtype: DType) -> DType:
    """The type without a sign in which integers of a type are computed, as it wraps."""
    return DType.U64 if dtype.bytes == 8 else DType.U32


_C_TYPES = {
    DType.F32: "float",
    DType.F64: "double",
    DType.I32: "int",
    DType.U32: "unsigned int",
    DType.I64: "long long",
    DType.U64: "unsigned long long",
    DType.I16: "short",
    DType.U16: "unsigned short",
    DType.I8: "signed char",
    DType.U8: "unsigned char",
    DType.F16: "unsigned short",
    DType.BF16: "unsigned short",
    DType.E4M3: "unsigned char",
    DType.E5M2: "unsigned char",
}
_C_FUNCTIONS: dict[Operator, tuple[str, str]] = {
    "abs": ("fabsf", "fabs"),
    "fma": ("fmaf", "fma"),
    "sqrt": ("sqrtf", "sqrt"),
    "exp": ("expf", "exp"),
    "exp2": ("exp2f", "exp2"),
    "log": ("logf", "log"),
    "log2": ("log2f", "log2"),
    "tanh": ("tanhf", "tanh"),
    "erf": ("erff", "erf"),
    "sin": ("sinf", "sin"),
    "cos": ("cosf", "cos"),
}
# PoCL 3 takes these of a constant NaN for anything at all, and drops the store of the result.
NAN_LOST = ("exp", "exp2", "tanh", "erf", "sin", "cos")

CUDA = Dialect(
    language="cuda",
    types=_C_TYPES,
    thread=("threadIdx.x", "threadIdx.y", "threadIdx.z"),
    block=("blockIdx.x", "blockIdx.y", "blockIdx.z"),
    shared="__shared__",
    barrier="__syncthreads();",
    warp_barrier="__syncwarp();",
    restrict=" __restrict__",
    helper_qualifiers="static __device__ __forceinline__",
    unroll="#pragma unroll",
    # The hardware's minimum and maximum order zeros and prefer numbers to NaN, as kernels do.
    functions=_C_FUNCTIONS
    | {"min": ("fminf", "fmin"), "max": ("fmaxf", "fmax"), "rsqrt": ("rsqrtf", "rsqrt")},
    infinity="__longlong_as_double(0x7ff0000000000000LL)",
    nan="__longlong_as_double(0x7ff8000000000000LL)",
    align="__align__({})",
    generic=True,
    placing="__host__ __device__ __forceinline__",
    table="__constant__",
    reverse="__brev",
    byte_select="__byte_perm",
)

OPENCL = Dialect(
    language="opencl",
    types=_C_TYPES
    | {DType.I64: "long", DType.U64: "ulong", DType.U32: "uint", DType.U8: "uchar"}
    | {DType.U16: "ushort", DType.I8: "char", DType.F16: "ushort", DType.BF16: "ushort"}
    | {DType.E4M3: "uchar", DType.E5M2: "uchar"},
    thread=("get_local_id(0)", "get_local_id(1)", "get_local_id(2)"),
    block=("get_group_id(0)", "get_group_id(1)", "get_group_id(2)"),
    shared="__local",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    warp_barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    restrict=" restrict",
    helper_qualifiers="static",
    unroll="#pragma unroll",
    functions={
        **{op: (names[1], names[1]) for op, names in _C_FUNCTIONS.items() if op not in NAN_LOST},
        "rsqrt": ("rsqrt", "rsqrt"),
    },
    infinity="INFINITY",
    nan="NAN",
    align="__attribute__((aligned({})))",
    table="__constant",
    long="l",
    cast_small=True,
)

C = Dialect(
    language="c",
    types=_C_TYPES,
    thread=("thread", "0", "0"),
    block=("block_x", "block_y", "block_z"),
    shared="",
    barrier="",
    warp_barrier="",
    restrict=" restrict",
    helper_qualifiers="static inline",
    unroll="",
    functions=_C_FUNCTIONS,
    infinity="INFINITY",
    nan="NAN",
    integer_extremes=False,
)
