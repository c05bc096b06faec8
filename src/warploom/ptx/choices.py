"""The named choices of forms: `{integer}` stands for all types of integers, and so on."""

from __future__ import annotations

_LOADED = [kind + bits for kind, sizes in (("b", "8 16 32 64"), ("u", "8 16 32 64"),
           ("s", "8 16 32 64"), ("f", "32 64")) for bits in sizes.split()]  # fmt: skip
_VECTORS = [f"v2.{kind}" for kind in _LOADED] + [
    f"v4.{kind}" for kind in _LOADED if not kind.endswith("64")
]


_NUMBERS = (
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89,
    90, 100, 101, 103, 110, 120, 121,
)  # fmt: skip
# From sm_90 on there are targets with features of one machine (a), from sm_100 of a family (f).
TARGETS = tuple(
    f"sm_{number}{ending}"
    for number in _NUMBERS
    for ending in ("", "a", "f")[: 1 + (number >= 90) + (number >= 100)]
)


def _range(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every number of one integer type is one of another."""
    low, high = _range(narrow)
    return _range(wide)[0] <= low and high <= _range(wide)[1]


_SMALL = ["u8", "s8", "u16", "u32", "u64", "s16", "s32", "s64"]
CHOICES = {
    "round": "rn|rz|rm|rp",
    "integral": "rni|rzi|rmi|rpi",
    "integer": "u16|u32|u64|s16|s32|s64",
    "small": "|".join(_SMALL),
    "narrowed": "|".join(f"{to}.{of}" for to in _SMALL for of in _SMALL if not _holds(to, of)),
    "carry": "u32|s32|u64|s64",
    "bits": "b16|b32|b64",
    "any": "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64",
    "scalar": "|".join(_LOADED),
    "loaded": "|".join((*_LOADED, *_VECTORS, "b128")),
    "wide": "|".join((*(f"v4.{t}" for t in _LOADED if t.endswith("64")),
                      *(f"v8.{t}" for t in _LOADED if t.endswith("32")))),
    "half": "f16|f16x2",
    "eight": "e4m3x2|e5m2x2",
    "six": "e2m3x2|e3m2x2",
    "brain": "bf16|bf16x2",
    "word": "u32|s32",
    "second": "add|min|max",
    "signs": "s32.u32|s32.s32|u32.s32",
    "order": "eq|ne|lt|le|gt|ge",
    "unsigned_order": "lo|ls|hi|hs",
    "unordered": "equ|neu|ltu|leu|gtu|geu|num|nan",
    "join": "and|or|xor",
    "scope": "cta|cluster|gpu|sys",
    "semantics": "relaxed|acquire|release|acq_rel",
    "space": "global|shared|shared::cta|shared::cluster|local|const|param|param::entry",
    "shared": "shared|shared::cta|shared::cluster",
    "evict": "|".join(
        f"L1::{word}" for word in
        ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
    ),
    "evict_far": "L2::evict_normal|L2::evict_first|L2::evict_last",
    "fetch": "L2::64B|L2::128B|L2::256B",
    "policy": "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged",
    "otherwise": "L2::evict_first|L2::evict_unchanged",
}  # fmt: skip
