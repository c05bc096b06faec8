"""Conversions between `f32` and numbers of sixteen bits, in each language.

CUDA has instructions for them. Elsewhere they are written out: a code is moved into the place of a
float's bits and scaled by a power of two; a float is rounded by adding half of what is cut off, or
by adding a number beside which only the wanted bits remain. Every NaN becomes one.
"""

from __future__ import annotations

from warploom.emit.dialect import Dialect

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
    body = (_CUDA if dialect.language == "cuda" else _PLAIN)[name]
    kinds = ("float", "unsigned short") if name.startswith("f32") else ("unsigned short", "float")
    head = f"{dialect.helper_qualifiers} {kinds[0]} {name}({kinds[1]} x) {{\n"
    return f"{head}  {body}\n}}\n"
