"""Random layouts, written in every spelling of CuTe and read again."""

from __future__ import annotations

import numpy as np

from warploom.errors import WarploomError
from warploom.layout.formats.cute import SPELLINGS, read_cute, write_cute
from warploom.layout.language.ir import Layout, Shift, Strided, Swizzle, compose
from warploom.layout.language.parse import parse
from warploom.layout.language.show import show


def random_layout(random: np.random.Generator) -> Layout:
    """A swizzle, perhaps an offset, and strides of which exactly one is 1."""
    modes = [
        (int(random.choice([2, 3, 4, 8])), int(random.choice([2, 4, 6, 16, 64]))) for _ in "ab"
    ]
    modes.insert(int(random.integers(3)), (int(random.choice([4, 8, 16])), 1))
    shape, stride = tuple(s for s, _ in modes), tuple(d for _, d in modes)
    nested = random.random() < 0.5
    layout: Layout = Strided(
        (shape[0], shape[1:]) if nested else shape, (stride[0], stride[1:]) if nested else stride
    )
    if random.random() < 0.2:
        layout = compose(Shift(int(random.integers(1, 64))), layout)
    if random.random() < 0.8:
        bits = int(random.integers(1, 4))
        shift = int(random.integers(bits, bits + 3)) * int(random.choice([1, -1]))
        layout = compose(Swizzle(bits, int(random.integers(0, 5)), shift), layout)
    return layout


def round_trips(count: int) -> None:
    random = np.random.default_rng(1)
    for _ in range(count):
        layout, size = random_layout(random), int(random.choice([1, 2, 4, 8]))
        for spelling in SPELLINGS:
            try:
                text = write_cute(layout, spelling, size)
            except WarploomError:
                assert spelling == "tensor-layouts"  # it has no offset inside
                assert "shift" in show(layout)
                continue
            assert read_cute(text, size) is layout, text
        assert parse(show(layout)) is layout
