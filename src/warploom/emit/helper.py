"""Functions that texts call where a language has no spelling with the meaning that kernels have.

A helper's name says what it does and on which type, so that the text follows from the name alone.
"""

from __future__ import annotations

import hashlib
import re

import numpy as np

from warploom.emit.async_helper import ASYNC_NAMES
from warploom.emit.code import code_text
from warploom.emit.dialect import NAN_LOST, Dialect, unsigned
from warploom.emit.literal import number_text
from warploom.errors import InternalError
from warploom.kernel.dtype import DType

_NAME = re.compile(
    r"(min|max|divide|abs|rsqrt|exp|exp2_ftz|exp2|log2_ftz|tanh|erf|sin|cos|tf32)_(\w+)"
    r"|(\w+)_from_(\w+)"
)
BF16_PAIR = "bf16_pair"  # two numbers rounded to bf16, in one word
BYTES = "pick_bytes"  # four bytes of two words, by a selector
INSIDE = "inside"  # of checked C texts: an index, or 0 where it is outside of its array
ONE_INSTRUCTION = {"exp2_ftz_f32": "ex2.approx.ftz.f32", "log2_ftz_f32": "lg2.approx.ftz.f32"}
_OTHERS = (BF16_PAIR, BYTES, INSIDE, "floor_div", "floor_mod", "shift_left")
_LONG = (DType.I64, DType.U64)
_BY_NAME = {repr(dtype): dtype for dtype in DType}
# CUDA's conversions are defined for every number; a cast of one too large is not.
_CUDA_CONVERSION = {
    (DType.F32, DType.I32): "__float2int_rz",
    (DType.F32, DType.U32): "__float2uint_rz",
    (DType.F32, DType.I64): "__float2ll_rz",
    (DType.F32, DType.U64): "__float2ull_rz",
    (DType.F64, DType.I32): "__double2int_rz",
    (DType.F64, DType.U32): "__double2uint_rz",
    (DType.F64, DType.I64): "__double2ll_rz",
    (DType.F64, DType.U64): "__double2ull_rz",
}


def rounds_twice(source: DType, target: DType, dialect: Dialect) -> bool:
    """PoCL makes a float of a long number by way of a double."""
    return dialect.language == "opencl" and target is DType.F32 and source in _LONG


def helper_prefix(owner: str) -> str:
    """What the names of the helpers of a kernel or function begin with: several texts then stand
    in one file, beside a user's own functions."""
    return f"{owner}_"


HEADER_ENDS = (".cuh", ".h", ".hpp", ".hh")  # of files that others include


