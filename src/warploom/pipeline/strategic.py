"""Which strategies are tried for a nest: all that it has, the one that was named, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from warploom.errors import CheckError, one_of, spelled
from warploom.loopnest.strategies.form import Room, Variant
from warploom.loopnest.strategies.known import STRATEGIES, variants_of
from warploom.pipeline.nest import FREE, Nest


@dataclass(frozen=True, slots=True)
class First:
    """What is tried before the nest itself, and why other strategies are not."""

    variants: tuple[Variant, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def strategies_of(nest: Nest, asked: str | None, space: str, free: bool) -> First:
    """The variants of all strategies, or of the one that was asked for. With decisions of the user
    there are none, unless one is named: its variants have these decisions, too."""
    if asked not in (None, FREE, *STRATEGIES):
        raise CheckError(f"there is no strategy '{asked!s:.40}'",
                         advice=one_of(str(asked), [*STRATEGIES, FREE]))  # fmt: skip
    if asked == FREE:
        return First()
    why = f"not in the space '{space}'" if space != "default" else ""
    if not why and asked is None and nest.decisions:
        why = "there are decisions of yours"
    if why:
        return _none_but(asked, dict.fromkeys(STRATEGIES, why))
    found, refused = variants_of(nest.program, free, room_of(nest))
    named = [each for each in found if asked in (None, each.strategy)]
    if asked is not None and not named:
        return _none_but(asked, refused)
    own = nest.fixes
    return First(tuple(replace(each, fixes=(*each.fixes, *own)) for each in named), refused)


def room_of(nest: Nest) -> Room:
    machine = nest.target.machine
    has_groups = machine.warp_group_products and machine.tensor_copies
    return Room(nest.rates.processors, nest.target.between, has_groups)


def _none_but(asked: str | None, refused: Mapping[str, str]) -> First:
    if asked is not None:
        raise CheckError(f"the strategy '{asked}' does not apply: {refused[asked]}",
                         advice=spelled("--strategy none", "strategy='none'")
                         + " explores the nest as it is")  # fmt: skip
    return First((), refused)
