"""A user's own sketches become kernels that are right on every device, whole tiles or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.common.own.listing import OWN, Own, lengths, run
from tests.tools import require

from warploom.catalogue.verify import mutation, verify
from warploom.pipeline.compiled import Compiled
from warploom.pipeline.entry import entry_of
from warploom.runtime.callable import Device

DEVICES: tuple[Device, ...] = ("simulator", "c", "ptx")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_own_sketches_are_right_on_every_device(own: Own) -> None:
    made = own.compiled("simulator")
    assert "erdict: proved" in made.kernel.doc
    assert "Indices have 32 bits" in made.kernel.doc
    for device in DEVICES:
        if device != "simulator":
            require(device)
        there = Compiled(made.tiled, device)
        for seed, length in enumerate(lengths(made)):
            assert all(run(own, there, length, seed, lambda array: array)), (device, length)


@pytest.mark.slow
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_own_sketches_are_checked_like_the_catalogue(own: Own) -> None:
    made = own.compiled()
    entry = entry_of(own.name, made.tiled)
    for device in ("simulator", "c", "opencl", "ptx"):
        assert [each for each in verify(entry, {}, device) if each.wrong] == []
    assert mutation(entry, {}, most=60).survivors == ()


@pytest.mark.parametrize("language", ["opencl", "c"])
def test_other_languages(language: str) -> None:
    (reversal,) = (own for own in OWN if own.name == "reversal")
    assert "reversal" in reversal.compiled().text(language)


def test_every_file_of_the_folder_is_listed() -> None:
    here = Path(__file__).parents[2] / "bench" / "common" / "own"
    files = {f"{path.stem}.swflow" for path in here.glob("*.swflow")}
    assert files == {own.argument for own in OWN if own.argument.endswith(".swflow")}
