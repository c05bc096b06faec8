"""Conversions between `f32` and numbers of sixteen or eight bits, in each language.

CUDA has instructions for them, for those of eight bits from sm_89 on. Elsewhere they are written
out: a code is moved into the place of a float's bits and scaled by a power of two; a float is
rounded by adding half of what is cut off, or by adding a number beside which only the wanted bits
remain. Every NaN becomes one.
"""

from __future__ import annotations

import numpy as np

from warploom.emit.dialect import Dialect
from warploom.kernel.dtype import DType
from warploom.machine.narrow import FORMATS, decoded

_FIRST_WITH_BYTES = 890  # __CUDA_ARCH__ of the first GPU that converts numbers of eight bits
_CUDA = {
    "f32_from_f16": 'float y;\n  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));\n  return y;',
    "f16_from_f32": 'unsigned short y;\n  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));\n'
    "  return y;",
    "f32_from_bf16": "return __uint_as_float((unsigned int)x << 16);",
    "bf16_from_f32": 'unsigned short y;\n  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));\n'
    "  return y;",
}
_UNION = "union { unsigned int bits; float number; } u;\n  "
_PLAIN = {
    # 2¹¹² is by how much the exponents of the two formats are apart; infinities are further.
    "f32_from_f16": _UNION + "u.bits = (unsigned int)(x & 0x7fff) << 13;\n"
    "  u.number *= 5192296858534827628530496329220096.0f;\n"
    "  if ((x & 0x7c00) == 0x7c00) u.bits |= 0x7f800000u;\n"
    "  u.bits |= (unsigned int)(x & 0x8000) << 16;\n  return u.number;",
    "f16_from_f32": _UNION + "u.number = x;\n"
    "  const unsigned int sign = u.bits >> 16 & 0x8000u;\n"
    "  u.bits &= 0x7fffffffu;\n"
    "  if (u.bits > 0x7f800000u) return 0x7fff;\n"
    "  if (u.bits >= 0x47800000u) return (unsigned short)(sign | 0x7c00u);\n"
    "  if (u.bits < 0x38800000u) {\n"
    "    u.number += 0.5f;\n"
    "    return (unsigned short)(sign | (u.bits - 0x3f000000u));\n"
    "  }\n"
    "  u.bits += 0xfffu + (u.bits >> 13 & 1u) - 0x38000000u;\n"
    "  return (unsigned short)(sign | u.bits >> 13);",
    "f32_from_bf16": _UNION + "u.bits = (unsigned int)x << 16;\n  return u.number;",
    "bf16_from_f32": _UNION + "u.number = x;\n"
    "  if ((u.bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;\n"
    "  return (unsigned short)((u.bits + 0x7fffu + (u.bits >> 16 & 1u)) >> 16);",
}


def code_text(name: str, dialect: Dialect) -> str:
    """The definition of a conversion by its name."""
    target, _, source = name.partition("_from_")
    dtype = DType[(target if source == "f32" else source).upper()]
    kinds = ["float", dialect.types[dtype]]
    made, given = reversed(kinds) if source == "f32" else kinds
    body = _of_a_byte(name, dtype, dialect) if dtype.bytes == 1 else _of_sixteen(name, dialect)
    return f"{dialect.helper_qualifiers} {made} {name}({given} x) {{\n  {body}\n}}\n"


def _of_sixteen(name: str, dialect: Dialect) -> str:
    return (_CUDA if dialect.language == "cuda" else _PLAIN)[name]


def _of_a_byte(name: str, dtype: DType, dialect: Dialect) -> str:
    widens = name.startswith("f32")
    plain = _widened_byte(dtype) if widens else _rounded_to_byte(dtype)
    if dialect.language != "cuda":
        return plain
    hardware = _CUDA_BYTE["widens" if widens else "rounds"].format(kind=repr(dtype))
    return f"#if __CUDA_ARCH__ >= {_FIRST_WITH_BYTES}\n  {hardware}\n#else\n  {plain}\n#endif"


# An instruction converts two: the number is the lower one, and above it is a zero.
_CUDA_BYTE = {
    "widens": "unsigned int both;\n"
    '  asm("cvt.rn.f16x2.{kind}x2 %0, %1;" : "=r"(both) : "h"((unsigned short)x));\n'
    '  float y;\n  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((unsigned short)both));\n  return y;',
    "rounds": "unsigned short both;\n"
    '  asm("cvt.rn.satfinite.{kind}x2.f32 %0, %1, %2;" : "=h"(both) : "f"(0.0f), "f"(x));\n'
    "  return (unsigned char)both;",
}


def _widened_byte(dtype: DType) -> str:
    """A code in the place of a float's bits, scaled by how much the exponents are apart."""
    form = FORMATS[repr(dtype)]
    special = 0x7C if form.infinity is not None else 0x7F
    return (
        f"{_UNION}u.bits = (unsigned int)(x & 0x7f) << {23 - form.fraction_bits};\n"
        f"  u.number *= {2.0 ** (127 - form.bias):.1f}f;\n"
        f"  if ((x & {special:#x}) == {special:#x}) u.bits |= 0x7f800000u;\n"
        "  u.bits |= (unsigned int)(x & 0x80) << 24;\n  return u.number;"
    )


def _rounded_to_byte(dtype: DType) -> str:
    """What is below all normal codes is added to a number whose last bit weighs as theirs."""
    form = FORMATS[repr(dtype)]
    cut, apart = 23 - form.fraction_bits, 127 - form.bias
    least = 2.0 ** (1 - form.bias - form.fraction_bits)  # the smallest code's number
    beside = least * 2.0**23
    largest, normal, magic = (
        int(np.float32(each).view(np.uint32))
        for each in (decoded(repr(dtype))[form.largest], 2.0 ** (1 - form.bias), beside)
    )
    return (
        f"{_UNION}u.number = x;\n"
        "  const unsigned int sign = u.bits >> 24 & 0x80u;\n"
        "  u.bits &= 0x7fffffffu;\n"
        "  if (u.bits > 0x7f800000u) return 0x7f;\n"
        f"  if (u.bits > {largest:#x}u) return (unsigned char)(sign | {form.largest:#x}u);\n"
        f"  if (u.bits < {normal:#x}u) {{\n"
        f"    u.number += {beside:.1f}f;\n"
        f"    return (unsigned char)(sign | (u.bits - {magic:#x}u));\n"
        "  }\n"
        f"  u.bits += {(1 << cut - 1) - 1:#x}u + (u.bits >> {cut} & 1u) - {apart << 23:#x}u;\n"
        f"  return (unsigned char)(sign | u.bits >> {cut});"
    )
