"""Layouts of Triton's IR as linear layouts: Triton's own unit tests, restated, and texts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from bench.common.layout.attributes import damaged, round_trips

from warploom.errors import WarploomError
from warploom.layout.formats.encoding import linear_of, written_linear
from warploom.layout.formats.encoding_shared import shared_layout
from warploom.layout.formats.fragment_text import is_registers, read_fragment
from warploom.layout.formats.given import given_layout
from warploom.layout.formats.mlir import Attribute, read_attribute, written
from warploom.layout.formats.triton import nvmma_shared, swizzled_shared
from warploom.layout.language.evaluate import values

CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("triton_layouts.jsonl").read_text().splitlines()
]


def test_layouts_of_tritons_own_tests() -> None:
    """Every case of LinearLayoutConversionsTest that is the layout of an attribute."""
    kinds = Counter[str]()
    for case in CASES:
        found = linear_of(read_attribute(case["attribute"]), case["shape"]).lists()
        said = {name: bases for name, bases in found.items() if bases}
        assert said == case["bases"], case["attribute"]
        kinds[case["attribute"].split("<")[0]] += 1
    assert kinds == KINDS  # a list that was cut short would pass everything above


KINDS = {
    "#ttg.blocked": 14, "#ttg.dot_op": 137, "#ttg.nvidia_mma": 19, "#ttg.slice": 10,
    "#ttg.amd_mfma": 26, "#ttg.amd_wmma": 24, "#ttg.swizzled_shared": 10, "#ttg.nvmma_shared": 9,
    "#ttg.amd_rotating_shared": 4, "#ttng.tensor_memory_encoding": 7,
}  # fmt: skip


def test_texts_and_bases_round_trip() -> None:
    for case in CASES:
        attribute = read_attribute(case["attribute"])
        assert read_attribute(written(attribute)) == attribute
        linear = linear_of(attribute, case["shape"])
        if set(linear.bases) & {"register", "offset"}:
            again = linear_of(read_attribute(str(written_linear(linear))), case["shape"])
            assert again == linear


def test_shared_layouts_are_those_of_the_layout_objects() -> None:
    text = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    ours = shared_layout(read_attribute(text), (64, 64))
    assert np.array_equal(values(ours), values(swizzled_shared((64, 64), 8, 1, 8)))
    for shape in ((64, 64), (64, 128), (512, 64)):
        for turned in (False, True):
            text = (
                "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = "
                f"{str(turned).lower()}, elementBitWidth = 16}}>"
            )
            ours = shared_layout(read_attribute(text), shape)
            assert np.array_equal(values(ours), values(nvmma_shared(shape, 128, 2, turned)))


@pytest.mark.parametrize("pairs", ["64:+4", "64:+4, 256:+8", "256:+8, 64:+4", "32:+2,64:+6,512:+8"])
def test_several_paddings_add_up(pairs: str) -> None:
    text = f"#ttg.padded_shared<[{pairs}] {{order = [1, 0], shape = [16, 64]}}>"
    found = values(shared_layout(read_attribute(text), (16, 64))).reshape(64, 16).T.ravel()
    numbers, expected = np.arange(1024), np.arange(1024)
    for pair in pairs.split(","):
        interval, padding = map(int, pair.split(":+"))
        expected = expected + padding * (numbers // interval)
    assert np.array_equal(found, expected)
    listed = [[int(n) for n in pair.split(":+")] for pair in pairs.split(",")]
    said = given_layout(f"PaddedSharedLayout(interval_padding_pairs={listed})", (16, 64), 2)
    assert np.array_equal(values(said).reshape(64, 16).T.ravel(), expected)  # Gluon's object


BAD = {
    "": "should stand here",
    "#blocked": "not defined",
    "#ttg.blocked<{sizePerThread = [1, 4]": "should stand",
    "#ttg.blocked<{sizePerThread = [3], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>":
        "power of two",
    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [1]}>":
        "each of 1 dimensions once",
    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], order = [0]}>": "is missing",
    "#ttg.blocked<{order = [0], order = [0]}>": "given twice",
    "#ttg.hexagonal<{order = [0]}>": "no layout that is known",
    "#ttg.linear<{register = [[0, 1]], lane = [], warp = [], block = []}>": "1 coordinates",
    "#ttg.linear<{register = [[9999999999999999]]}>": "too large",
    "#ttg.slice<{dim = 7, parent = #ttg.linear<{register = []}>}>": "a dimension of the parent",
    "#ttg.slice<{dim = 0, parent = 3}>": "parent",
    "#ttg.dot_op<{opIdx = 2, parent = #ttg.linear<{register = []}>, kWidth = 2}>": "0 or 1",
    "#ttg.nvidia_mma<{versionMajor = 1, warpsPerCTA = [1], instrShape = [16, 8]}>": "versionMajor",
    "#ttg.blocked<{sizePerThread = [1073741824], threadsPerWarp = [1], warpsPerCTA = [1], "
    "order = [0]}>": "more than",
    "#a<" + "[" * 500: "deep",
    "#ttg.slice<{dim = 0, parent = " * 100: "deep",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_attributes_end_in_one_error(text: str) -> None:
    with pytest.raises(WarploomError, match=BAD[text]):
        linear_of(read_attribute(text), (16,))


def test_shapes_that_are_no_powers_of_two_are_refused() -> None:
    text = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1]}>"
    with pytest.raises(WarploomError, match="powers of two"):
        linear_of(read_attribute(text), (48,))
    with pytest.raises(WarploomError, match="the most"):
        linear_of(read_attribute(text), (1 << 30,))


def test_an_alias_stands_for_its_attribute() -> None:
    parent = Attribute("ttg.linear", {"register": [[1, 0]], "lane": [[0, 1]]})
    found = read_attribute("#ttg.slice<{dim = 1, parent = #mine}>", {"mine": parent})
    assert linear_of(found, (2,)).bases["register"] == ((1,),)


def test_random_attributes_round_trip() -> None:
    assert len(round_trips(80)) >= 8


@pytest.mark.slow
def test_ten_thousand_attributes_round_trip() -> None:
    round_trips(10_000)


def test_damaged_attributes_end_in_one_error() -> None:
    assert damaged(200) > 50


# -- what is not known is refused, and older versions had other names ------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#ttg.other_shared<{order = [1, 0]}>", "no layout of shared memory"),
        ("#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], "
         "order = [1, 0]}>", "no layout of shared memory"),
        ("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], "
         "rotated = true}>", "no field 'rotated'"),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, "
         "tiled = 2}>", "no field 'tiled'"),
        ("#ttg.shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0], "
         "hasLeadingOffset = true}>", "with a leading offset"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_no_plain_layout(text: str, why: str) -> None:
    with pytest.raises(WarploomError, match=why):
        given_layout(text, (64, 64), 2)


def test_fields_of_parents_are_looked_at_too() -> None:
    text = "#ttg.slice<{dim = 0, parent = #ttg.linear<{register = [[0, 1]], lanes = [[1, 0]]}>}>"
    with pytest.raises(WarploomError, match="no field 'lanes'"):
        linear_of(read_attribute(text), (2,))


@pytest.mark.parametrize(
    ("older", "now"),
    [
        ("#triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0], "
         "hasLeadingOffset = false}>",
         "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"),
        ("#ttg.shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [0, 1]}>",
         "#ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [0, 1]}>"),
        ("#triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1], CTAsPerCGA = "
         "[1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0], hasLeadingOffset = true}>",
         "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>"),
        ("#triton_gpu.shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [1, 0], "
         "hasLeadingOffset = true}>",
         "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>"),
    ],
)  # fmt: skip
def test_names_of_older_versions(older: str, now: str) -> None:
    found, wanted = (values(given_layout(text, (64, 64))) for text in (older, now))
    assert np.array_equal(found, wanted)


def test_registers_of_older_versions() -> None:
    text = ("#triton_gpu.slice<{dim = 1, parent = #triton_gpu.blocked<{sizePerThread = [1, 4], "
            "threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>}>")  # fmt: skip
    today = text.replace("triton_gpu", "ttg")
    assert is_registers(text)
    one, other = (read_fragment(each, (64,)).elements for each in (text, today))
    assert np.array_equal(one, other)
