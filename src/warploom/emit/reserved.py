"""Words that a language keeps for itself, or that our texts use: no name of a kernel is spelled so.

A local variable may hide a function or a type of the same name, but not a keyword or a macro, nor
what the text itself calls. The kernel's own name stands beside all functions of the libraries.
"""

from __future__ import annotations

import re

from warploom.emit.dialect import Language


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
# Macros of the headers that the compilers bring along.
_MACROS = _words(
    """BUFSIZ CHAR_BIT EOF EXIT_FAILURE EXIT_SUCCESS HUGE_VAL HUGE_VALF HUGE_VALL INFINITY
    MAXFLOAT MATH_ERREXCEPT MATH_ERRNO MB_CUR_MAX NAN NULL OVERFLOW PLOSS RAND_MAX SING TLOSS
    UNDERFLOW DOMAIN X_TLOSS assert errno fpclassify isfinite isgreater isgreaterequal isinf isless
    islessequal islessgreater isnan isnormal isunordered linux math_errhandling offsetof signbit
    stderr stdin stdout unix i386 major minor makedev alloca strdupa strndupa NBBY MAXPATHLEN
    howmany roundup powerof2 MIN MAX"""
)
# Functions and variables that our own texts name, in any language.
_OWN = _words(
    """min max fma fmaf fmin fminf fmax fmaxf fabs fabsf sqrt sqrtf rsqrt rsqrtf exp expf exp2 exp2f
    log logf log2 log2f tanh tanhf signbit barrier get_local_id get_group_id sub_group_shuffle
    sub_group_barrier threadIdx blockIdx blockDim gridDim warpSize dim3 part other fault inside pool
    floor_div floor_mod shift_left"""
)
_OWN_PATTERN = re.compile(
    r"_|.*__|(exchange|min|max|abs|divide|rsqrt|exp2?|tanh)_[fiu]\d+$|b?[fiu]\d+_from_b?[fiu]\d+$"
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
    "c": _C_KEYWORDS | _MACROS | _OWN,
    "cuda": _CPP_KEYWORDS | _MACROS | _OWN,
    "opencl": _OPENCL_KEYWORDS | _MACROS | _OWN,
}
# Functions and types of the libraries, beside which a kernel may not stand under the same name.
_FUNCTIONS = _words(
    """abort abs acos acosh aligned_alloc asctime asin asinh asprintf at_quick_exit atan atan2 atanh
    atexit atof atoi atol atoll bsearch btowc bzero cabs calloc cbrt ceil clearerr clock cos cosh
    cospi ctime cyl_bessel_i0 cyl_bessel_i1 difftime div ceilf copysign erf erfc erfcinv erfcx
    erfinv exit expm1 exp10 fclose fdim feof ferror fflush ffs fgetc fgetpos fgets floor fmod fopen
    fprintf fputc fputs fread free freopen frexp fscanf fseek fsetpos ftell fwrite gamma getc
    getchar getenv gets gmtime hypot ilogb index isalnum isalpha isascii isblank iscntrl isdigit
    isgraph islower isprint ispunct isspace isupper isxdigit j0 j1 jn labs ldexp ldiv lgamma llabs
    lldiv llrint llround llmax llmin localeconv localtime log10 log1p logb longjmp lrint lround main
    malloc mblen mbstowcs mbtowc mem_fence memchr memcmp memcpy memmove memset mktime modf mul24
    mulhi nan nearbyint nextafter norm norm3d norm4d normcdf normcdfinv perror pow printf putc
    putchar puts qsort quick_exit rand rcbrt read_mem_fence realloc remainder remove remquo rename
    rewind rhypot rindex rint rnorm rnorm3d rnorm4d round saturate scalbln scalbn scanf setbuf
    setjmp setlocale setvbuf signal significand sin sincos sincospi sinh sinpi snprintf sprintf
    srand sscanf stpcpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror
    strftime strlen strncasecmp strncat strncmp strncpy strndup strpbrk strrchr strspn strstr
    strtod strtof strtok strtol strtold strtoll strtoul strtoull strxfrm system tan tgamma time
    tmpfile tmpnam toascii tolower toupper trap trunc ullmax ullmin umax umin umul24 umulhi ungetc
    vfprintf vprintf vsnprintf vsprintf wcstombs wctomb y0 y1 yn wait_group_events prefetch select
    clamp degrees mix radians step smoothstep sign cross dot distance length normalize mad mad24
    mad_sat rotate clz ctz popcount upsample hadd rhadd add_sat sub_sat abs_diff any all bitselect
    shuffle shuffle2 nan fract lgamma_r rootn powr pown maxmag minmag"""
)
_FUNCTION_PATTERN = re.compile(
    r"(acos|asin|atan|ceil|cos|erf|exp|floor|fmod|frexp|hypot|ldexp|lgamma|log|modf|pow|round|sin"
    r"|sqrt|tan|tgamma|trunc|rint|cbrt|fdim|nan|j|y)\w*[fl]$|(str|mem|wcs|is|to)[a-z0-9]+$|atomic"
    r"|\w+_t$|va_|FILE$|jmp_buf$|pthread|sched|sig|surf|tex|vload|vstore|write_|read_|create_|enqueue_|retain_|release_"
)


def is_reserved(name: str, language: Language) -> bool:
    """Whether a variable of this name would be taken for something else."""
    return (
        name in _KEYWORDS[language]
        or _OWN_PATTERN.match(name) is not None
        or _PATTERNS[language].match(name) is not None
    )


def is_reserved_function(name: str, language: Language) -> bool:
    """Whether a function of this name would be taken for another, or stand in its way."""
    return (
        is_reserved(name, language)
        or name in _FUNCTIONS
        or _FUNCTION_PATTERN.match(name) is not None
    )
