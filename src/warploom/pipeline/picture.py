"""Pictures of what this room makes: explored loop nests; warp sketches as programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape

import numpy as np

from warploom.catalogue.conversion import conversion_kernel, wrong_results
from warploom.catalogue.entry import Entry, Parameters
from warploom.catalogue.loaded import Loaded
from warploom.errors import UnsupportedError, WarploomError
from warploom.index.evaluate import evaluate
from warploom.index.show import show as show_index
from warploom.kernel.dtype import f32
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.loopnest.schedule import resource_words
from warploom.loopnest.show import show
from warploom.machine.times import time_words
from warploom.pipeline.certificate import closed
from warploom.pipeline.compiled import Compiled
from warploom.pipeline.converted import ConvertedResult
from warploom.pipeline.entry import entry_of
from warploom.pipeline.layouts import LayoutResult
from warploom.pipeline.mapping import MappedResult
from warploom.pipeline.nest import Explored
from warploom.pipeline.warp_result import WarpResult
from warploom.report import mapping, request
from warploom.report.fill import Shown, drawn
from warploom.report.kernel import picture as simulation
from warploom.report.kernel import simulated
from warploom.report.mapping import code_part
from warploom.report.nest import bound_part, decisions_part, loops_part
from warploom.report.page import listing
from warploom.report.panel import flow_of
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.report.search import figures_of, side_by_side
from warploom.search.branching.decided import decisions_of
from warploom.sketch.simt.code import tiled_sketch
from warploom.sketch.simt.solve import Filled
from warploom.sketch.term.verify import Verifier


def filled(found: Filled, code: bool | None = None, brief: bool = False) -> Picture:
    """The picture of a warp sketch with its holes filled, as the program that it was lowered to."""
    program, fill = closed(found)
    verifier = Verifier(program, program.goals[0])
    taken = dict(zip(program.holes, fill, strict=True)) if not isinstance(fill, Mapping) else fill
    flow = flow_of(verifier.program, taken)
    tiled, without = None, "no code was asked for"
    if code is not False and not brief:
        try:
            tiled = tiled_sketch(found, f32, warps=4)
        except WarploomError as error:
            without = error.message
    made = Shown(verifier.program, taken, flow, verifier.verify(taken), tiled, without, False)
    holes = tuple(Fact(f"hole {name}", show_index(expr)) for name, expr in found.fill.items())
    return drawn(made, found.traced.name, holes)


def warp_result(found: WarpResult, code: bool | None = None, brief: bool = False) -> Picture:
    """The picture of what `solve` found."""
    return filled(found.filled, code, brief)


def mapped(found: MappedResult, number: int = 0, brief: bool = False) -> Picture:
    """The picture of one candidate of a mapping."""
    return mapping.picture(found.compiled(number), brief)


def layout(found: LayoutResult, brief: bool = False) -> Picture:
    """The request that waits longest, in rows as they are and in the layout."""
    return request.picture(found.compared(), brief)


def loaded(found: Loaded, brief: bool = False) -> Picture:
    """A kernel of the catalogue, run on the simulator on one of its sizes."""
    return entry_picture(found.entry, found.kernel, found.settings, brief)


def compiled(found: Compiled, brief: bool = False) -> Picture:
    """The kernel of a sketch, run on the simulator on one of its sizes."""
    entry = entry_of(found.tiled.tiling.name, found.tiled)
    return entry_picture(entry, found.kernel, {}, brief)


def entry_picture(
    entry: Entry, kernel: Kernel, settings: Parameters, brief: bool = False
) -> Picture:
    """A kernel on the largest of its sizes, or where it is to be brief on the smallest, beside its
    specification."""
    sizes = entry.sizes(**entry.settings(settings))
    size = (min if brief else max)(sizes, key=lambda each: sum(each.values()))
    case = entry.case(kernel, size, 0, **settings)
    arguments = case.fresh()
    seen = simulated(kernel, arguments)
    right = entry.agrees(kernel, case, arguments)
    return simulation(replace(seen, verdict="as specified" if right else "not as specified"), brief)


def converted(found: ConvertedResult, brief: bool = False) -> Picture:
    """The kernel of a conversion, run on the simulator on the numbers of the elements. The
    simulator has no ldmatrix: instead of that way it shows the one by plain shared memory."""
    way = "shared" if found.way == "matrices" else found.way
    kernel = conversion_kernel(found.conversion, way)
    x, y = (np.zeros(2 * _elements(each), each.dtype.numpy) for each in kernel.arrays)
    seen = simulated(kernel, [2, np.arange(x.size).astype(x.dtype), y])
    wrong = wrong_results(found.conversion, way, "simulator")
    said = "as specified" + "; drawn by plain accesses instead of ldmatrix" * (way != found.way)
    return simulation(replace(seen, verdict=wrong or said), brief)


def _elements(array: ArrayParam) -> int:
    return int(evaluate(array.size, {"blocks": 1}))


def explored(found: Explored, brief: bool = False) -> Picture:
    """The picture of the best implementation: loops, decisions, what bounds it, and the search."""
    del brief  # everything is known already
    nest = found.nest
    if nest is None:
        raise UnsupportedError("what was explored is not known any more: explore it again")
    parts, figures = [], list[Figure]()
    if found.candidate is not None:
        part, drawn = loops_part(nest.implementation(found.candidate))
        text = nest.schedule(found.candidate)
        parts.append(Part("Schedule", f"<p>{escape(text[:1].upper() + text[1:])}.</p>\n"))
        parts.append(part)
        figures.append(drawn)
        part, drawn = bound_part(
            nest.bound.explain(found.candidate), "What bounds this implementation", "bound"
        )
        parts.append(part)
        figures.append(drawn)
    if nest.is_possible:
        part, drawn = bound_part(nest.reasons(), "What bounds all of them", "all")
        parts.append(part)
        figures.append(drawn)
    if found.history is not None:
        over_time = figures_of(found.history)
        parts.append(Part("The search", side_by_side(over_time)))
        figures += over_time
    if found.candidate is not None:
        decided = decisions_of(nest.space.propagator, found.candidate, 0)
        parts.append(decisions_part(decided))
        parts += [code_part(each) for each in nest.kernels(found)]
    text = show(nest.program)
    parts.append(Part("The computation", listing([(line, "") for line in text.splitlines()])))
    facts = _facts(found)
    least = nest.reasons()[:4]
    lines = [
        f"{nest.program.name}: " + "; ".join(f"{f.label} {f.value}" for f in facts),
        *([] if found.candidate is None else [f"  schedule: {nest.schedule(found.candidate)}"]),
        *(f"  {time_words(r.nanoseconds):>10}  {resource_words(r)}: {r.why}" for r in least),
    ]
    return Picture(
        "Loop nest", nest.program.name, facts, tuple(parts), tuple(figures), tuple(lines), None,
        ("link.css", "link.js"),
    )  # fmt: skip


def _facts(found: Explored) -> tuple[Fact, ...]:
    pruned = found.statistics.pruned
    best = "nothing yet" if found.candidate is None else time_words(found.nanoseconds)
    return (
        Fact("best, by the model", best),
        Fact("nothing is below", time_words(found.bound)),
        Fact("implementations looked at", str(found.evaluated)),
        Fact("dropped by the bound", str(pruned.get("bound", 0))),
        Fact("dropped by constraints", str(pruned.get("propagation", 0))),
    )
