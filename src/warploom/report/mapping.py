"""The picture of a mapping: the loops of each kernel, coloured by where they run, its buffers."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.array.code.program import Compiled
from warploom.array.code.schedule import mapping_schedules
from warploom.array.code.spread import Spread
from warploom.array.mapping.constraint import FUSED, GLOBAL, GROUP, SEQUENTIAL, VECTOR
from warploom.array.plan.loops import Loop, Node, Plan, Stage, Write, reads_of
from warploom.array.types import Type, base, shape, type_text
from warploom.emit import emit
from warploom.index.ir import Const
from warploom.index.show import show
from warploom.kernel.ir import Kernel, Shared
from warploom.kernel.pool import pool_bytes
from warploom.report import tree
from warploom.report.page import listing
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.report.tree import Row

_SPACES = {"local": "shared", "global": "global", "private": "registers"}


_NOTE = (
    "Loops of one iteration are left out. Point at a line, or focus it, to light the loops around "
    "it."
)


def picture(made: Compiled, brief: bool = False) -> Picture:
    """The picture of the kernels of one candidate."""
    del brief  # nothing takes long
    stages = [
        (kernel, list(stage_rows(made.plan, at, spread)))
        for at, (kernel, spread) in enumerate(zip(made.kernels, made.spreads, strict=True))
    ]
    told = [text[:1].upper() + text[1:] for text in mapping_schedules(made)]
    name = made.plan.program.name
    parts = [
        Part(kernel.name, tree.legend(rows) + tree.html(rows), f"{text}. {_NOTE}")
        for (kernel, rows), text in zip(stages, told, strict=True)
    ]
    parts += [code_part(kernel) for kernel in made.kernels]
    figures = [
        Figure(kernel.name, f"{kernel.name}: loops by where they run", tree.svg(kernel.name, rows))
        for kernel, rows in stages
    ]
    lines = [name]
    for (kernel, rows), text in zip(stages, told, strict=True):
        lines += [f"{kernel.name}: {text}", *(f"  {each}" for each in tree.lines(rows))]
    return Picture(
        "Mapping of an array expression",
        name,
        _facts(made),
        tuple(parts),
        tuple(figures),
        tuple(lines),
        None,
        ("link.css", "link.js"),
    )


def _facts(made: Compiled) -> tuple[Fact, ...]:
    threads = max(kernel.threads for kernel in made.kernels)
    shared = max(pool_bytes([s for s in k.body if isinstance(s, Shared)]) for k in made.kernels)
    return (
        Fact("kernels", str(len(made.kernels))),
        Fact("threads of a block", str(threads)),
        Fact("shared memory", f"{shared} bytes"),
        Fact("between kernels", f"{made.temporary_bytes} bytes"),
    )


def code_part(kernel: Kernel) -> Part:
    """The text of a kernel."""
    code = [(line, "") for line in emit(kernel, "cuda").splitlines()]
    return Part(f"{kernel.name} as CUDA C++", listing(code))


def stage_rows(plan: Plan, at: int, spread: Spread) -> Iterator[Row]:
    """The loops of a stage, outermost first, with the buffers that are made in them."""
    yield from _Stage(plan, at, spread).rows(plan.stages[at], ())


class _Stage:
    def __init__(self, plan: Plan, at: int, spread: Spread) -> None:
        self.plan, self.at, self.spread = plan, at, spread

    def rows(self, stage: Stage, chain: tuple[int, ...]) -> Iterator[Row]:
        yield from self._buffers(chain, 0)
        for node in stage.body:
            yield from self._node(node, chain, 0)

    def _node(self, node: Node, chain: tuple[int, ...], depth: int) -> Iterator[Row]:
        if isinstance(node, Write):
            yield self._write(node, depth)
            return
        inner = chain if node.map is None else (*chain, node.map.number)
        below = depth
        if node.size is not Const(1):  # a loop of one iteration is none
            kind, word = self._level(node)
            yield Row(depth, kind, word, f"{node.counter} < {show(node.size)}")
            below += 1
        yield from self._buffers(inner, below) if node.map is not None else ()
        for each in node.body:
            yield from self._node(each, inner, below)

    def _level(self, loop: Loop) -> tuple[str, str]:
        if loop.lanes:
            return "vector", "vector"
        if loop.map is None:
            return "serial", "fold"
        run = self.spread.runs[loop.map.number]
        if run in GROUP:
            return "global", f"blocks {'xyz'[int(run[1:])]}"
        if run in GLOBAL:
            return "global", f"all threads {'xyz'[int(run[1:])]}"
        if run == VECTOR:
            return "vector", "vector"
        if run in (SEQUENTIAL, FUSED):
            return "serial", "loop" if run == SEQUENTIAL else "fused loop"
        return "thread", f"threads {'xyz'[int(run[1:])]}" if run[1:].isdigit() else run

    def _buffers(self, chain: tuple[int, ...], depth: int) -> Iterator[Row]:
        for each in self.plan.buffers:
            if each.role == "temporary" and each.stage == self.at and each.chain == chain:
                space = _SPACES.get(each.space, each.space)
                kind = "shared" if space == "shared" else ""
                text = f"{each.memory.name}: {_extent(each.memory.type)}"
                yield Row(depth, kind, "shared", text, "" if kind else f"in {space}")

    def _write(self, node: Write, depth: int) -> Row:
        read = dict.fromkeys(each.memory.name for each in reads_of(node.value))
        return Row(
            depth, "", "", f"computes {node.memory.name}", f"from {', '.join(read) or 'constants'}"
        )


def _extent(type_: Type) -> str:
    """`f32[8, 32]`: axes of one element are left out."""
    sizes = [show(size) for size in shape(type_) if size is not Const(1)]
    inner = type_text(base(type_))
    return f"{inner}[{', '.join(sizes)}]" if sizes else inner
