"""Numbers as literals that read back as exactly these numbers."""

from __future__ import annotations

import math

import numpy as np

from warploom.emit.dialect import Dialect
from warploom.kernel.dtype import DType, code_of

# How tightly a spelling binds. As in index expressions, bit operations are kept apart by
# parentheses, since few readers know their place.
CHOICE, BITS, SHIFT, SUM, PRODUCT, PREFIX, ATOM = 1, 4, 9, 10, 11, 12, 13

Spelling = tuple[int, str]


def number_text(number: float, dtype: DType, dialect: Dialect) -> Spelling:
    """A literal, and how tightly it binds."""
    if dtype.is_code:
        text = str(code_of(number, dtype))
    elif not dtype.is_float:
        text = _integer_text(int(number), dtype, dialect)
    elif math.isfinite(number):
        text = str(np.float32(number) if dtype is DType.F32 else float(number))
        text += "f" if dtype is DType.F32 else ""
    else:
        sign = "-" if number < 0 else ""
        value = dialect.nan if math.isnan(number) else dialect.infinity
        return PREFIX, f"{sign}({dialect.types[dtype]}){value}"
    return (PREFIX if text.startswith(("-", "(")) else ATOM), text


def _integer_text(number: int, dtype: DType, dialect: Dialect) -> str:
    match dtype:
        case DType.U32:
            return f"{number}u"
        case DType.U64:
            return f"{number}u{dialect.long}"
        case DType.I64:
            lowest = number == -(2**63)  # without its sign it is too large for the type
            return f"({number + 1}{dialect.long} - 1)" if lowest else f"{number}{dialect.long}"
        case DType.I32 if number == -(2**31):
            return f"({number + 1} - 1)"
        case _:
            return str(number)
