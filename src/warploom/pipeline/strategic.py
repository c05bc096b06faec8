"""Which strategies are tried for a nest: all that it has, the one that was named, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from warploom.errors import CheckError, WarploomError, one_of, spelled
from warploom.loopnest.ir import Program
from warploom.loopnest.strategies.form import LOOPS, Room, Variant
from warploom.loopnest.strategies.known import STRATEGIES, variants_of
from warploom.loopnest.target import Target
from warploom.machine.rates import Rates
from warploom.pipeline.nest import FREE, Nest, recipe_of
from warploom.pipeline.spaces import nest_by


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
    found, refused = variants_of(nest.program, free, room_of(nest.rates, nest.target))
    named = [each for each in found if asked in (None, each.strategy)]
    if asked is not None and not named:
        return _none_but(asked, refused)
    if nest.asked:
        named = [each for each in named if each.space != LOOPS]
    own = nest.asked or nest.fixes
    made = tuple(replace(each, fixes=(*each.fixes, *own)) for each in named)
    if nest.asked:
        spaces_asked(made, nest)
    return First(made, refused)


def nest_for(
    program: Program, rates: Rates, target: Target, fixes: Sequence[str], asked: str | None,
    free: bool,
) -> Nest:  # fmt: skip
    """The nest with decisions of the user. Where the strategy that is named has a space of its own,
    they are of that."""
    if fixes and asked in STRATEGIES:
        found, _ = variants_of(program, free, room_of(rates, target))
        if any(each.space != LOOPS for each in found if each.strategy == asked):
            nest = Nest(program, rates, target)
            nest.asked = tuple(fixes)
            return nest
    return Nest(program, rates, target, fixes)


def check_alone(nest: Nest, what: str) -> None:
    """What looks at loops alone is refused beside decisions of a strategy's space."""
    if nest.asked:
        raise CheckError(f"{what} is of loops, which {' and '.join(nest.asked)} does not decide",
                         advice=spelled("leave out --fix", "leave out fix="))  # fmt: skip


def spaces_asked(variants: Sequence[Variant], nest: Nest) -> list[Nest]:
    """The spaces of a strategy that have what was decided of it; an error if none has."""
    found, errors = [], []
    for each in variants:
        try:
            found.append(nest_by(recipe_of(each, nest)))
        except WarploomError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def room_of(rates: Rates, target: Target) -> Room:
    machine = target.machine
    has_groups = machine.warp_group_products and machine.tensor_copies
    return Room(rates.processors, target.between, has_groups, machine.copies)


def _none_but(asked: str | None, refused: Mapping[str, str]) -> First:
    if asked is not None:
        raise CheckError(f"the strategy '{asked}' does not apply: {refused[asked]}",
                         advice=spelled("--strategy none", "strategy='none'")
                         + " explores the nest as it is")  # fmt: skip
    return First((), refused)
