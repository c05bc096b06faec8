"""Kernels that claim a fill are made of it: without a search, or with a wrong fill, no kernel."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.catalogue.agreement import check_agreement

from warploom.catalogue import fill as tile_fill
from warploom.catalogue import find, image, product, window
from warploom.emit.cuda import cuda
from warploom.errors import SearchError
from warploom.kernel.ir import Kernel
from warploom.sketch.code import proved as proving
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply

# One of each way to be built from a fill, with a size to run it on.
CLAIMING: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    ("stencil-1d", {"taps": 5, "width": 1, "block": 32}, {"n": 70}),
    ("stencil-1d", {"taps": 33, "width": 1, "block": 32}, {"n": 70}),
    ("convolution-1d", {"taps": 9, "block": 32}, {"n": 300}),
    ("convolution-2d", {"taps": 7, "width": 2, "rows": 2, "block": 32},
     {"height": 3, "columns": 70}),
    ("product-registers", {"degree": 64, "block": 32}, {"batch": 1}),
    ("product-shared", {"degree": 64, "block": 32}, {"batch": 1}),
    ("aos-to-soa", {"fields": 5, "block": 32}, {"n": 70}),
    ("soa-to-aos", {"fields": 3, "block": 32, "order": "rcr"}, {"n": 70}),
    ("aos-sum", {"fields": 5, "block": 32}, {"n": 70}),
    ("transposition", {"m": 5, "n": 7, "block": 32}, {"count": 9}),
]  # fmt: skip
NAMES = [f"{name}-{'-'.join(map(str, given.values()))}" for name, given, _ in CLAIMING]
CACHES = (window._window, image.row_of, product.exchange_of, tile_fill._transposing,
          tile_fill.summing)  # fmt: skip

Case = tuple[str, dict[str, Any], dict[str, int]]


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No fill, that is; the sketches may be: they are the same every time."""
    for module, name in ((window, "window_sketch"), (image, "row_sketch"),
                         (product, "product_sketch")):  # fmt: skip
        monkeypatch.setattr(module, name, cache(getattr(module, name)))
    for each in CACHES:
        each.cache_clear()
    yield
    for each in CACHES:
        each.cache_clear()


def build(case: Case) -> Kernel:
    for each in CACHES:
        each.cache_clear()
    return find(case[0]).kernel(**case[1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CLAIMING, ids=NAMES)
def test_the_header_has_the_fill_and_its_verdict(case: Case) -> None:
    doc = build(case).doc
    assert "Solution" in doc
    assert "Verdict: proved" in doc


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CLAIMING, ids=NAMES)
def test_without_a_search_there_is_no_kernel(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> Result:
        raise SearchError("there is no search today")

    real = synthesize  # this module's own name is replaced, too
    for module in list(sys.modules.values()):
        if getattr(module, "synthesize", None) is real:
            monkeypatch.setattr(module, "synthesize", none)
    with pytest.raises(SearchError, match="no search today"):
        build(case)


STRUCTURES = ("aos-to-soa", "soa-to-aos", "aos-sum")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("product-pieces", {}),
        ("convolution-2d", {"exchange": "load"}),
        ("convolution-1d", {"taps": 1}),
        *((name, {"strategy": how}) for name in STRUCTURES for how in ("shared", "direct")),
    ],
)
def test_what_is_written_by_hand_says_so(name: str, given: dict[str, Any]) -> None:
    assert find(name).program(**given) is None
    doc = find(name).kernel(**given).doc
    assert "there is no fill" in doc
    assert ("Nothing is exchanged" in doc) <= (given.get("strategy") == "direct")


# -- other fills ---------------------------------------------------------------------------------


