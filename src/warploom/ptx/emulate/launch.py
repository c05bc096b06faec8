"""The way in: PTX text to a module whose kernels run on NumPy arrays, without a GPU.

    module = load(text)
    report = module.kernel("saxpy").launch(grid=4, block=256, args=[x, y, np.float32(2), n])

Arrays are memory of the device: they are written in place. Scalars are converted to the type of
the kernel's parameter where they keep their value: an integer may be given for a float, a float
for an integer is refused, even if it is a whole one.
"""

from __future__ import annotations

import numbers
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from warploom.errors import (
    CheckError,
    DeviceError,
    UnsupportedError,
    WarploomError,
    located,
)
from warploom.machine.counters import Counters
from warploom.machine.heap import Heap
from warploom.machine.memory import WINDOWS, Memory, allocate, per_owner
from warploom.machine.race import Race, RaceDetector, Side
from warploom.machine.record import CUDA, H200
from warploom.machine.report import Report
from warploom.ptx.demangle import called, demangled
from warploom.ptx.emulate import undefined
from warploom.ptx.emulate.access import SHARED
from warploom.ptx.emulate.arguments import bind, initial_bytes
from warploom.ptx.emulate.call import CallCompiler
from warploom.ptx.emulate.compile import alignment, byte_size, compile_function, meets_in_part
from warploom.ptx.emulate.frame import Batch, Frame, Triple, in_grid
from warploom.ptx.emulate.ordering import follows_looks, may_look_far, uses_flags
from warploom.ptx.emulate.schedule import Code, Runner
from warploom.ptx.fast.cores import Job
from warploom.ptx.fast.engine import EngineName, FastKernel
from warploom.ptx.fast.notes import Notes
from warploom.ptx.ir import Function, Module, Variable
from warploom.ptx.parse import parse
from warploom.ptx.patience import deadline_of, timed, within
from warploom.ptx.source import SourceMap
from warploom.ptx.types import DTYPES

Array = npt.NDArray[Any]

BATCH_THREADS = 1 << 15  # what fits the caches of a core, a few registers at a time
RESIDENT_THREADS = H200.multiprocessors * H200.multiprocessor_threads
PRODUCT_THREADS = 1 << 11  # with wgmma, whose one step would take seconds: a limit is kept to one
BATCH_BYTES = 1 << 28  # shared and local memory of one batch
FIRST_FUNCTION = 0x10
MOST_HEAP = 1 << 29
MOST_LISTED = 20  # names that an error gives to choose from


