"""What an implementation may use: a machine, and how much of it one instruction or thread may take.

Limits that belong to a machine are fields of its record; here is what this way of writing kernels
adds to them: how far loops are unrolled, how wide accesses are, which caches can be asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from warploom.errors import CheckError
from warploom.kernel.ir import TensorKind
from warploom.loopnest.ir import Access, Dim, Get, Instruction, Load, Put, Store
from warploom.machine.record import CUDA, Machine

# The sizes that a dimension may have for an instruction to be done as a vector along it.
Vectorises: TypeAlias = Callable[[Instruction, Dim], tuple[int, ...]]

WIDTHS = (2, 4, 8, 16)  # elements of one access

# The cuts of the default space (`cuts.py`).
CUTS = (
    "plain-rows",
    "idle-processors",
    "idle-lanes",
    "one-order",
    "loops-outside",
    "full-warps",
    "neighbours-inside",
)


def cuda_vectors(instruction: Instruction, dim: Dim) -> tuple[int, ...]:
    """Loads and stores of 2 or 4 neighbours, or more of fewer bytes, aligned; temporary arrays are
    laid out for it."""
    match instruction.action:
        case Load(access) | Store(access):  # what a store computes of is loaded as it lies
            return tuple(w for w in WIDTHS if is_aligned(access, dim, w))
        case Put() | Get():
            bytes_ = instruction.dtype.bytes
            return tuple(w for w in WIDTHS if w <= 4 or w * bytes_ <= CUDA.access_bytes)
        case _:
            return ()


def is_aligned(access: Access, dim: Dim, width: int) -> bool:
    """The dimension counts neighbours, and all else moves by multiples of the width."""
    axis = dim.axis
    innermost = dim.tile is not None and dim.tile.level == len(axis.tiles) - 1
    factors, offset = access.near.factors, access.near.offset
    if (
        not innermost
        or factors.get(axis) != 1
        or width * access.array.dtype.bytes > CUDA.access_bytes
    ):
        return False
    if any(axis in each.axes for each in access.named):
        return False
    away = {each.name: factor for each, factor in factors.items() if each is not axis}
    if axis.skew is not None:  # rows begin where that says, and ends are done one by one
        if axis.skew.width % width:
            return False
        for name, factor in axis.skew.factors:
            away[name] = away.get(name, 0) - factor
        return math.gcd(offset - axis.skew.offset, *away.values(), *access.multiples) % width == 0
    whole = axis.size if axis.tail else 0
    return math.gcd(offset, whole, *away.values(), *access.multiples) % width == 0


@dataclass(frozen=True, slots=True)
class Target:
    """`vector` are the most elements of an outer and of an inner vector; `paddings` the elements
    that may follow each row of a temporary array, `swizzles` how its cells may be exchanged. With
    `cooperative_copies` such an array may be filled by all threads of the block, whatever these do
    elsewhere; `stages` says how many of an array there may be, so that one is filled while
    another is used, and `fills` by which way. With `folds_by_threads` threads may fold parts of an
    axis beside each other. Without `limits_registers` what has no room in them is for the compiler
    to put elsewhere. With `tensor` products may be done by tensor cores, which look at the leading
    bits of factors only (tf32), or have them rounded (bf16). With `opts_in` a block takes more
    shared memory than a kernel may declare: its launch asks for it. Kernels that run one after the
    other have at most `between` bytes of arrays of their own. `cuts` name what is left out as
    another implementation is never worse."""

    machine: Machine = CUDA
    unroll: int = 512
    vector: tuple[int, int] = (1, 4)
    vectorises: Vectorises = cuda_vectors
    # `.cs` (not used again), `.ca` (L1 and L2); also `.cg` (L2 only), `.nc` (read-only cache)
    caches: tuple[str, ...] = ("NO_CACHE", "CACHE_SHARED")
    spaces: tuple[str, ...] = ("SHARED",)
    paddings: tuple[int, ...] = (0, 1, 4)
    swizzles: tuple[str, ...] = ("PLAIN",)
    thread_levels: int = 3
    block_dims: int = 3
    cooperative_copies: bool = False
    stages: tuple[int, ...] = (1,)
    fills: tuple[str, ...] = ("REGISTERS",)
    limits_registers: bool = True
    folds_by_threads: bool = False
    tensor: TensorKind | None = None
    opts_in: bool = False
    between: int | None = None
    cuts: tuple[str, ...] = ()

    @property
    def shared_bytes(self) -> int:
        """Shared memory that a block may take."""
        return self.machine.shared_bytes_most if self.opts_in else self.machine.shared_bytes

    @property
    def kinds(self) -> tuple[str, ...]:
        """What a dimension may become."""
        outer = ("OUTER_VECTOR",) if self.vector[0] > 1 else ()
        cooperative = ("DEAL",) if self.cooperative_copies else ()
        tensor = ("TENSOR",) if self.tensor else ()
        return ("LOOP", "UNROLL", "VECTOR", *outer, "BLOCK", "THREAD", *cooperative, *tensor)

    @property
    def threaded(self) -> tuple[str, ...]:
        """Kinds whose iterations are shared among threads."""
        return tuple(kind for kind in self.kinds if kind in ("THREAD", "DEAL"))

    @property
    def vectors(self) -> tuple[str, ...]:
        return tuple(kind for kind in self.kinds if kind.endswith("VECTOR"))


DEFAULT = Target()


def paper(machine: Machine) -> Target:
    """What the published system had: two caches, and nothing after rows. (It did not count
    registers either; we do, so that what is found has a kernel.)"""
    return Target(machine, caches=("NO_CACHE", "CACHE_GLOBAL"), paddings=(0,))


def with_tensor_cores(machine: Machine, kind: TensorKind = "tf32") -> Target:
    """All that, and products by tensor cores; rows of fragments lie apart by two or eight."""
    if not machine.copies:  # both came with the same machines
        raise CheckError(
            f"'{machine.name}' has no tensor cores for single precision",
            advice="those from sm_80 on have",
        )
    return replace(everything(machine), tensor=kind, paddings=(0, 1, 2, 4, 8), cuts=())


def everything(machine: Machine) -> Target:
    """All that we know of, beyond the published system."""
    opts_in = "shared_bytes_most" not in machine.missing
    if not machine.copies:
        return Target(
            machine,
            cooperative_copies=True,
            folds_by_threads=True,
            swizzles=("PLAIN", "XOR"),
            stages=(1, 2),
            opts_in=opts_in,
            cuts=CUTS,
        )
    return Target(
        machine,
        cooperative_copies=True,
        folds_by_threads=True,
        swizzles=("PLAIN", "XOR"),
        stages=(1, 2, 3, 4),
        fills=("REGISTERS", "COPY"),
        opts_in=opts_in,
        cuts=CUTS,
    )