class Feeding:
    """Stands before search and transfer and changes what they say of one program."""

    def __init__(self, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.target = target
        self.change: dict[int, int] = {}
        self.known: dict[tuple[str, str], Result] = {}
        self.last: Result | None = None
        for name in ("synthesize", "transfer"):
            monkeypatch.setattr(proving, name, self._before(name, getattr(proving, name)))

    def _before(self, name: str, function: Any) -> Any:
        def called(first: Any, *rest: Any, **options: Any) -> Result:
            program = rest[0] if name == "transfer" else first
            key = name, program.name
            if key not in self.known:
                self.known[key] = function(first, *rest, **options)
            found = self.known[key]
            if program.name != self.target:  # a small size, which is only carried over
                return found
            self.last = found
            choices = found.fills.choices.copy()
            for hole, choice in self.change.items():
                choices[0, found.fills.holes.index(hole)] = choice
            return replace(found, fills=replace(found.fills, choices=choices))

        return called


def alternatives(result: Result) -> Iterator[dict[int, int]]:
    """Every hole with some other choices: the neighbours, and a sample of the rest."""
    draw = np.random.default_rng(0)
    for hole, right in result.fills.as_dict(0).items():
        step = result.program.steps[hole]
        assert isinstance(step, Apply)
        count = len(step.gathers)
        some = {right - 1, right + 1, 0, count - 1, *draw.integers(0, count, 3).tolist()}
        for other in sorted(some - {right}):
            if 0 <= other < count:
                yield {hole: other}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CLAIMING, ids=NAMES)
def test_one_wrong_choice_and_there_is_no_kernel(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = find(case[0]).program(**case[1])
    assert program is not None
    feeding = Feeding(program.name, monkeypatch)
    text = cuda(build(case))
    assert feeding.last is not None
    tried = refused = 0
    for change in list(alternatives(feeding.last)):
        feeding.change = change
        tried += 1
        try:
            changed = cuda(build(case))
        except SearchError as error:
            refused += "refuted" in error.message
            continue
        # Another fill that is right, too: then it is another kernel, or the same by another way.
        assert changed != text
        check_agreement(find(case[0]), case[1], "simulator", [case[2]])
    assert tried >= 8
    assert refused >= tried * 0.8


def other_than(usual: tuple[int, ...], result: Result) -> Result:
    """The result with one fill alone, which is not the usual one."""
    fills = [result.fills.as_dict(number) for number in range(len(result.fills))]
    other = [n for n, fill in enumerate(fills) if any(usual[h] != c for h, c in fill.items())]
    return replace(result, fills=result.fills.only(other[0]))


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["registers", "shared"])
def test_the_other_fill_of_a_product_is_another_kernel(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, given = find(f"product-{form}"), {"degree": 64, "block": 32}
    usual, small = entry.kernel(**given), product.product_sketch(product.SEARCHED_LANES)
    other = other_than(proving.find(small).choices, synthesize(small))
    monkeypatch.setattr(proving, "synthesize", lambda *_, **__: other)
    assert build((entry.name, given, {})).body != usual.body
    check_agreement(entry, given, "simulator", [{"batch": 1}])


@pytest.mark.parametrize("fields", [4, 8])
def test_another_fill_of_an_exchange_is_another_kernel(
    fields: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, given = find("aos-to-soa"), {"fields": fields, "width": 1, "block": 32}
    usual, sketch = entry.kernel(**given), tile_fill.sketch(32, fields, "crc")
    other = other_than(proving.find(sketch).choices, synthesize(sketch))
    monkeypatch.setattr(proving, "synthesize", lambda *_, **__: other)
    assert build((entry.name, given, {})).body != usual.body
    check_agreement(entry, given, "simulator", [{"n": 70}])


def test_choices_carried_as_data_are_proved_again() -> None:
    program = window.window_sketch(4, weighted=True)
    found = proving.find(program)
    records = found.to_json()
    assert proving.prove_json(program, records).choices == found.choices
    records["moved"] = {
        **records["moved"],
        "parameters": {**records["moved"]["parameters"], "rate": -1},
    }
    with pytest.raises(SearchError, match="refuted"):
        proving.prove_json(program, records)
