"""Launches of PTX, counted: of what the time model has no cost."""

from __future__ import annotations

from warploom.ptx.table import OPCODES
from warploom.ptx.work import is_of_images


def test_opcodes_of_textures_and_surfaces_are_known_by_their_operands() -> None:
    found = {name for name in OPCODES if is_of_images(name)}
    assert found == {"tex", "tld4", "suld", "sust", "txq", "suq"}