class LoadedModule:
    """A parsed module with the memory that lasts over launches: its variables and its heap."""

    def __init__(
        self, module: Module, texts: Mapping[str, str] | None = None, named: Collection[str] = ()
    ) -> None:
        self.module = module
        self.heap = Heap()
        self.variables: dict[str, npt.NDArray[np.uint8]] = {}
        self.functions = {f.name: FIRST_FUNCTION * (i + 1) for i, f in enumerate(module.functions)}
        self.places = SourceMap(module, texts, named)
        self._kernels: dict[str, Kernel] = {}
        memory = Memory()
        globals_ = [v for v in module.variables if v.space in ("global", "const")]
        addresses = dict(self.functions)
        defined = [v for v in globals_ if "extern" not in v.linkage]
        for variable in timed(defined):
            data = allocate(
                byte_size(variable), f"variable '{variable.name}'", module.span(variable)
            )
            self.variables[variable.name] = data
            region = memory.add(variable.name, data, space=variable.space)
            addresses[variable.name] = region.base
        for variable in defined:
            if variable.initial is not None:
                initial_bytes(module, variable, addresses, self.variables[variable.name])
        self._spaces = {v.name: v.space for v in defined}

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.module.functions if f.kind == "entry" and f.body)

    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel of that name; without one, the only kernel of the module."""
        if name is None and len(self.kernels) == 1:
            name = self.kernels[0]
        name = _named(name, self.kernels, "kernel")
        found = self._kernels.get(name)
        if found is None:
            function = self.module.function(name)
            assert function is not None
            found = self._kernels[name] = Kernel(self, function)
        return found

    def variable(self, name: str) -> npt.NDArray[Any]:
        """The memory of a global or constant variable, as the host sees it; may be written."""
        name = _named(name, tuple(self.variables), "variable")
        declared = next(v for v in self.module.variables if v.name == name)
        return self.variables[name].view(DTYPES[declared.type])

    def set_variable(self, name: str, value: Any) -> None:
        """Writes a whole variable, as `cudaMemcpyToSymbol` does: an array or a number of NumPy."""
        memory = self.variable(name).view(np.uint8)
        if not isinstance(value, np.ndarray | np.generic):
            advice = "give an array or a number of NumPy, which says how many bytes it has"
            raise DeviceError(f"a {type(value).__name__} for variable '{name}'", advice=advice)
        if value.nbytes != memory.nbytes:
            has = f"variable '{name}' has {memory.nbytes} bytes"
            raise DeviceError(f"{has}, {value.nbytes} are given")
        memory[:] = np.frombuffer(value.tobytes(), np.uint8)

    def new_memory(self) -> tuple[Memory, dict[str, int]]:
        """A memory with the module's variables, and their addresses within their spaces."""
        memory = Memory()
        symbols: dict[str, int] = {}
        for name, data in timed(self.variables.items()):
            space = self._spaces[name]
            region = memory.add(f"variable '{name}'", data, space == "const", space)
            symbols[name] = region.base - WINDOWS[space]
        self.heap.attach(memory)
        return memory, symbols


@located
def load(
    text: str, name: str = "<ptx>", texts: Mapping[str, str] | None = None,
    named: Collection[str] = (),
) -> LoadedModule:  # fmt: skip
    """Reads PTX; `name` is what errors call the text, `texts` what it was compiled from.

    Those are needed only where the files that the PTX names are not there to be read. Lines are
    shown of files that the user `named`, and of those under the working folder.
    """
    if not isinstance(text, str):
        raise CheckError(
            f"PTX is a text, not a {type(text).__name__}", advice="give what the file holds"
        )
    return LoadedModule(parse(text, name), texts, named)