def include_guard(name: str, text: str, comment: str = "") -> str:
    """A text to be included any number of times. A digest tells texts of one name apart: were it
    the name alone, of two that are included the second would be gone without a word."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:8].upper()
    guard = f"WARPLOOM_{name.upper()}_{digest}"
    return f"{comment}#ifndef {guard}\n#define {guard}\n\n{text}\n#endif\n"


def is_helper_of(owner: str, name: str) -> bool:
    """Whether a text may define a helper of this name for a kernel or function."""
    own = name.removeprefix(helper_prefix(owner))
    known = own in _OTHERS or _NAME.fullmatch(own) or ASYNC_NAMES.fullmatch(own)
    return own != name and bool(known)


def helper_text(name: str, dialect: Dialect, prefix: str) -> str:
    """The definition of a helper by its name, which begins with `prefix` in the text."""
    plain = _helper_text(name, dialect)
    return plain.replace(f" {name}(", f" {prefix}{name}(", 1)


def _helper_text(name: str, dialect: Dialect) -> str:
    if name == BF16_PAIR:
        return (
            f"{dialect.helper_qualifiers} unsigned {name}(float low, float high) {{\n"
            '  unsigned made;\n  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(made) : '
            '"f"(high), "f"(low));\n  return made;\n}\n'
        )
    if name in ONE_INSTRUCTION and dialect.language == "cuda":
        return (
            f"{dialect.helper_qualifiers} float {name}(float x) {{\n"
            f'  float made;\n  asm("{ONE_INSTRUCTION[name]} %0, %1;" : "=f"(made) : "f"(x));\n'
            "  return made;\n}\n"
        )
    if name in ("tf32_f32", "tf32_f64"):  # the leading bits
        kind = "double" if name.endswith("64") else "float"
        return (
            f"{dialect.helper_qualifiers} {kind} {name}({kind} x) {{\n"
            "  union { float number; unsigned int bits; } held;\n  held.number = (float)x;\n"
            "  held.bits &= 0xffffe000u;\n  return held.number;\n}\n"
        )
    if name == BYTES:
        return _picking(name, dialect)
    match = _NAME.fullmatch(name)
    if match is None:
        raise InternalError(f"no text for a helper '{name}'")
    what, on, target, source = match.groups()
    if what is None and (_BY_NAME[target].is_code or _BY_NAME[source].is_code):
        return code_text(name, dialect)
    if what is None and _BY_NAME[target].is_float:
        return _rounding(name, _BY_NAME[source], dialect)
    if what is None:
        return _conversion(name, _BY_NAME[source], _BY_NAME[target], dialect)
    dtype = _BY_NAME[on]
    kind = dialect.types[dtype]
    body, count = {
        "min": (_extreme("<", "x : y"), 2),
        "max": (_extreme(">", "y : x"), 2),
        "divide": (_divide(dtype, dialect), 2),
        "abs": (_absolute(dtype, dialect), 1),
        "exp2_ftz": (_power_of_two(dtype, dialect), 1),
        "log2_ftz": (_logarithm(dtype, dialect), 1),
        "rsqrt": (f"1.0{'f' if dtype is DType.F32 else ''} / sqrt{_suffix(dtype)}(x)", 1),
        **{each: (f"x != x ? x : {each}(x)", 1) for each in NAN_LOST},
    }[what]
    given = ", ".join(f"{kind} {each}" for each in "xy"[:count])
    return f"{dialect.helper_qualifiers} {kind} {name}({given}) {{\n  return {body};\n}}\n"


def _picking(name: str, dialect: Dialect) -> str:
    word, wide = dialect.types[DType.U32], dialect.types[DType.U64]
    picked = " | ".join(
        f"({word})(both >> (s >> {4 * i} & 7) * 8 & 255) << {8 * i}" for i in range(4)
    )
    return (
        f"{dialect.helper_qualifiers} {word} {name}({word} x, {word} y, {word} s) {{\n"
        f"  const {wide} both = ({wide})y << 32 | x;\n  return {picked};\n}}\n"
    )


def _suffix(dtype: DType) -> str:
    return "f" if dtype is DType.F32 else ""


def _extreme(sign: str, zeros: str) -> str:
    """The lesser or greater; of zeros by sign, of a number and a NaN the number."""
    return f"x {sign} y || y != y ? x : x == y ? (signbit(x) ? {zeros}) : y"


def _divide(dtype: DType, dialect: Dialect) -> str:
    """Towards zero; the lowest number by -1 wraps, and nothing traps."""
    if not dtype.is_signed:
        return "y == 0 ? 0 : x / y"
    wide = dialect.types[unsigned(dtype)]
    lowest = f"y == -1 ? ({dialect.types[dtype]})(0 - ({wide})x)"
    return f"y == 0 ? 0 : {lowest} : x / y"


def _absolute(dtype: DType, dialect: Dialect) -> str:
    wide = dialect.types[unsigned(dtype)]
    return f"x < 0 ? ({dialect.types[dtype]})(0 - ({wide})x) : x"


def _power_of_two(dtype: DType, dialect: Dialect) -> str:
    """Nothing below the least normal number."""
    name = dialect.functions.get("exp2", ("exp2", "exp2"))[0 if dtype is DType.F32 else 1]
    least = -126 if dtype is DType.F32 else -1022
    return f"x < {least}.0{_suffix(dtype)} ? 0 : {name}(x)"


def _logarithm(dtype: DType, dialect: Dialect) -> str:
    """That of 0 below the least normal number."""
    name = dialect.functions.get("log2", ("log2", "log2"))[0 if dtype is DType.F32 else 1]
    least = "0x1p-126f" if dtype is DType.F32 else "0x1p-1022"
    return f"{name}(x < {least} && x > -{least} ? 0 : x)"


def _conversion(name: str, source: DType, target: DType, dialect: Dialect) -> str:
    """A float as the nearest integer of a type, cut towards zero; NaN is 0."""
    limits = np.iinfo(target.numpy)
    low, high = (number_text(int(each), target, dialect)[1] for each in (limits.min, limits.max))
    kind = dialect.types[target]
    if dialect.language == "opencl":
        inside = f"x != x ? 0 : convert_{kind}_sat_rtz(x)"
    elif dialect.language == "cuda":
        wide = target if target.bytes >= 4 else DType.I32
        inside = f"x != x ? 0 : {_CUDA_CONVERSION[source, wide]}(x)"
        if target.bytes < 4:
            inside = f"x != x ? 0 : min(max({_CUDA_CONVERSION[source, wide]}(x), {low}), {high})"
    else:
        above = _power_text(limits.max + 1, source)
        below = _power_text(limits.min, source)
        inside = f"x >= {above} ? {high} : x <= {below} ? {low} : x == x ? ({kind})x : 0"
    return (
        f"{dialect.helper_qualifiers} {kind} {name}({dialect.types[source]} x) {{\n"
        f"  return {inside};\n}}\n"
    )


def _rounding(name: str, source: DType, dialect: Dialect) -> str:
    """A long number as the nearest float. What a double does not hold is first cut to an odd number
    (so that no tie is made), which then rounds as the number itself does."""
    kind, exact = dialect.types[source], 1 << 53
    bound = number_text(exact, source, dialect)[1]
    inside = f"x < {bound}" if not source.is_signed else f"x > -{bound} && x < {bound}"
    return (
        f"{dialect.helper_qualifiers} float {name}({kind} x) {{\n"
        f"  return {inside} ? (float)x : (float)((x >> 11) | ((x & 2047) != 0)) * 2048.0f;\n}}\n"
    )


def _power_text(number: int, dtype: DType) -> str:
    return f"{float(number)!r}{_suffix(dtype)}"
