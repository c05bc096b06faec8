# ruff: noqa: E501 - programs read better with a line each
"""Tensor maps: what a driver refuses, and maps of parts of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ptx.test_async import BEGIN, STORE, WAIT, run

from warploom import ptx
from warploom.errors import DeviceError

LOAD = (
    BEGIN
    + "ld.param.u64 %l2, [p1]; mov.b64 %l4, p0; cvta.param.u64 %l5, %l4; mov.u32 %r4, 4; mov.u32 %r5, 2;\n"
    "@!%p1 bra J; mbarrier.arrive.expect_tx.shared.b64 %l3, [bar], 128;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%l5, {%r4, %r5}], [bar];\nJ:\n"
    + WAIT.format(n=0, parity=0)
    + "\nshl.b32 %r1, %t, 2; add.u32 %r2, %s, %r1; ld.shared.u32 %r3, [%r2]; cvt.u64.u32 %l7, %r1; add.u64 %l7, %l2, %l7; st.global.u32 [%l7], %r3;"
)


def test_what_a_tensor_map_needs() -> None:
    array = np.zeros((40, 72), np.float16)
    for box, swizzle, message in (
        ((16, 4), 0, "no multiple of 16"), ((300, 8), 0, "1 to 256"), ((16, 64), 32, "for a swizzle of 32"),
        ((16,), 0, "a side for each"), ((16, 8), 48, "no swizzle of 48"),
    ):  # fmt: skip
        with pytest.raises(DeviceError, match=message):
            ptx.tensor_map(array, box, swizzle)
    far = np.broadcast_to(np.zeros((1, 8), np.float16), ((1 << 32) + 1, 8))
    refused: tuple[tuple[Any, Any, str], ...] = (
        (np.zeros((4, 9), np.float16), (4, 8), "multiples of 16 bytes"), ([[1.0] * 8], (1, 8), "not of a list"),
        (array, (4.5, 8), "whole numbers"), (array, 8, "a side for each"), (array, "ab", "whole numbers"),
        (array.astype(complex), (4, 8), "type complex128"), (array.astype(object), (4, 8), "type object"),
        (array.astype(">f2"), (4, 8), "type >f2"), (array[:0], (4, 8), "1 to 2..32 elements"), (far, (4, 8), "1 to 2..32 elements"),
        (array[:, 4:], (4, 8), "start at a multiple of 16 bytes"),
    )  # fmt: skip
    for given, sides, message in refused:
        with pytest.raises(DeviceError, match=message):
            ptx.tensor_map(given, sides)


def test_a_map_of_a_part_of_an_array() -> None:
    """Its rows are as far apart as those of the whole; the whole may be an argument, too."""
    whole = np.arange(40 * 24, dtype=np.uint32).reshape(40, 24)
    part = whole[3:36:2, 4:20]
    wanted = part[2:6, 4:12].copy()
    out = np.zeros((4, 8), np.uint32)
    run(LOAD, [ptx.tensor_map(part, (4, 8)), out])
    np.testing.assert_array_equal(out, wanted)
    run(STORE.format(x=4, y=2), [ptx.tensor_map(part, (4, 8))])
    changed = np.arange(whole.size).reshape(whole.shape) != whole
    assert changed[7:14:2, 8:16].all()
    assert changed.sum() == 32