class Kernel:
    """A kernel ready to be launched. Instructions are compiled at the first launch."""

    def __init__(self, owner: LoadedModule, function: Function) -> None:
        self.owner = owner
        self.function = function
        self.name = function.name
        self._shared: dict[str, int] = {}
        self._static_shared = self._lay_out_shared()
        self._codes: dict[str, tuple[Function, Code]] = {}
        names = {address: name for name, address in owner.functions.items()}
        self._call = CallCompiler(self._lookup, names)
        self.fast = FastKernel(owner.module, function, self._shared)

    def _lay_out_shared(self) -> int:
        """Offsets of all shared variables the kernel can see; extern ones start at the end."""
        module = self.owner.module
        bodies = [f for f in module.functions if f.kind == "func" or f is self.function]
        variables = [v for v in module.variables if v.space == "shared"]
        for function in timed(bodies):
            declared = (s for s in timed(function.flat()) if isinstance(s, Variable))
            variables += [v for v in declared if v.space == "shared"]
        used = _words(self.owner.module, bodies)
        place = 0
        dynamic: list[Variable] = []
        for variable in variables:
            if variable.name not in used:
                continue
            if "extern" in variable.linkage or not byte_size(variable):
                dynamic.append(variable)
                continue
            if variable.name in self._shared:
                raise UnsupportedError(
                    f"two shared variables are called '{variable.name}'", module.span(variable)
                )
            align = alignment(variable)
            place = -(-place // align) * align
            self._shared[variable.name] = place
            place += byte_size(variable)
        if dynamic:
            align = max(16, *[alignment(v) for v in dynamic])
            place = -(-place // align) * align
        self._shared |= {v.name: place for v in dynamic}
        return place

    def _lookup(self, name: str) -> tuple[Function, Code] | None:
        found = self._codes.get(name)
        if found is None:
            function = self.owner.module.function(name)
            if function is None or function.body is None:
                return None
            code = compile_function(self.owner.module, function, self._shared, self._call)
            found = self._codes[name] = (function, code)
            if function is self.function:  # what one engine refuses, the other does not run
                self.fast.why_not = code.refusal
        return found

    def why_not_fast(self) -> str:
        """What leaves every launch to the evaluator; empty where the kernel can be compiled."""
        found = self._lookup(self.name)
        assert found is not None
        heap = "memory that malloc gave" if self.owner.heap.was_used else ""
        return self.fast.judged(found[1].locals) or heap

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared_bytes: int = 0,
        check: bool = True,
        races: bool | Literal["all"] = False,
        benign: bool = False,
        counters: bool = False,
        seconds: float | None = None,
        batch_threads: int | None = None,
        schedule: int | None = None,
        engine: EngineName = "auto",
        cluster: int | Sequence[int] | None = None,
        cores: int | None = None,
        heap_bytes: int | None = None,
    ) -> Report:
        """Runs the kernel on all blocks of the grid.

        Bounds and alignment are always checked; `check` adds reads of shared memory that was
        never written, `races` adds data races: the first ends the launch, or with "all" each pair
        of instructions that race is in the report; `benign` leaves out writes of the value that is
        there already. Batches hold `batch_threads` threads at most (one block at least); without
        it what is quick, or what an H200 runs at once where blocks may wait for each other.
        `schedule` is a seed: lanes part, wait and meet at random, as a machine may let them;
        without one they meet as early as they can. `engine`: "numpy" is the evaluator that defines
        the meaning; "c" compiles the kernel, where it can, and gives the same answers sooner;
        "auto" does that for launches large enough to be worth it. `cluster`: how many blocks are
        one, where the kernel does not say it. `cores`: on how many a compiled kernel may run its
        blocks, where their order makes no difference; all that there are, if it is not said.
        `heap_bytes`: what malloc may give, from this launch on (8 MiB if it is never said).
        """
        started, deadline = time.monotonic(), deadline_of(seconds)
        grid_size, block_size = _triple(grid, "grid"), _triple(block, "block")
        self._check_shape(grid_size, block_size, shared_bytes)
        _check_options(races, schedule, engine, cores)
        if heap_bytes is not None:
            self.owner.heap.limit = _heap_limit(heap_bytes)
        together = self._cluster(grid_size, cluster)
        with within(deadline, f"making the kernel '{self.name}' ready to run"):
            code, memory, symbols = self._ready(args)
            report = Report(grid=grid_size, threads=prod(block_size))
            plain = schedule is None and together == (1, 1, 1) and not self.owner.heap.was_used
            notes = Notes(bool(counters), bool(races))
            if plain and self.fast.is_worth_it(grid_size, block_size, engine, notes):
                job = Job(
                    grid_size, block_size, memory, symbols, self._static_shared + shared_bytes,
                    shared_bytes, code.local_size, check, deadline, cores,
                )  # fmt: skip
                if self.fast.run(job, report, code.locals, notes):
                    report.seconds = time.monotonic() - started
                    return report
            launch = _Launch(
                self, code, grid_size, block_size, memory, symbols, shared_bytes, check,
                self._detector(grid_size, block_size, races, benign, together) if races else None,
                report if counters else None, deadline,
                None if schedule is None else np.random.default_rng(schedule), together,
            )  # fmt: skip
            for _, each in self._codes.values():
                each.executed[:] = [0] * len(each.executed)
            with np.errstate(all="ignore"), self.owner.places.shown(launch.output):
                launch.run(batch_threads)
        report.output = launch.output
        report.mix = self._mix()
        report.races = [] if launch.races is None else launch.found()
        report.seconds = time.monotonic() - started
        return report

    def _ready(self, args: Sequence[Any]) -> tuple[Code, Memory, dict[str, int]]:
        """The compiled kernel, and a memory with the arguments."""
        found = self._lookup(self.name)
        assert found is not None
        if found[1].local_size > CUDA.local_bytes:
            raise DeviceError(
                f"{found[1].local_size} bytes of local memory; a thread has {CUDA.local_bytes}",
                self.owner.module.span(self.function),
            )
        memory, symbols = self.owner.new_memory()
        symbols |= bind(self.owner.module, self.function, args, memory)
        return found[1], memory, symbols

    def _cluster(self, grid: Triple, asked: int | Sequence[int] | None) -> Triple:
        """How many blocks are one cluster, by the kernel or by the launch; checked as a driver."""
        found: Triple | None = None if asked is None else _triple(asked, "cluster")
        for directive in self.function.directives:
            sizes = [int(word) for word in directive.words if word.isdigit()]
            if directive.name == "reqnctapercluster":
                written = _triple(sizes or [1], "cluster")
                if found not in (None, written):
                    raise DeviceError(
                        f"the kernel is made for clusters of {written} blocks",
                        self.owner.module.span(directive),
                    )
                found = written
            elif directive.name == "explicitcluster" and found is None:
                raise DeviceError(
                    "the kernel needs a cluster size at its launch",
                    self.owner.module.span(directive), "give cluster=…",
                )  # fmt: skip
        found = found or (1, 1, 1)
        if any(side % part for side, part in zip(grid, found, strict=True)):
            raise DeviceError(f"a grid of {grid} is not made of clusters of {found}")
        if prod(found) > CUDA.cluster_blocks:
            raise DeviceError(f"{prod(found)} blocks in a cluster; at most {CUDA.cluster_blocks}")
        return found

    def _detector(
        self, grid: Triple, block: Triple, races: bool | str, benign: bool, cluster: Triple
    ) -> RaceDetector:
        functions = [f for f in self.owner.module.functions if f.kind == "func"]
        steps = [step for f in (self.function, *functions) for step in timed(f.instructions())]
        return RaceDetector(
            prod(grid), prod(block), CUDA.lanes, len(steps) + 1,
            partial=any(meets_in_part(step) for step in steps),
            flags=any(uses_flags(step) for step in steps) or follows_looks(steps),
            every=races == "all", benign=benign, cluster=prod(cluster),
            meetings=any(s.opcode == "mbarrier" and "inval" in s.modifiers for s in steps),
        )  # fmt: skip

    def _check_shape(self, grid: Triple, block: Triple, shared_bytes: int) -> None:
        threads, most = prod(block), CUDA.block_threads
        if threads > most:
            raise DeviceError(f"{threads} threads in a block; at most {most} are possible")
        for what, shape, sides in (
            ("block", block, CUDA.block_sides), ("grid", grid, CUDA.grid_sides),
        ):  # fmt: skip
            if any(size > side for size, side in zip(shape, sides, strict=True)):
                raise DeviceError(f"a {what} of {shape}; at most {sides} is possible")
        self._check_shared(shared_bytes)
        for directive in self.function.directives:
            sizes = [int(w) for w in directive.words if w.isdigit()]
            if directive.name == "maxntid" and threads > prod(sizes):
                wanted = f"at most {prod(sizes)}"
            elif directive.name == "reqntid" and tuple(sizes) != block[: len(sizes)]:
                wanted = " × ".join(map(str, sizes))
            else:
                continue
            raise DeviceError(
                f"the kernel is made for {wanted} threads in a block",
                self.owner.module.span(directive),
            )

    def _check_shared(self, dynamic: int) -> None:
        """As ptxas refuses what is declared, and a driver what a launch asks for beside it."""
        if not isinstance(dynamic, int | np.integer) or isinstance(dynamic, bool):
            raise DeviceError(f"{dynamic!r} bytes of shared memory", advice="give a whole number")
        if dynamic < 0:
            raise DeviceError("shared_bytes is negative")
        declared, most = self._static_shared, H200.shared_bytes_most
        if declared > CUDA.shared_bytes:
            raise DeviceError(
                f"{declared} bytes of shared memory are declared, of {CUDA.shared_bytes} at most",
                self.owner.module.span(self.function),
                "what is more is given at the launch, to an .extern .shared array",
            )
        if declared + dynamic > most:
            beside = f" beside the {declared} that are declared" if declared else ""
            raise DeviceError(
                f"{dynamic} bytes of dynamic shared memory{beside}; a block has at most {most}"
            )

    def _mix(self) -> dict[str, int]:
        """Thread executions by opcode."""
        mix: Counter[str] = Counter()
        for _, code in self._codes.values():
            for block, times in zip(code.blocks, code.executed, strict=True):
                if times:
                    for name in block.names:
                        mix[name] += times
        return dict(mix)

    @property
    def shared_symbols(self) -> dict[str, int]:
        return dict(self._shared)

    @property
    def static_shared(self) -> int:
        return self._static_shared


def _named(name: str | None, known: Sequence[str], what: str) -> str:
    """Which of these is meant: by its own name, or as it is called in C++."""
    if name is not None and not isinstance(name, str):
        raise DeviceError(f"{name!r} is no name of a {what}", advice="give it as a text")
    if name is not None and name in known:
        return name
    wanted = "" if name is None else name.replace(" ", "")
    found = [each for each in known if wanted in called(each)]
    if len(found) == 1:
        return found[0]
    if name is None:
        wrong = f"a module with {len(known)} {what}s, and none is named"
    elif found:
        wrong = f"'{name}' may be any of {len(found)} {what}s"
    else:
        wrong = f"no {what} '{name}' in this module"
    listed = [_shown(each) for each in (found or known)]
    more = ["…"] if len(listed) > MOST_LISTED else []
    told = ", ".join([*listed[:MOST_LISTED], *more]) or "none"
    raise DeviceError(wrong, advice=f"{what}s: {told}")


def _shown(name: str) -> str:
    return name if demangled(name) == name else f"{demangled(name)} ({name})"


def _words(module: Module, functions: Sequence[Function]) -> set[str]:
    """All names that stand in the bodies, as a cheap upper bound of the variables used."""
    separators = str.maketrans(dict.fromkeys(",;[](){}+-|\t\n", " "))
    text = module.text.source.text
    return {
        word
        for f in functions
        for word in text[f.body_start : f.body_end].translate(separators).split()
    }


def _check_options(races: Any, schedule: Any, engine: Any, cores: Any) -> None:
    """What is said of a launch beside its shape: refused, never taken for something else."""
    if cores is not None and (not isinstance(cores, numbers.Integral) or cores < 1):
        raise DeviceError(f"a launch on {cores!r} cores", advice="one is the least")
    if schedule is not None and (not isinstance(schedule, numbers.Integral) or schedule < 0):
        raise DeviceError(f"{schedule!r} is no seed of a schedule", advice="give 0 or more")
    if engine not in get_args(EngineName):
        known = ", ".join(get_args(EngineName))
        raise DeviceError(f"there is no engine {engine!r}", advice=f"there are {known}")
    if races != "all" and not isinstance(races, bool | np.bool_):
        raise DeviceError(f"races={races!r}", advice='write True, False or "all"')


def _heap_limit(given: Any) -> int:
    if not isinstance(given, int | np.integer) or not 0 <= given <= MOST_HEAP:
        advice = f"give a whole number of bytes, {MOST_HEAP} at most"
        raise DeviceError(f"a device heap of {given!r} bytes", advice=advice)
    return int(given)


def _triple(value: int | Sequence[int], what: str) -> Triple:
    given = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    sizes = list(given)
    whole = all(isinstance(s, numbers.Real) and s >= 1 and s % 1 == 0 for s in sizes)
    if not 1 <= len(sizes) <= 3 or not whole:
        raise DeviceError(f"{what} must be one to three positive sizes")
    padded = [int(s) for s in sizes] + [1] * (3 - len(sizes))
    return padded[0], padded[1], padded[2]


@dataclass(slots=True)
class _Launch:
    """One launch, cut into batches of blocks."""

    kernel: Kernel
    code: Code
    grid: Triple
    block: Triple
    memory: Memory
    symbols: dict[str, int]
    shared_bytes: int
    check: bool
    races: RaceDetector | None
    counters: Counters | None
    deadline: float | None
    chance: np.random.Generator | None
    cluster: Triple = (1, 1, 1)
    same_shape: dict[str, Array] = field(default_factory=dict)  # what batches have in common
    output: list[str] = field(default_factory=list)

    def found(self) -> list[Race]:
        """The races, their blocks numbered as the grid does."""
        assert self.races is not None
        if prod(self.cluster) == 1:
            return self.races.races

        def named(side: Side) -> Side:
            number = in_grid(np.array(side.block), self.grid, self.cluster)
            return replace(side, block=int(number))

        return [replace(r, first=named(r.first), second=named(r.second)) for r in self.races.races]

    def run(self, asked: int | None) -> None:
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        threads = self.block[0] * self.block[1] * self.block[2]
        shared = self.kernel.static_shared + self.shared_bytes
        batch_threads = BATCH_THREADS if asked is None else asked
        if asked is None and (self.code.may_wait_for_blocks or self._calls_may_wait()):
            batch_threads = RESIDENT_THREADS
        elif any("wgmma" in block.names for block in self.code.blocks):
            batch_threads = min(batch_threads, PRODUCT_THREADS)
        bytes_per_block = shared + threads * self.code.local_size + 1
        together = min(batch_threads // threads, BATCH_BYTES // bytes_per_block)
        size = prod(self.cluster)
        together = max(1, min(together // size, blocks // size)) * size
        for first in range(0, blocks, together):
            self._run_batch(first, min(together, blocks - first), threads, shared)

    def _calls_may_wait(self) -> bool:
        """The same of functions that the kernel may call."""
        if not any("call" in block.names for block in self.code.blocks):
            return False
        functions = self.kernel.owner.module.functions
        bodies = [f for f in functions if f.kind == "func" and f.body is not None]
        return any(may_look_far(step) for f in bodies for step in timed(f.instructions()))

    def _run_batch(self, first: int, blocks: int, threads: int, shared: int) -> None:
        total = blocks * threads
        if self.races is not None:
            self.races.start(first, blocks)
            self.races.forget(SHARED)
        batch = Batch(
            threads=total, block_size=threads, blocks=blocks, first_block=first, grid=self.grid,
            block=self.block, memory=self.memory,
            shared=per_owner("shared memory", blocks, threads, shared, marked=self.check),
            local=per_owner("local memory", total, 1, self.code.local_size), symbols=self.symbols,
            functions=self.kernel.owner.functions, alive=np.ones(total, bool),
            counters=self.counters,
            races=self.races, deadline=self.deadline,
            dynamic_shared=self.shared_bytes, check=self.check, chance=self.chance,
            output=self.output, cluster=self.cluster, heap=self.kernel.owner.heap,
            line_of=self.kernel.owner.places.words,
        )  # fmt: skip
        if self.same_shape and self.same_shape["threads"].size == total:
            batch.special |= self.same_shape
        frame = Frame(batch, self.code.new_registers(), 0, 0)
        undefined.begin(frame, self.code.slots, self.code.live[self.code.entry])
        Runner(self.code, frame).run(None)
        if batch.flight is not None:
            batch.flight.finish()
        if self.races is not None:
            self.races.end()
        own = ("%ctaid", "%clusterid")  # the only ones that differ from batch to batch
        self.same_shape = {k: v for k, v in batch.special.items() if not k.startswith(own)}
        self.same_shape["threads"] = batch.alive


__all__ = ["Kernel", "LoadedModule", "Report", "WarploomError", "load"]
