"""Small programs written instruction by instruction, for what is published about propagation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from warploom.kernel.dtype import f32
from warploom.kernel.ir import Operation
from warploom.loopnest.communicate import communications
from warploom.loopnest.ir import (
    Access,
    Affine,
    Array,
    Axis,
    Compute,
    Constant,
    Dim,
    Instruction,
    Load,
    Operand,
    Program,
    Scope,
    Store,
    Tile,
    result,
    running,
)
from warploom.loopnest.space import NestSpace
from warploom.loopnest.target import Target
from warploom.machine.record import CUDA
from warploom.search.branching.candidate import Candidates, Decision, decision
from warploom.search.space.ir import Choice

# The fake device of the published assertions: it vectorises anything.
FAKE = Target(
    machine=CUDA.but(name="fake", shared_bytes=128 << 10),
    unroll=256,
    vector=(4, 8),
    paddings=(0,),
)


def dim(name: str, *sizes: int, like: Dim | None = None) -> Dim:
    """A dimension of its own axis, or along the same tile as another; without sizes it counts
    tiles."""
    if like is not None:
        return Dim(name, like.axis, like.tile)
    if not sizes:
        return Dim(name, Axis(f"{name} axis", 1024), None)
    axis = Axis(f"{name} axis", 1024, (sizes,), dynamic=False)
    return Dim(name, axis, Tile(axis, 0))


def inst(name: str, dims: tuple[Dim, ...], *operands: Operand, op: str = "move") -> Instruction:
    given = operands or (Constant(0, f32),)
    value = given[0] if op == "move" else Operation(op, given)  # type: ignore[arg-type]
    return Instruction(name, f32, dims, Compute(value))


def load(name: str, dims: tuple[Dim, ...]) -> Instruction:
    """Of neighbours along the last dimension."""
    array = Array(f"{name} array", f32, (1 << 20,), (1,))
    return Instruction(name, f32, dims, Load(Access(array, (Affine(0, ((dims[-1].axis, 1),)),))))


def store(name: str, dims: tuple[Dim, ...], value: Operand) -> Instruction:
    array = Array(f"{name} array", f32, (1 << 20,), (1,))
    place = Affine(0, tuple((d.axis, 1) for d in dims))
    return Instruction(name, f32, dims, Store(Access(array, (place,)), value))


def program(dims: list[Dim], insts: list[Instruction]) -> Program:
    """Also with dimensions that are around no instruction."""
    listed = dict.fromkeys([*dims, *(d for i in insts for d in i.dims)])
    tiles = tuple(dict.fromkeys(d.tile for d in listed if d.tile is not None))
    axes = tuple(
        replace(axis, size=axis.tiles[0][0]) if axis.tiles else axis
        for axis in dict.fromkeys(d.axis for d in listed)
    )
    free = tuple(d for d in listed if not any(d in i.dims for i in insts))
    made = Program("small", axes, tiles, (), (), tuple(insts), communications(tuple(insts)))
    return cast(Program, _WithDims(made, free)) if free else made


class _WithDims:
    """A program that has dimensions around no instruction."""

    def __init__(self, made: Program, free: tuple[Dim, ...]) -> None:
        self.made, self.free = made, free

    def __getattr__(self, name: str) -> object:
        return getattr(self.made, name)

    @property
    def dims(self) -> tuple[Dim, ...]:
        return (*self.made.dims, *self.free)


class Left:
    """What is left of the choices of a program after some decisions."""

    def __init__(self, made: NestSpace, *decisions: tuple[Any, ...]) -> None:
        self.made = made
        taken: list[Decision] = [
            decision(choice, objects, *values) for choice, objects, *values in decisions
        ]
        self.root: Candidates = made.propagator.root(taken)

    def __call__(self, choice: Choice, *objects: object) -> set[Any]:
        assert len(self.root) == 1
        return set(self.made.propagator.domain(self.root, 0, choice, *objects).values)


__all__ = ["FAKE", "Left", "Scope", "dim", "inst", "load", "program", "result", "running", "store"]
