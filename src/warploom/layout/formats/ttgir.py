"""A file of Triton's GPU IR (TTGIR) → its operations that move data between layouts.

The file is read line by line, as Triton prints it. Attributes and types are parsed; nothing else of
the IR is looked at, and nothing is run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from warploom.errors import ParseError, Source, Span, WarploomError
from warploom.layout.formats.mlir import Attribute, read_attribute

MOST_CHARACTERS = 64 << 20
MOST_OPERATIONS = 10_000
_ALIAS = re.compile(r"#([A-Za-z_]\w*)\s*=\s*(#\S.*)", re.ASCII)
_OPERATION = re.compile(r'(?:%[^=]*=\s*)?"?([a-z_]\w*(?:\.\w+)+)"?(?=[\s(:])', re.ASCII)
_SIZES = re.compile(r"((?:[0-9]{1,9}x)*)(\S+)", re.ASCII)
_TYPE = re.compile(r"(tensor|memdesc)<|->\s*<", re.ASCII)
_NUMBER = re.compile(r'"?ttg\.([\w-]+)"?\s*=\s*([0-9]{1,6})', re.ASCII)
_TARGET = re.compile(r'ttg\.target = "cuda:([0-9]{1,4})"', re.ASCII)
_HIP = re.compile(r'ttg\.target = "hip:(gfx[0-9a-f]{1,8})"', re.ASCII)
_CONTIGUITY = re.compile(r"contiguity = ([0-9]{1,4})", re.ASCII)
_PARTITION = re.compile(r"partition[0-9]+\(.*\) num_warps\(([0-9]{1,4})\) \{", re.ASCII)
_ORDER = re.compile(r"\border ?= ?array<i32: ?([0-9]{1,3}(?:, ?[0-9]{1,3})*)>", re.ASCII)
_LOOPS = ("scf.for", "scf.while")
MOVES = (
    "ttg.convert_layout", "ttg.local_load", "ttg.local_store", "ttg.local_alloc",
    "ttg.async_copy_global_to_local",
)  # fmt: skip
# Other names of a tile, or of a part of it: nothing is moved.
VIEWS = (
    "ttg.memdesc_index", "ttg.memdesc_subslice", "ttg.memdesc_trans", "ttg.memdesc_reshape",
    "ttg.memdesc_reinterpret",
)  # fmt: skip
# What only hands a tile on, begins its life or ends it.
_HANDED_ON = (
    "tt.func", "tt.call", "tt.return", "cf.br", "cf.cond_br", "arith.select", "ub.poison",
    "scf.for", "scf.while", "scf.if", "scf.execute_region", "scf.yield", "scf.condition",
    "ttg.local_alloc", "ttg.local_dealloc", "ttg.async_wait", "ttng.warp_group_dot_wait",
    "ttng.wait_barrier",
    "ttg.warp_specialize", "ttg.warp_yield", "ttg.warp_return",
)  # fmt: skip
BYTES = {1: 1, 8: 1, 16: 2, 32: 4, 64: 8}  # bits of an element → bytes that it takes


@dataclass(frozen=True)
class TileType:
    """A tensor in registers or a tile of shared memory. `whole` is the shape that the layout is of,
    where the tile is a part of it."""

    place: str  # tensor or memdesc
    shape: tuple[int, ...]
    element: str
    layout: Attribute
    whole: tuple[int, ...]

    @property
    def element_bytes(self) -> int | None:
        """None where elements are smaller than a byte, or something else."""
        if self.element.startswith("!tt.ptr"):
            return 8
        found = re.match(r"(?:bf|tf|f|i)([0-9]+)", self.element)
        return BYTES.get(int(found[1])) if found else None


@dataclass(frozen=True)
class Operation:
    """What moves data, is a view of a tile, or uses a tile in a way of its own."""

    name: str
    line: int
    loops: int  # around it
    warps: int  # that execute it
    types: tuple[TileType, ...]
    contiguity: int = 0  # of an asynchronous copy, in elements
    order: tuple[int, ...] = ()  # of the dimensions of a tile, where a view transposes it

    def only(self, place: str) -> TileType | None:
        return next((each for each in self.types if each.place == place), None)


@dataclass(frozen=True)
class TritonModule:
    source: Source
    warps: int
    lanes: int
    blocks: int
    target: int  # 90 for sm_90; 0 where it is no NVIDIA GPU
    operations: tuple[Operation, ...]
    architecture: str = ""  # of AMD's GPUs: gfx942

    def span(self, line: int) -> Span:
        text = self.source.line(line)
        column = len(text) - len(text.lstrip()) + 1
        return Span(self.source, line, column, max(1, len(text.strip()[:60])))


def read_ttgir(text: str, name: str = "<ttgir>") -> TritonModule:
    """The module of a file, or one located error."""
    source = Source(name, text)
    if len(text) > MOST_CHARACTERS:
        raise ParseError(f"{name} has more than {MOST_CHARACTERS >> 20} million characters")
    return _Lines(source).module()


@dataclass(frozen=True)
class _Region:
    loop: bool = False
    warps: int = 0  # 0: as around it


class _Lines:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._aliases: dict[str, Attribute] = {}
        self._facts: dict[str, int] = {}
        self._architecture = ""
        self._regions: list[_Region] = []  # those that are open
        self._found: list[Operation] = []

    def module(self) -> TritonModule:
        for number, line in enumerate(self._source.text.split("\n"), 1):
            stripped = line.strip()
            if not stripped or stripped.startswith(("//", "#loc")):
                continue
            try:
                self._line(number, stripped)
            except WarploomError as error:
                if error.span is None or error.span.source is not self._source:
                    column = line.find(stripped) + 1
                    error.span = Span(self._source, number, column, max(1, len(stripped[:60])))
                raise
        if "num-warps" not in self._facts:
            raise ParseError(
                f"{self._source.name} is no TTGIR: no module says how many warps a block has",
                advice='give the text that Triton has as compiled.asm["ttgir"]',
            )
        facts = self._facts
        return TritonModule(
            self._source, facts["num-warps"], facts.get("threads-per-warp", 32),
            facts.get("num-ctas", 1), facts.get("target", 0), tuple(self._found),
            self._architecture,
        )  # fmt: skip

    def _line(self, number: int, line: str) -> None:
        alias = _ALIAS.fullmatch(line)
        if alias is not None:
            if "<" in alias[2]:
                self._aliases[alias[1]] = read_attribute(alias[2], self._aliases)
            return
        if line.startswith("module"):
            self._facts = {name: int(count) for name, count in _NUMBER.findall(line)}
            target = _TARGET.search(line)
            self._facts["target"] = int(target[1]) if target else 0
            architecture = _HIP.search(line)
            self._architecture = architecture[1] if architecture else ""
        closed = self._close() if line.startswith("}") else _Region()
        operation = _OPERATION.match(line)
        name = operation[1] if operation is not None else ""
        if name in (*MOVES, *VIEWS) or ("memdesc<" in line and name not in ("", *_HANDED_ON)):
            self._add(number, name, line)
        self._open(line, name, closed)

    def _add(self, number: int, name: str, line: str) -> None:
        if len(self._found) >= MOST_OPERATIONS:
            raise ParseError(f"more than {MOST_OPERATIONS} operations that move data")
        contiguity, order = _CONTIGUITY.search(line), _ORDER.search(line)
        self._found.append(
            Operation(
                name, number, sum(region.loop for region in self._regions), self._warps(),
                tuple(self._types(line)), int(contiguity[1]) if contiguity else 0,
                tuple(map(int, order[1].split(","))) if order else (),
            )
        )  # fmt: skip

    def _warps(self) -> int:
        inner = [region.warps for region in self._regions if region.warps]
        return inner[-1] if inner else self._facts.get("num-warps", 0)

    def _close(self) -> _Region:
        if not self._regions:
            raise ParseError("'}' closes nothing")
        return self._regions.pop()

    def _open(self, line: str, name: str, closed: _Region) -> None:
        """A line that ends in an opening bracket has a region after it. One that begins by closing
        a region, '} do {', goes on with the same operation."""
        plain = re.sub(r"\s+loc\(.*\)$", "", line)
        if plain.endswith(("{", "({")):
            partition = _PARTITION.fullmatch(plain)
            warps = int(partition[1]) if partition else 0
            self._regions.append(_Region(closed.loop or name in _LOOPS, warps))

    def _types(self, line: str) -> list[TileType]:
        found, at = [], 0
        while (start := _TYPE.search(line, at)) is not None:
            end = _closing(line, start.end())
            place = start[1] or "memdesc"
            tile = self._type(place, line[start.end() : end])
            if tile is not None:
                found.append(tile)
            at = end + 1
        return found

    def _type(self, place: str, text: str) -> TileType | None:
        """`64x32xf16, #shared, #smem, mutable, 64x32`; None of a tensor without a layout."""
        parts = _top_parts(text)
        sizes = _SIZES.fullmatch(parts[0])
        if sizes is None or sizes[2][0].isdigit():
            raise ParseError(f"'{parts[0][:40]}' is no shape with an element")
        shape = tuple(int(size) for size in sizes[1].split("x") if size)
        if len(parts) < 2 or not parts[1].startswith("#"):
            return None
        layout = read_attribute(parts[1], self._aliases)
        whole = parts[-1] if re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})*", parts[-1]) else ""
        known = tuple(int(size) for size in whole.split("x")) if whole else shape
        return TileType(place, shape, sizes[2], layout, known[-len(shape) :])


def _closing(line: str, start: int) -> int:
    """Where the '<' before `start` is closed; arrows close nothing."""
    depth = 1
    for at in range(start, len(line)):
        if line[at] == "<":
            depth += 1
        elif line[at] == ">" and line[at - 1] != "-":
            depth -= 1
            if not depth:
                return at
    raise ParseError("a type is not closed", advice="the line ends before its '>'")


def _top_parts(text: str) -> list[str]:
    """What commas outside of all brackets separate."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and not depth:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    return [*parts, current.strip()]
