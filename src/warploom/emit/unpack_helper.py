"""Functions that unpack integers of few bits into pairs of numbers of sixteen, for texts of CUDA.

An integer that stands in the lowest bits of a number's fraction, beside the bits of a power of two,
is that power and the integer: of two such one subtraction leaves both. Of bf16, whose fraction has
seven bits, integers of eight go through single precision.
"""

from __future__ import annotations

# By type: the power of two that has room for the integer; it, and one, as bits.
_POWER = {"bf16": (128, 0x4300, 0x3F80), "f16": (1024, 0x6400, 0x3C00)}
_EXPONENT = {"bf16": (7, 127), "f16": (10, 15)}  # bits of the fraction; the bias of the exponent


def unpack(name: str) -> str:
    """Parameters and body: a word, then pairs of integers half a word apart, each less a number
    that the name has last."""
    _, dtype, bits, less = name.split("_")
    many = 32 // int(bits) // 2
    pairs = "".join(f", unsigned& p{at}" for at in range(many))
    lines = [_pair(dtype, int(bits), int(less), at) for at in range(many)]
    return f"(unsigned w{pairs}) {{\n" + "\n".join(lines)


def _pair(dtype: str, bits: int, less: int, at: int) -> str:
    if bits == 8 and dtype == "bf16":
        return _through_single(less, at)
    power, high, one = _POWER[dtype]
    minus = 0x8000 | _code(power + less, *_EXPONENT[dtype])
    if bits == 4:
        return (
            f'  asm("lop3.b32 %0, %1, 0x000f000f, %2, 0xea;" : "=r"(p{at})\n'
            f'    : "r"({f"w >> {4 * at}" if at else "w"}), "r"({_both(high)}));\n'
            + _less(dtype, at, one, minus)
        )
    held = f"__byte_perm(w, {_both(high)}, {0x5050 | at | (at + 2) << 8:#06x})"
    return f"  p{at} = {held};\n" + _less(dtype, at, one, minus)


def _less(dtype: str, at: int, one: int, minus: int) -> str:
    """Times one, and a negative number: a subtraction that all machines with bf16 have."""
    return (
        f'  asm("fma.rn.{dtype}x2 %0, %0, %1, %2;" : "+r"(p{at})'
        f' : "r"({_both(one)}), "r"({_both(minus)}));'
    )


def _through_single(less: int, at: int) -> str:
    """Both numbers have no more than eight bits: half of single precision is exact."""
    held = [
        f"__uint_as_float(__byte_perm(w, 0x4b000000u, {0x7440 | field:#06x})) - {8388608 + less}.0f"
        for field in (at, at + 2)
    ]
    low, high = (f"__float_as_uint({each})" for each in held)
    return f"  p{at} = __byte_perm({low},\n    {high}, 0x7632);"


def _both(bits: int) -> str:
    return f"{bits << 16 | bits:#010x}u"


def _code(number: int, fraction: int, bias: int) -> int:
    """A whole number as bits of a type that holds it exactly."""
    exponent = number.bit_length() - 1
    return (exponent + bias) << fraction | (number << fraction >> exponent) & ((1 << fraction) - 1)
