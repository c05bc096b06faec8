"""Which register a name means: declared registers by scope, and the special registers."""

from __future__ import annotations

import re
from functools import lru_cache

from warploom.machine.record import CUDA
from warploom.ptx import ir

_AXES = tuple(f"{name}.{axis}" for name in ("%tid", "%ntid", "%ctaid", "%nctaid") for axis in "xyz")
_CLUSTER = tuple(
    f"{name}.{axis}"
    for name in ("%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid")
    for axis in "xyz"
)
_PLAIN = """%laneid %warpid %nwarpid %smid %nsmid %gridid %clock %clock_hi %clock64 %globaltimer
    %globaltimer_lo %globaltimer_hi %is_explicit_cluster %cluster_ctarank %cluster_nctarank
    %current_graph_exec %total_smem_size %aggr_smem_size %dynamic_smem_size
    %reserved_smem_offset_begin %reserved_smem_offset_end %reserved_smem_offset_cap
    %reserved_smem_offset_0 %reserved_smem_offset_1"""
SPECIAL = frozenset(
    (
        *_AXES,
        *_CLUSTER,
        *_PLAIN.split(),
        *(f"%lanemask_{relation}" for relation in ("eq", "le", "lt", "ge", "gt")),
        *(f"%pm{n}{suffix}" for n in range(8) for suffix in ("", "_64")),
        *(f"%envreg{n}" for n in range(32)),
    )
)
_COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_SELECTOR = re.compile(r"[bh]\d{1,4}")
_TRAILING_DIGITS = re.compile(r"\d+\Z")


class Names:
    """The registers that can be seen at one place of a body, and the labels of each open scope."""

    def __init__(self) -> None:
        self._exact: list[dict[str, ir.Register]] = [{}]
        self._ranges: list[dict[str, tuple[int, str, int]]] = [{}]
        self._labels: list[set[str]] = [set()]
        self._suffixes = [""]
        self._opened = 0
        self.known: dict[str, ir.Operand] = {}  # texts already resolved; emptied by declarations

    @property
    def depth(self) -> int:
        return len(self._exact) - 1

    def open_scope(self) -> None:
        self._opened += 1
        self._exact.append({})
        self._ranges.append({})
        self._labels.append(set())
        self._suffixes.append(f"@{self._opened}")

    def close_scope(self) -> None:
        declared = bool(self._exact.pop()) | bool(self._ranges.pop())
        self._labels.pop()
        self._suffixes.pop()
        if declared:
            self.known = {}

    def declare(self, name: str, count: int, kind: str, vector: int) -> bool:
        """Adds one name, or `name0 … name(count-1)`; False if this scope has it already."""
        if self.known:
            self.known = {}
        if count:
            fresh = name not in self._ranges[-1]
            self._ranges[-1][name] = (count, kind, vector)
            return fresh
        fresh = name not in self._exact[-1]
        self._exact[-1][name] = ir.Register(name, kind, name + self._suffixes[-1], vector)
        return fresh

    def add_label(self, name: str) -> bool:
        """False if this scope has the label already."""
        labels = self._labels[-1]
        before = len(labels)
        labels.add(name)
        return len(labels) > before

    def resolve(self, name: str) -> ir.Operand:
        register = self._register(name)
        if register is not None:
            return register
        if name in SPECIAL:
            return ir.Special(name)
        if name == "WARP_SZ":
            return ir.Immediate(name, CUDA.lanes, ir.Spelling.INTEGER)
        base, dot, component = name.rpartition(".")
        if dot and component in _COMPONENTS:
            register = self._register(base)
            if register is not None and _COMPONENTS[component] < register.vector:
                return ir.Component(register, _COMPONENTS[component])
        if dot and _SELECTOR.fullmatch(component):
            register = self._register(base)
            if register is not None:
                return ir.Part(register, component)
        return ir.Symbol(name)

    def _register(self, name: str) -> ir.Register | None:
        for level in range(len(self._exact) - 1, -1, -1):
            found = self._exact[level].get(name) or self._in_range(name, level)
            if found is not None:
                return found
        return None

    def _in_range(self, name: str, level: int) -> ir.Register | None:
        ranges = self._ranges[level]
        digits = _TRAILING_DIGITS.search(name)
        if digits is None or not ranges:
            return None
        for cut in range(digits.start(), len(name)):
            entry = ranges.get(name[:cut])
            if entry is None:
                continue
            number = name[cut:]
            if len(number) > 9 or (number[0] == "0" and len(number) > 1):
                continue
            if int(number) < entry[0]:
                return _register(name, entry[1], name + self._suffixes[level], entry[2])
        return None


@lru_cache(maxsize=1 << 16)
def _register(name: str, kind: str, key: str, vector: int) -> ir.Register:
    """Registers of all functions share their objects; a module has the same few names often."""
    return ir.Register(name, kind, key, vector)
