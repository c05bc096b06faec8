"""All strategies by name, and which of them a program has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from warploom.choices import STRATEGIES as SAID
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.strategies import (
    apart,
    attention,
    matrix,
    product,
    reduction,
    row,
    scan,
    split,
    streaming,
    thread,
    warps,
    weights,
)
from warploom.loopnest.strategies.flat import flattened
from warploom.loopnest.strategies.form import NotMeantError, Room, Strategy, Variant
from warploom.loopnest.strategies.merged import with_one_load, with_one_sum

USUAL = Room()  # where nothing is said of a machine


def _anywhere(
    variants: Callable[[Program, bool], list[Variant]],
) -> Callable[[Program, bool, Room], list[Variant]]:
    """Returns what a strategy makes that is the same whatever room there is."""
    return lambda program, free, _: variants(program, free)


STRATEGIES: Mapping[str, Strategy] = {
    name: Strategy(name, SAID[name], variants)
    for name, variants in (
        (attention.NAME, attention.variants),
        (attention.SPLIT, attention.split),
        (matrix.NAME, matrix.variants),
        (warps.NAME, warps.variants),
        (weights.NAME, weights.variants),
        (product.NAME, _anywhere(product.variants)),
        (split.NAME, _anywhere(split.variants)),
        (apart.NAME, apart.variants),
        (reduction.ROW, _anywhere(reduction.row_variants)),
        (row.NAME, _anywhere(row.variants)),
        (reduction.COLUMN, _anywhere(lambda program, free: _columns(program, free))),
        (streaming.NAME, _anywhere(streaming.variants)),
        (thread.NAME, _anywhere(thread.variants)),
    )
}


SCANNING = (row.NAME, reduction.COLUMN)


def _columns(program: Program, free: bool) -> list[Variant]:
    if any(each.scanned for each in program.instructions):
        return scan.column_variants(program, free, reduction.COLUMN)
    return reduction.column_variants(program, free)


def _check_scans(program: Program, name: str) -> None:
    if name not in SCANNING and any(each.scanned for each in program.instructions):
        raise NotMeantError("it has scans")


def variants_of(
    program: Program, free: bool, room: Room = USUAL
) -> tuple[list[Variant], dict[str, str]]:
    """What strategies make of a program, and for each that makes nothing the reason."""
    found: list[Variant] = []
    given = flattened(with_one_load(with_one_sum(Computation.of(program))), free)
    program = program_of(given, published=False)
    refused = {}
    for each in STRATEGIES.values():
        try:
            _check_scans(program, each.name)
            if found and each.name == thread.NAME:
                raise NotMeantError("another strategy is meant for it")
            found += each.variants(program, free, room)
        except NotMeantError as error:
            refused[each.name] = str(error)
    return found, refused
