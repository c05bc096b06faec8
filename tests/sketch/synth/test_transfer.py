from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from warploom.catalogue import texts as sketches
from warploom.errors import CheckError
from warploom.search.outcome import Found, Reason, Undecided, Verdict
from warploom.sketch.build import Sketch
from warploom.sketch.front import load_text
from warploom.sketch.holes import build
from warploom.sketch.holes.function import images
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.synth.transfer import counterparts, transfer
from warploom.sketch.term.gather import Sense
from warploom.sketch.term.ir import Apply, GatherSet, Program, Shape
from warploom.sketch.term.verify import verify

Family = Callable[[int], str]


def carry(family: Family, small: int, large: int) -> Result:
    found = synthesize(load_text(family(small)))
    assert isinstance(found.outcome, Found)
    program = load_text(family(large))
    result = transfer(found, program)
    assert result.program is program
    for number in range(len(result.fills)):
        assert verify(program, program.goals[0], result.fills.as_dict(number))
    return result


CASES: dict[str, tuple[Family, int, int]] = {
    "stencil": (lambda n: sketches.stencil_1d(3, 3, n), 4, 32),
    "convolution": (lambda n: sketches.convolution_1d(3, 3, n), 4, 32),
    "longer convolution": (lambda n: sketches.convolution_1d(5, 3, n), 8, 32),
    "product": (lambda n: sketches.multiplication_narrow(1, n), 4, 16),
    "transposition": (lambda n: sketches.transposition("crc", 3, 3, n), 8, 32),
    # 4 and 32 leave different remainders by 3, so other factors are right: only the form carries.
    "other factors": (lambda n: sketches.transposition("rcr", 3, 3, n), 4, 32),
    "sums": (lambda n: sketches.transposition("cr", 3, 3, n), 4, 32),
    "2-D stencil": (lambda n: sketches.stencil_2d(3, 3, n), 4, 6),
    # Five taps are in three registers of two lanes, but in two of four.
    "fewer parts": (lambda n: sketches.stencil_2d(5, 3, n), 2, 4),
    "more parts": (lambda n: sketches.stencil_2d(5, 3, n), 4, 2),
    "Gaussian": (sketches.gaussian_hvx, 8, 128),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("family", "small", "large"), CASES.values(), ids=CASES.keys())
def test_fills_are_carried_over_and_proved(family: Family, small: int, large: int) -> None:
    result = carry(family, small, large)
    assert isinstance(result.outcome, Found)
    assert not result.complete  # other fills may exist at the large size
    assert result.verdict is Verdict.PROVED
    assert len(result.fills) == 1


def own_choice(lanes: int) -> Program:
    """The right choice is called `even` on 4 lanes and `odd` on more."""
    s = Sketch("own")
    x = s.input("x", lanes)
    other = np.arange(lanes)[::-1]
    right = np.roll(np.arange(lanes), 1)
    tables = {"even": right, "odd": other} if lanes == 4 else {"even": other, "odd": right}
    s.choices(tables, x, name="moved")
    s.goal(right)
    return s.program()


def test_no_counterpart_is_undecided_and_no_error() -> None:
    small = synthesize(own_choice(4))
    assert small.described(0) == {"moved": "even"}
    result = transfer(small, own_choice(8))
    assert result.outcome == Undecided(Reason.COUNTERPART)
    assert (len(result.fills), result.verdict) == (0, Verdict.UNKNOWN)


def test_the_same_size_carries_over_every_fill_as_it_is() -> None:
    program = load_text(sketches.stencil_1d(3, 2, 8))
    found = synthesize(program)
    assert found.fills.count == 2
    assert transfer(found, program).described(0) in [found.described(i) for i in range(2)]


def test_different_sketches_are_refused() -> None:
    small = synthesize(load_text(sketches.stencil_1d(3, 1, 4)))
    with pytest.raises(CheckError, match="different numbers of steps"):
        transfer(small, load_text(sketches.transposition("crc", 3, 1)))
    other = sketches.stencil_1d(3, 1, 8).replace("col_rots_no_group", "col_xforms_no_group")
    with pytest.raises(CheckError, match="step 'received' differs"):
        transfer(small, load_text(other))
    none = synthesize(load_text(sketches.transposition("crc", 2, 1)))
    with pytest.raises(CheckError, match="no fill to transfer"):
        transfer(none, load_text(sketches.transposition("crc", 2, 1)))


def test_what_a_number_may_mean() -> None:
    sizes = frozenset({(8, 32)})
    assert images(0, sizes) == [0]
    assert set(images(8, sizes)) == {8, 32}
    assert set(images(4, sizes)) == {4, 16, 28}
    assert set(images(7, sizes)) == {7, 28, 31}
    assert set(images(-1, sizes)) == {-1, -4, -25}
    assert images(5, frozenset()) == [5]


def named(gathers: GatherSet, text: str) -> int:
    return dict(gathers.spellings())[text]


def read(function: str, small: Shape, text: str, large: Shape, reading: Sense) -> set[str]:
    """What a choice is called at another size."""
    old, new = (build(function, {}, (shape,), shape) for shape in (small, large))
    found = counterparts(old, named(old, text), new, reading)
    return {new.describe(choice) for choice in found}


def test_readings_of_a_rotation() -> None:
    def turned(reading: Sense) -> set[str]:
        return read("col_rots", (8, 3), "rot[shift=6]", (32, 3), reading)

    assert turned(Sense.NATURAL) == {"rot[shift=30]"}  # two from the end
    assert turned(Sense.SHARE) == {"rot[shift=24]"}
    groups = {"rot[group=8,shift=6]", "rot[group=8,shift=2]"}
    assert turned(Sense.ANY) >= {"rot[shift=6]", "rot[shift=24]", "rot[shift=30]"}
    assert turned(Sense.ANY) & groups
    assert len(turned(Sense.FORM)) == 32  # every rotation of the whole, nothing by 0 included


def test_a_whole_group_stays_whole_and_the_identity_itself() -> None:
    natural = read("col_xforms", (8, 3), "xform[cf=-1,cr=1,dr=3]", (32, 3), Sense.NATURAL)
    assert natural == {"xform[cf=-1,cr=1,dr=3]"}
    for reading in (Sense.NATURAL, Sense.SHARE):
        assert read("col_xforms", (8, 3), "id", (32, 3), reading) == {"id"}
    # Written as a swizzle, what moves nothing here may move something there.
    assert {"id", "xform[cf=25,cr=0,dr=3]"} <= read("col_xforms", (8, 3), "id", (32, 3), Sense.ANY)


def test_conditions_name_the_size() -> None:
    """4 is the number of lanes at one size, 32 at the other; 4 itself is not offered there."""
    found = read("cond_keep", (4, 3), "keep_if(d0 < 4 - d1)", (32, 3), Sense.NATURAL)
    assert found == {"keep_if(d0 < 32 - d1)"}


def test_every_spelling_names_its_choice_and_some_choice_is_its_own_counterpart() -> None:
    program = load_text(sketches.transposition("crc", 3, 3, rows=8))
    for position in program.holes:
        step = program.steps[position]
        assert isinstance(step, Apply)
        gathers = step.gathers
        spelled = list(gathers.spellings())
        assert {choice for _, choice in spelled} == set(range(len(gathers)))
        for choice in range(len(gathers)):
            assert (gathers.describe(choice), choice) in spelled
            for reading in (Sense.NATURAL, Sense.SHARE, Sense.ANY):
                assert counterparts(gathers, choice, gathers, reading) == (choice,)
            assert choice in counterparts(gathers, choice, gathers, Sense.FORM)
