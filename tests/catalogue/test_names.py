"""One table of names: what `synth NAME` fills is what `kernel NAME` is built from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.common.narrowed import of

from warploom.bench.published import named, published
from warploom.catalogue import (
    Entry,
    SketchOnly,
    entries,
    fill,
    find,
    function_entries,
    image,
    names,
    product,
    program,
    window,
)
from warploom.catalogue.entry import Parameter
from warploom.catalogue.meaning import MEANINGS
from warploom.catalogue.texts import multiplication_shared, transposition
from warploom.cli.inputs import find_input, parse_parameters
from warploom.errors import CheckError, ParseError, WarploomError
from warploom.sketch.front import load_text
from warploom.sketch.synth.solve import synthesize
from warploom.sketch.term.ir import Apply, Program
from warploom.sketch.term.show import to_swflow

CACHED = (fill._transposing, fill.summing, image.row_of, product.exchange_of, window._window)
VARIANTS = [
    pytest.param(entry, variant, id=f"{entry.name} {variant}")
    for entry in entries().values()
    for variant in entry.variants
]


class AskedError(Exception):
    """A kernel asks for a fill of this program."""


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels stop where they ask for a fill, none of which is remembered."""

    def ask(program: Program, *_: object) -> None:
        raise AskedError(program)

    for module in (fill, image, product, window):
        monkeypatch.setattr(module, "find", ask)
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


def same_program(one: Program, other: Program) -> bool:
    """The same text, and at every step as many choices to the same effect."""
    sizes = [[len(s.gathers) for s in p.steps if isinstance(s, Apply)] for p in (one, other)]
    return to_swflow(one) == to_swflow(other) and one.name == other.name and sizes[0] == sizes[1]


def asked_for(entry: Entry, variant: dict[str, Parameter]) -> Program | None:
    """The program that the kernel asks a fill of."""
    try:
        entry.kernel(**variant)
    except AskedError as asked:
        (found,) = asked.args
        assert isinstance(found, Program)
        return found
    return None


@pytest.mark.sampled(23)
@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize(("entry", "variant"), VARIANTS)
def test_synth_fills_what_kernel_is_built_from(entry: Entry, variant: dict[str, Parameter]) -> None:
    kernel_asks = asked_for(entry, variant)
    texts = {key: value for key, value in variant.items() if "," in str(value)}  # of no sketch
    sizes = [f"{key}={value}" for key, value in variant.items() if key not in texts]
    given = {**parse_parameters(sizes), **texts}
    build = find_input(entry.name).build
    if kernel_asks is None:
        with pytest.raises(CheckError, match="is not built from a sketch"):
            build(given)
    else:
        assert same_program(of(Program, build(given)), kernel_asks)


@pytest.mark.usefixtures("asking")
def test_other_programs_are_told_apart() -> None:
    entry = find("transposition")
    asked = asked_for(entry, {"m": 5, "n": 7})
    assert asked is not None
    assert same_program(asked, program(entry, {"rows": 5, "columns": 7}))
    others: list[dict[str, Parameter]]
    others = [{"m": 7, "n": 5}, {"m": 5, "n": 7, "order": "rcr"}, {"m": 5, "n": 7, "level": 1}]
    for other in others:
        assert not same_program(asked, program(entry, other))


def test_names_are_unique_and_no_row_has_one() -> None:
    listed = [*entries(), *(n for n, each in names().items() if isinstance(each, SketchOnly))]
    assert len(set(listed)) == len(listed) == len(names())
    assert not set(names()) & set(published())


@pytest.mark.parametrize("name", [n for n, each in names().items() if isinstance(each, SketchOnly)])
def test_a_sketch_alone_is_no_kernel(name: str) -> None:
    with pytest.raises(ParseError, match=f"'{name}' is a sketch") as error:
        find(name)
    assert f"warploom synth {name}" in str(error.value)
    instead = names()[name]
    assert isinstance(instead, SketchOnly)
    assert not instead.kernel or instead.kernel.split()[0] in entries()


@pytest.mark.parametrize("name", ["sums", "stencil", "convolution", "product", "gaussian"])
def test_sketches_alone_have_holes(name: str) -> None:
    build = named(name)
    assert build is not None
    assert build({}).holes


@pytest.mark.parametrize("level", [1, 2, 3])
def test_levels_of_a_transposition_are_the_published_grammars(level: int) -> None:
    text = transposition("crc", 5, level, rows=16)
    sketch = program(find("transposition"), {"columns": 5, "rows": 16, "level": level})
    assert to_swflow(sketch) == to_swflow(load_text(text))
    assert synthesize(sketch).fills.count == synthesize(load_text(text)).fills.count == 2


def test_levels_of_a_product_are_the_published_sketches() -> None:
    sketch = program(find("product-shared"), {"level": 1})
    assert to_swflow(sketch) == to_swflow(load_text(multiplication_shared(1)))


def test_more_rows_than_a_warp_are_for_the_sketch_alone() -> None:
    entry = find("transposition")
    given: dict[str, Parameter] = {"rows": 48, "columns": 3, "level": 3}
    assert program(entry, given).holes
    with pytest.raises(CheckError, match="48 rows at level 3"):
        entry.kernel(**given)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("transposition", {"lanes": 4}, "no parameter 'lanes'"),
        ("transposition", {"columns": 0}, "matrices of"),
        ("transposition", {"columns": 0, "level": 1}, "not between"),
        ("transposition", {"level": 4}, "the level is 0, 1, 2 or 3"),
        ("transposition", {"rows": 4, "m": 4}, "one parameter"),
        ("transposition", {"order": 3}, "a word"),
        ("transposition", {"order": "cc", "level": 2}, "unknown order"),
        ("product-shared", {"degree": 64, "level": 2}, "64 coefficients at level 2"),
        ("product-shared", {"degree": 7}, "7 coefficients"),
        ("stencil", {"lanes": "x"}, "a whole number"),
        ("stencil", {"level": 0}, "the level is 1, 2 or 3"),
        ("stencil", {"lanes": 5000}, "not between"),
        ("product-pieces", {}, "is not built from a sketch"),
    ],
)
def test_what_a_name_cannot_be_is_refused(
    name: str, given: dict[str, Parameter], message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        program(names()[name], given)


def test_no_kernel_is_built_from_a_published_product() -> None:
    with pytest.raises(CheckError, match="no kernel is built from the published sketch"):
        find("product-registers").kernel(level=1)


def test_every_parameter_has_a_meaning() -> None:
    known = {**names(), **function_entries()}
    used = {key for each in known.values() for key in each.parameters}
    assert used == set(MEANINGS)


@pytest.mark.parametrize("name", entries())
def test_parameters_out_of_range_are_refused(name: str) -> None:
    """A number that is none of the possible ones is our own error, or is possible; no other."""
    entry = entries()[name]
    for key, usual in entry.parameters.items():
        refused = 0
        for value in (-1, 10**7) if isinstance(usual, int) else ("", "nonsense"):
            try:
                entry.kernel(**{key: value})
            except WarploomError as error:
                refused += bool(error.message)
        assert refused == 2, key
