"""Rankings of Triton's IR beside Triton's own PTX of it, counted by the emulator.

The PTX was compiled by Triton 3.9 from the very files (`bench/layout/ranked.py`), so that each of
its instructions belongs to a line of the file.
"""

from __future__ import annotations

import numpy as np
import pytest
from bench.common.layout.ptx_counted import FOLDER, KEPT, Kept, arguments_of, counted, inversions

from warploom.layout.conversion.traffic import traffic_of
from warploom.layout.formats.ttgir import read_ttgir

QUICK = ("transpose_sm90",)
FILES = [pytest.param(k, marks=[] if k.name in QUICK else pytest.mark.slow) for k in KEPT]


@pytest.mark.parametrize("kept", FILES, ids=lambda kept: kept.name)
def test_every_operation_is_ranked_as_triton_lowers_it(kept: Kept) -> None:
    """Accesses take exactly what is counted; no conversion takes more than Triton's; and of no two
    operations the cheaper one in Triton's PTX is ranked above the other."""
    text = (FOLDER / f"{kept.name}.ttgir").read_text()
    arguments, written, exact = arguments_of(kept.make)
    rows = counted(traffic_of(read_ttgir(text, kept.name)), kept.ptx, arguments, kept.shared)
    assert np.allclose(written, exact, atol=1e-3)
    assert len(rows) >= 3
    for each in rows:
        if each.row.operation.name == "ttg.convert_layout":
            assert each.ours <= each.theirs, each.row
        else:
            assert (each.ours, each.shuffles) == (each.wavefronts, 0), each.row
    assert not inversions(rows)
    assert any(each.theirs for each in rows)
