"""A Python file of a user with index arithmetic of its own, which `warploom check` reads."""

from __future__ import annotations

FILE = """
from warploom.layout.own import SharedTile, Use

def tile(columns=32, iteration=1):
    def place(row, column):
        return row * columns + (column ^ row * iteration % columns)
    def rows(lane, step):
        return step, lane
    def down(lane, step):
        return lane, step
    return SharedTile((32, columns), 4, (
        Use("store", rows, lambda lane, step: place(*rows(lane, step)), "st", steps=32,
            wavefronts=1),
        Use("load", down, lambda lane, step: place(*down(lane, step)), steps=columns, wavefronts=1),
    ), name="mine")

right = tile()
wrong = tile(iteration=0)
number = 3
"""
