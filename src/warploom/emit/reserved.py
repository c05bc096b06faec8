"""Words that a language keeps for itself, or that our texts use: no name of a kernel is spelled so.

A local variable may hide a function or a type of the same name, but not a keyword or a macro, nor
what the text itself calls. The kernel's own name stands beside all functions of the libraries.
What headers own is in `header_names.txt`, which the compilers' preprocessors were asked for
(`bench/kernel/header_names.py`): a text is the same on every machine, also without a compiler.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

from warploom.emit.dialect import Language

Kind = Literal["macros", "globals"]
KINDS: tuple[Kind, ...] = get_args(Kind)
HEADER_NAMES = Path(__file__).with_name("header_names.txt")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_C_KEYWORDS = _words(
    """alignas alignof asm auto bool break case char const constexpr continue default do double
    else enum extern false float for fortran goto if inline int long nullptr register restrict
    return short signed sizeof static static_assert struct switch thread_local true typedef typeof
    typeof_unqual union unsigned void volatile while"""
)
_CPP_KEYWORDS = _C_KEYWORDS | _words(
    """and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield
    compl concept const_cast consteval constinit decltype delete dynamic_cast explicit export
    final friend import module mutable namespace new noexcept not not_eq operator or or_eq override
    private protected public reinterpret_cast requires static_cast template this throw try typeid
    typename using virtual wchar_t xor xor_eq"""
)
_OPENCL_KEYWORDS = _C_KEYWORDS | _words(
    """kernel global local constant private generic read_only write_only read_write uniform pipe
    half quad complex imaginary uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t
    sampler_t event_t queue_t ndrange_t clk_event_t reserve_id_t image1d_t image1d_array_t
    image1d_buffer_t image2d_t image2d_array_t image2d_depth_t image3d_t printf vec_step"""
)
# Functions and variables that our own texts name, in any language.
_OWN = _words(
    """min max fma fmaf fmin fminf fmax fmaxf fabs fabsf sqrt sqrtf rsqrt rsqrtf exp expf exp2 exp2f
    log logf log2 log2f tanh tanhf erf erff sin sinf cos cosf signbit barrier get_local_id
    get_group_id sub_group_shuffle sub_group_barrier threadIdx blockIdx
    blockDim gridDim warpSize dim3 part other fault pool"""
)
_OWN_PATTERN = re.compile(
    r"_|.*__|exchange_b?[fiu]\d+$"
    r"|(make_)?(u?(char|short|int|long|longlong)|float|double)\d+$"
)
_PATTERNS: dict[Language, re.Pattern[str]] = {
    "c": re.compile(r"(FP|M)_[A-Z0-9_]+$"),
    # nvcc brings along the headers of the system, whose macros are written so.
    "cuda": re.compile(r"[A-Z][A-Z0-9]*_|SNAN|W[A-Z]+$|NFDBITS$|NZERO$|cuda|cu[A-Z]|CUDART|nv_"),
    "opencl": re.compile(
        r"(FP|M|CL|CLK|FLT|DBL|HALF|CHAR|SCHAR|UCHAR|SHRT|USHRT|INT|UINT|LONG|ULONG)_[A-Z0-9_]+$"
        r"|(u?(char|short|int|long)|float|double|half|bool)\d+$"
        r"|(as|convert|cl|cles|atomic|atom|native|half|work_group|sub_group|async|get|intel|pocl)_"
    ),
}
_KEYWORDS: dict[Language, frozenset[str]] = {
    "c": _C_KEYWORDS | _OWN,
    "cuda": _CPP_KEYWORDS | _OWN,
    "opencl": _OPENCL_KEYWORDS | _OWN,
}
# Families of functions and types of the libraries, which differ from system to system.
_FUNCTION_PATTERN = re.compile(
    r"(acos|asin|atan|ceil|cos|erf|exp|floor|fmod|frexp|hypot|ldexp|lgamma|log|modf|pow|round|sin"
    r"|sqrt|tan|tgamma|trunc|rint|cbrt|fdim|nan|j|y)\w*[fl]$|(str|mem|wcs|is|to)[a-z0-9]+$|atomic"
    r"|[a-z0-9]+f(16|32|64|128)x?(_r)?$"  # of <math.h>, by type: acosf32x
    r"|\w+_t$|va_|FILE$|jmp_buf$|pthread|sched|sig|surf|tex|vload|vstore|write_|read_|create_|enqueue_|retain_|release_"
)


def _keeper(language: Language) -> Language:
    """Whose words a language keeps: its own, or CUDA's where there is no list of them here."""
    return language if language in _KEYWORDS else "cuda"


@lru_cache(maxsize=16)
def header_names(language: Language, kind: Kind) -> frozenset[str]:
    """What the headers of a language define or declare, as far as no pattern says so."""
    _, _, rest = HEADER_NAMES.read_text().partition(f"[{language} {kind}]\n")
    return _words(rest.partition("[")[0])


def is_reserved(name: str, language: Language) -> bool:
    """Whether a variable of this name would be taken for something else."""
    language = _keeper(language)
    return (
        name in _KEYWORDS[language]
        or name in header_names(language, "macros")
        or _OWN_PATTERN.match(name) is not None
        or _PATTERNS[language].match(name) is not None
    )


def is_reserved_function(name: str, language: Language) -> bool:
    """Whether a function of this name would be taken for another, or stand in its way."""
    language = _keeper(language)
    return (
        is_reserved(name, language)
        or name in header_names(language, "globals")
        or _FUNCTION_PATTERN.match(name) is not None
    )
