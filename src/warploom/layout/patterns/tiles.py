"""Several tiles of one kernel, from TOML: what each of them holds, how it is used, and when.

    shared = 65536
    phases = ["loop", "end"]

    [[tile]]
    name = "A"
    shape = [128, 32]
    element = "f16"
    stages = 2
    live = ["loop"]

    [[tile.access]]
    use = "rows"
    kind = "cp.async"

    [[tile.access]]
    use = "mma.a"

A tile is a pattern with its accesses in the order of its life. It has `stages` buffers, and is
alive in some of the phases; tiles of one phase share the memory of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warploom.choices import VARIED
from warploom.errors import Source, one_of
from warploom.layout.patterns.access import STORES, Problem
from warploom.layout.patterns.pattern import (
    MATRIX_UNIT,
    TENSOR_COPY,
    PatternText,
    Place,
    pattern_text,
)
from warploom.machine.record import Machine

MOST_TILES = 8  # whose places in memory are tried in every order
MOST_STAGES = 64
MOST_PHASES = 16
USUAL_DECISIONS = ("width", "matrices")
ALIGNED, ALIGNED_FOR_COPIES = 128, 1024  # bytes: where a tile may begin
_KEYS = ("name", "machine", "shared", "phases", "vary", "tile")
_TILE_KEYS = ("name", "shape", "element", "bytes", "access", "note", "stages", "live")


@dataclass(frozen=True, slots=True, eq=False)
class KernelTile:
    """One tile: how it is used, how many buffers it has, and the phases that it is alive in."""

    problem: Problem
    stages: int
    live: frozenset[int]
    uses: tuple[str, ...] = ()  # of each access by lanes, as it is named; empty where it is not

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def aligned(self) -> int:
        """Where each of its buffers begins: tensor copies and wgmma swizzle by address."""
        special = self.problem.copies or self.problem.operands
        return ALIGNED_FOR_COPIES if special else ALIGNED

    def way_of(self, number: int) -> str:
        """Between which places an access moves data.

        >>> from warploom.layout.patterns.named import pattern
        >>> tile = KernelTile(pattern("mma-c:16x64:f32"), 1, frozenset({0}), ("mma.c", "rows"))
        >>> tile.way_of(0), tile.way_of(1)
        ('product → shared', 'shared → global')
        """
        access = self.problem.accesses[number]
        use = self.uses[number] if number < len(self.uses) else ""
        stores = access.kind in STORES
        if any(access.name == operand.name for operand in self.problem.operands):
            return "shared → product"
        if use == "rows" or access.kind == "cp.async":
            return "global → shared" if stores else "shared → global"
        if use.partition(".")[2].startswith(("a", "b")) or use.startswith("ldmatrix"):
            return "registers → shared" if stores else "shared → registers → product"
        if use.endswith(".c") or use.startswith("stmatrix"):
            return "product → shared" if stores else "shared → registers"
        return "registers → shared" if stores else "shared → registers"

    def bytes_with(self, unused: int) -> int:
        """All buffers, each with so many places that stay unused; the last ends where it ends."""
        each = -(-(self.problem.size + unused) * self.problem.bits // 8)
        return (self.stages - 1) * -(-each // self.aligned) * self.aligned + each


@dataclass(frozen=True, slots=True, eq=False)
class Tiles:
    """All tiles of a kernel, the bytes of shared memory that a block may take, and what of the
    accesses may be chosen."""

    name: str
    tiles: tuple[KernelTile, ...]
    limit: int
    phases: tuple[str, ...]
    vary: tuple[str, ...]
    machine: Machine


def has_tiles(path: Path) -> bool:
    """Whether a file is one of several tiles; what cannot be read is told where it is read."""
    return path.suffix == ".toml" and path.is_file() and "tile" in _table(path)


def _table(path: Path) -> dict[str, object]:
    return PatternText(Source(str(path), pattern_text(path)), None).parsed().table


def load_tiles(path: Path, machine: str | None = None) -> Tiles:
    """The tiles in a file, on the machine that it names, or on another."""
    return parse_tiles(pattern_text(path), str(path), machine)


def parse_tiles(text: str, source_name: str = "<tiles>", machine: str | None = None) -> Tiles:
    file = PatternText(Source(source_name, text), machine)
    top = file.parsed()
    top.known(_KEYS)
    found = file.machine_of(top)
    phases = _names(top, "phases", ("always",))
    if len(phases) > MOST_PHASES or len(set(phases)) != len(phases) or not phases:
        top.fail("phases", f"phases = {list(phases)!r:.60}", f"1 to {MOST_PHASES} different names")
    vary = _names(top, "vary", USUAL_DECISIONS)
    for word in vary:
        if word not in VARIED:
            top.fail("vary", f"'{word[:20]}' is no decision about accesses", one_of(word, VARIED))
    limit = _limit(top, found)
    tiles = tuple(_tile(file, place, found, phases) for place in _places(file, top))
    names = [tile.name for tile in tiles]
    for number, name in enumerate(names):
        if name in names[:number]:
            top.fail("tile", f"two tiles are called '{name[:40]}'", "give each a name of its own")
    return Tiles(top.text("name", source_name), tiles, limit, phases, vary, found)


def _limit(top: Place, machine: Machine) -> int:
    """The bytes of a block: those that are given, or what it may have at all."""
    known = "shared_bytes_most" not in machine.missing
    most = machine.shared_bytes_most if known else machine.shared_bytes
    limit = top.whole("shared", most, 1 << 30)
    if known and limit > most:
        top.fail(
            "shared", f"shared = {limit}: a block has at most {most} bytes",
            f"the machine is {machine.name}: name another, or leave shared out",
        )  # fmt: skip
    return limit


def _places(file: PatternText, top: Place) -> list[Place]:
    """Each tile, numbered with the accesses of those before it."""
    given = top.table.get("tile", [])
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        top.fail("tile", "tiles are tables", "write [[tile]]")
    if not 1 <= len(given) <= MOST_TILES:
        top.fail("tile", f"{len(given)} tiles", f"1 to {MOST_TILES}")
    found, number = list[Place](), 0
    for each in given:
        found.append(Place(file, number, each))
        number += 1 + len(file.accesses_of(found[-1], 0))
    return found


def _tile(file: PatternText, place: Place, machine: Machine, phases: tuple[str, ...]) -> KernelTile:
    place.known(_TILE_KEYS)
    name = place.text("name", "")
    if not name:
        place.fail("name", "a tile needs a name", 'write name = "A"')
    live = _names(place, "live", phases)
    for word in live:
        if word not in phases:
            place.fail("live", f"there is no phase '{word[:40]}'", one_of(word, phases))
    if not live:
        place.fail("live", "a tile that is never alive", "leave live out, or name a phase")
    problem = file.problem(place, machine, name)
    stages = place.whole("stages", 1, MOST_STAGES)
    uses = tuple(
        str(each.table.get("use", ""))
        for each in file.accesses_of(place, 0)
        if each.table.get("kind") not in (TENSOR_COPY, MATRIX_UNIT)
    )
    return KernelTile(problem, stages, frozenset(phases.index(word) for word in live), uses)


def _names(place: Place, key: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    given = place.table.get(key, list(otherwise))
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        place.fail(key, f"{key} = {given!r:.40}", "a list of names")
    return tuple(given)
