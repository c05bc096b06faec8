"""Original and rewritten PTX side by side on the emulator: every byte of memory must agree.

Comes in: two texts with the same kernels. Goes out: a `CheckReport`. Launch shapes include blocks
narrower than a warp, partial warps and several dimensions; arguments are random, pointers told
from numbers by what the kernel uses as an address. A launch that the original itself cannot run
(an index outside its array, say) is counted as skipped and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.errors import DeviceError, LimitError, UnsupportedError, WarploomError
from warploom.ptx.ir import Function, Module, Variable
from warploom.ptx.launch import LoadedModule, load
from warploom.ptx.symbolic.form import Form
from warploom.ptx.symbolic.operand import roots, width_of
from warploom.ptx.symbolic.walk import Reading, read

Shape = tuple[int, int, int]
# Whole warps, rows that end inside a warp, partial last warps, fewer threads than lanes.
BLOCKS: tuple[Shape, ...] = (
    (64, 1, 1), (48, 1, 1), (16, 8, 1), (33, 2, 1), (20, 3, 2), (7, 1, 1), (128, 1, 1), (32, 2, 2),
)  # fmt: skip
GRIDS: tuple[Shape, ...] = ((2, 3, 2), (1, 1, 1), (3, 2, 1))
ELEMENTS = 1 << 16
ORDERS = 6  # in which the original runs before a difference in another order is held against it
SECONDS = 20.0  # for one launch; a loop over random sizes may take longer than it is worth
# For a rewritten kernel that did not end in that, though the original did: a machine that is busy
# with something else is no difference between the two.
PATIENCE = 300.0


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a kernel; arrays in `args` are copied before each use."""

    grid: Shape
    block: Shape
    args: tuple[Any, ...]
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first byte that differs, by argument; or what the rewritten kernel ran into."""

    kernel: str
    grid: Shape
    block: Shape
    argument: int
    offset: int
    expected: int
    found: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """`unseen` are kernels of which no launch of the original ran through."""

    launches: int
    skipped: int
    mismatch: Mismatch | None = None
    unseen: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """True only if something ran of every kernel and nothing differed."""
        return self.mismatch is None and self.launches > self.skipped and not self.unseen


def check(
    original: str,
    rewritten: str,
    *,
    launches: dict[str, Sequence[Launch]] | None = None,
    rounds: int = 8,
    seed: int = 0,
    schedules: int = 0,
) -> CheckReport:
    """Runs every kernel of both texts; `launches` by kernel name replaces the random ones.

    The rewritten one runs as the emulator likes best, and then as often as `schedules` says with
    lanes that part and meet at random.
    """
    before, after = load(original, "<original>"), load(rewritten, "<rewritten>")
    rng = np.random.default_rng(seed)
    ran = skipped = 0
    unseen: list[str] = []
    for name in before.kernels:
        earlier = ran - skipped
        chosen = (launches or {}).get(name)
        runs = chosen if chosen is not None else _guess(before.module, name, rounds, rng)
        for launch in runs:
            ran += 1
            expected = _run(before, name, launch)
            if isinstance(expected, WarploomError):
                skipped += 1
                continue
            for schedule in (None, *range(seed, seed + schedules)):
                found = _run(after, name, launch, schedule)
                if isinstance(found, LimitError):
                    found = _run(after, name, launch, schedule, PATIENCE)
                mismatch = _compare(name, launch, expected, found)
                if mismatch is None:
                    continue
                if schedule is not None and _depends_on_order(before, name, launch, expected):
                    break  # threads race: nothing can be said of other orders
                return CheckReport(ran, skipped, mismatch)
        if ran - skipped == earlier:
            unseen.append(name)
    return CheckReport(ran, skipped, None, tuple(unseen))


def _run(
    module: LoadedModule,
    name: str,
    launch: Launch,
    schedule: int | None = None,
    seconds: float = SECONDS,
) -> list[bytes] | WarploomError:
    """The memory after a launch, array by array and then variable by variable; or the error."""
    args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in launch.args]
    kept = {key: data.copy() for key, data in module.variables.items()}
    try:
        module.kernel(name).launch(
            launch.grid, launch.block, args, shared_bytes=launch.shared_bytes, check=False,
            seconds=seconds, schedule=schedule,
        )  # fmt: skip
    except WarploomError as error:
        return error
    finally:
        after = [module.variables[key].tobytes() for key in sorted(kept)]
        for key, data in kept.items():
            module.variables[key][...] = data
    return [arg.tobytes() for arg in args if isinstance(arg, np.ndarray)] + after


def _depends_on_order(
    module: LoadedModule, name: str, launch: Launch, expected: list[bytes]
) -> bool:
    """Whether the original itself gives something else when its lanes run in another order."""
    return any(_run(module, name, launch, schedule) != expected for schedule in range(ORDERS))


def _compare(
    name: str, launch: Launch, expected: list[bytes], found: list[bytes] | WarploomError
) -> Mismatch | None:
    if isinstance(found, WarploomError):
        return Mismatch(name, launch.grid, launch.block, -1, -1, 0, 0, found.message)
    for argument, (a, b) in enumerate(zip(expected, found, strict=True)):
        if a != b:
            offset = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
            return Mismatch(name, launch.grid, launch.block, argument, offset, a[offset], b[offset])
    return None


# -- arguments out of thin air ------------------------------------------------------------------


def _guess(module: Module, name: str, rounds: int, rng: np.random.Generator) -> Iterator[Launch]:
    function = module.function(name)
    assert function is not None
    pointers = _pointers(module, function)
    fixed = _required_block(function)
    for iteration in range(rounds):
        block = fixed or BLOCKS[iteration % len(BLOCKS)]
        grid = GRIDS[iteration % len(GRIDS)]
        args = tuple(_argument(p, p.name in pointers, rng) for p in function.parameters)
        yield Launch(grid, block, args, shared_bytes=16384)


def _required_block(function: Function) -> Shape | None:
    for directive in function.directives:
        if directive.name.lstrip(".") == "reqntid":
            sizes = [int(word) for word in directive.words if word.isdigit()]
            padded = [*sizes, 1, 1, 1]
            return padded[0], padded[1], padded[2]
    return None


def _pointers(module: Module, function: Function) -> set[str]:
    """Parameters that some address starts from."""
    try:
        reading = read(module, function)
    except UnsupportedError:
        return {p.name for p in function.parameters if width_of(p.type) == 64}
    found: set[str] = set()
    for address in reading.addresses.values():
        if address is not None:
            found |= _parameters_of(reading, address)
    return found


def _parameters_of(reading: Reading, address: Form) -> set[str]:
    names = set()
    for index in roots(reading.pool, address):
        for inner in reading.pool.atoms[index].forms:
            for monomial in inner.terms:
                names |= {reading.pool.atoms[i].op.removeprefix("&") for i in monomial}
    return names


def _argument(parameter: Variable, pointer: bool, rng: np.random.Generator) -> Any:
    width = width_of(parameter.type)
    if parameter.sizes:
        size = int(np.prod(parameter.sizes)) * max(1, width // 8) * parameter.vector
        return rng.integers(0, 32, size, dtype=np.uint8).tobytes()
    if pointer and width == 64:
        return _array(rng)
    if parameter.type.startswith("f"):
        return float(rng.normal())
    if width == 0:
        raise DeviceError(f"no value can be guessed for a parameter of type .{parameter.type}")
    return int(rng.integers(6, 48))


def _array(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float32]]:
    return rng.normal(size=ELEMENTS).astype(np.float32)
