"""All strategies by name, and which of them a program has."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.choices import STRATEGIES as SAID
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.strategies import product, reduction, row, split, streaming
from warploom.loopnest.strategies.form import NotMeantError, Strategy, Variant
from warploom.loopnest.strategies.merged import with_one_load, with_one_sum

STRATEGIES: Mapping[str, Strategy] = {
    name: Strategy(name, SAID[name], variants)
    for name, variants in (
        (product.NAME, product.variants),
        (split.NAME, split.variants),
        (reduction.ROW, reduction.row_variants),
        (row.NAME, row.variants),
        (reduction.COLUMN, reduction.column_variants),
        (streaming.NAME, streaming.variants),
    )
}


def variants_of(program: Program, free: bool) -> tuple[list[Variant], dict[str, str]]:
    """What strategies make of a program, and for each that makes nothing the reason."""
    found: list[Variant] = []
    given = with_one_load(with_one_sum(Computation.of(program)))
    program = program_of(given, published=False)
    refused = {}
    for each in STRATEGIES.values():
        try:
            found += each.variants(program, free)
        except NotMeantError as error:
            refused[each.name] = str(error)
    return found, refused
