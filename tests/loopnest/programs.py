"""Random small programs: loads, folds, chains of values, stores, with tiles that may not divide."""

from __future__ import annotations

import random

from warploom.loopnest.build import LoopNest, Term, maximum
from warploom.loopnest.ir import Axis, Program


class Generator:
    def __init__(self, seed: int, largest: int = 6, axes: int = 3, tiles: int = 1) -> None:
        self.pick = random.Random(seed)
        self.nest = LoopNest("random")
        self.axes = [
            self.axis(name, largest, tiles) for name in "ijk"[: self.pick.randint(1, axes)]
        ]

    def axis(self, name: str, largest: int, tiles: int) -> Axis:
        pick = self.pick
        size = pick.randint(2, largest)
        listed = [pick.choice([(2,), (2, 3), (2, 4), (3,)]) for _ in range(pick.randint(0, tiles))]
        tail = pick.random() < 0.4
        dynamic = pick.random() < 0.8
        return self.nest.axis(
            name, size, *self.usable(size, listed, tail), dynamic=dynamic, tail=tail
        )

    def usable(self, size: int, listed: list[tuple[int, ...]], tail: bool) -> list[tuple[int, ...]]:
        sizes = [tuple(n for n in tile if tail or size % n == 0) for tile in listed]
        return [tile for tile in sizes if tile]

    def some(self, least: int = 1) -> list[Axis]:
        count = self.pick.randint(least, len(self.axes))
        return [axis for axis in self.axes if axis in self.pick.sample(self.axes, count)]

    def load(self, name: str) -> Term:
        axes = self.some()
        self.pick.shuffle(axes)
        return self.nest.array(name, *axes)[tuple(axes)]

    def program(self) -> Program:
        nest, pick = self.nest, self.pick
        value: Term = self.load("x")
        for name in "yz"[: pick.randint(0, 2)]:
            value = pick.choice([
                lambda v, name=name: v * self.load(name),
                lambda v, name=name: v + self.load(name),
                lambda v, name=name: maximum(v, 0.5),
            ])(value)  # fmt: skip
        over: list[Axis] = []
        varying = nest.axes_of(value)
        if varying and pick.random() < 0.6:
            over = pick.sample(varying, pick.randint(1, len(varying)))
            value = pick.choice([nest.sum, lambda v, over: nest.fold("max", v, over)])(value, over)
        axes = nest.axes_of(value)
        extra = [axis for axis in self.axes if axis not in (*axes, *over) and pick.random() < 0.3]
        shape = [*axes, *extra]
        out = nest.array("out", *shape) if shape else nest.array("out", 1)
        out[tuple(shape) or 0] = value * nest.parameter("scale") if pick.random() < 0.4 else value
        return nest.done()


def random_program(seed: int, largest: int = 6, axes: int = 3, tiles: int = 1) -> Program:
    return Generator(seed, largest, axes, tiles).program()
