"""A rewritten kernel that a busy machine did not run to its end is not called different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warploom.errors import LimitError
from warploom.ptx.launch import Kernel
from warploom.ptx.shuffle.check import PATIENCE, SECONDS, check

TEXT = (Path(__file__).parents[2] / "examples" / "ptx" / "stencil.ptx").read_text()


@pytest.mark.parametrize("ends", [True, False])
def test_the_clock_alone_makes_no_difference(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    launch, asked = Kernel.launch, list[float]()

    def busy(self: Kernel, *args: Any, seconds: float, **options: Any) -> object:
        asked.append(seconds)
        if len(asked) % 3 == 2 or (seconds == PATIENCE and not ends):
            raise LimitError("did not end in the time it was given")
        return launch(self, *args, seconds=seconds, **options)

    monkeypatch.setattr(Kernel, "launch", busy)
    found = check(TEXT, TEXT, rounds=2)
    assert asked[:3] == [SECONDS, SECONDS, PATIENCE]
    assert found.agrees is ends
    assert (found.mismatch is None) is ends
