"""The way in: PTX text to a module whose kernels run on NumPy arrays, without a GPU.

    module = load(text)
    report = module.kernel("saxpy").launch(grid=4, block=256, args=[x, y, np.float32(2), n])

Arrays are memory of the device: they are written in place. Scalars are converted to the type of
the kernel's parameter where they keep their value: an integer may be given for a float, a float
for an integer is refused, even if it is a whole one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import (
    CheckError,
    DeadlockError,
    DeviceError,
    LimitError,
    Span,
    WarploomError,
    located,
)
from warploom.machine.heap import Heap
from warploom.machine.memory import WINDOWS, Memory, allocate
from warploom.machine.proof import Explored, Proof, Reach
from warploom.machine.record import CUDA, H200, NVIDIA, Machine, for_ptx
from warploom.machine.report import Report
from warploom.ptx.demangle import called, demangled
from warploom.ptx.emulate.arguments import bind, initial_bytes
from warploom.ptx.emulate.asked import (
    Asked,
    EngineName,
    Model,
    Races,
    Volatile,
    check_machine,
    check_options,
    check_overlap,
    check_proof,
    check_shape,
    check_switches,
    heap_limit,
    triple,
)
from warploom.ptx.emulate.call import CallCompiler
from warploom.ptx.emulate.code import Code
from warploom.ptx.emulate.compile import byte_size, compile_function
from warploom.ptx.emulate.driver import (
    RESERVED,
    add_workspace,
    blocks_at_once,
    check_together,
    reserved_bytes,
)
from warploom.ptx.emulate.excuse import Kept, writable_bytes
from warploom.ptx.emulate.frame import Triple
from warploom.ptx.emulate.hold import Hold, Schedule, text_of
from warploom.ptx.emulate.judge import Judge
from warploom.ptx.emulate.registers import registers_of
from warploom.ptx.emulate.trial import Around
from warploom.ptx.emulate.work import TooMuch, Work
from warploom.ptx.fast.cores import Job
from warploom.ptx.fast.engine import FastKernel, much_work
from warploom.ptx.fast.notes import Notes
from warploom.ptx.fidelity import fidelity
from warploom.ptx.ir import Function, Instruction, Module
from warploom.ptx.parse import parse
from warploom.ptx.patience import deadline_of, timed, within
from warploom.ptx.prove.explore import Attempt, check_seconds, explored
from warploom.ptx.prove.flags import FlagLoops
from warploom.ptx.prove.spins import Spins
from warploom.ptx.prove.verdict import Evidence, passed_unasked, verdict
from warploom.ptx.shared_layout import shared_layout
from warploom.ptx.source import SourceMap
from warploom.ptx.types import DTYPES

Array = npt.NDArray[Any]

FIRST_FUNCTION = 0x10
FIRST_SLICE, LOOKED_AT = 2.0, 3.0  # seconds of compiled code that waits, then of the evaluator
MOST_COPIED = 1 << 28  # bytes, lest a launch turns out to be long
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
        self._at: dict[tuple[int, int], Instruction] = {}  # by line and column, once it is asked
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

    def instruction(self, span: Span) -> Instruction | None:
        """The instruction at a place of the text."""
        if not self._at:
            steps = (step for function in self.module.functions for step in function.instructions())
            for step in timed(steps):
                found = self.module.span(step)
                self._at[found.line, found.column] = step
        return self._at.get((span.line, span.column))

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


def _is_proved(report: Report) -> bool:
    return report.proof is not None and report.proof.reach is not Reach.THIS_SCHEDULE


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
        laid = shared_layout(owner.module, function)
        self._shared, self._static_shared = laid.places, laid.size
        self._asked_of_driver = laid.asked_of_driver
        self._codes: dict[str, tuple[Function, Code]] = {}
        names = {address: name for name, address in owner.functions.items()}
        self._call = CallCompiler(self._lookup, names)
        self.fast = FastKernel(owner.module, function, self._shared)
        around = Around(
            owner.module, owner.functions, owner.heap, owner.places, self._codes,
            self._static_shared, self._shared, reserved_bytes(self._asked_of_driver),
        )  # fmt: skip
        self._judge = Judge(around, function, self._shared, self._call)

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

    def has_pieces(self) -> bool:
        """Whether compiled code can do a part of a kernel that cannot be compiled as a whole."""
        found = self._lookup(self.name)
        assert found is not None
        return not self.owner.heap.was_used and self.fast.has_pieces(found[1])

    def why_not_fast(self) -> str:
        """What keeps the kernel from being compiled as a whole; empty where nothing does."""
        found = self._lookup(self.name)
        assert found is not None
        heap = "memory that malloc gave" if self.owner.heap.was_used else ""
        return self.fast.judged(found[1].locals) or heap

    @located
    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared_bytes: int = 0,
        check: bool = True,
        races: Races = False,
        benign: bool = False,
        counters: bool = False,
        seconds: float | None = None,
        batch_threads: int | None = None,
        schedule: Schedule = None,
        engine: EngineName = "auto",
        cluster: int | Sequence[int] | None = None,
        cores: int | None = None,
        heap_bytes: int | None = None,
        volatile: Volatile = "relaxed",
        machine: Machine = H200,
        prove: bool = False,
        model: Model = "practice",
        explore: float | None = None,
        dependents: bool = False,
        after: Report | None = None,
    ) -> Report:
        """Runs the kernel on all blocks of the grid.

        Bounds and alignment are always checked; `check` adds reads of shared memory that was
        never written, `races` adds data races: the first ends the launch, or with "all" each pair
        of instructions that race is in the report; `benign` leaves out writes of the value that is
        there already, loads of no use and sums that differ by the rounding of a fused product (see
        `excuse`). Batches hold `batch_threads` threads at most (one block at least); without
        it what is quick, or what an H200 runs at once where blocks may wait for each other.
        `schedule` is a seed: lanes diverge, wait and meet at random, as a machine may let them;
        without one they meet as early as they can. A text such as "0:1@5" holds the threads of
        block 0, warp 1 back before their event 5 until nobody else can go on. `engine`: "numpy" is
        the evaluator that defines the meaning; "c" compiles the kernel, where it can, and gives the
        same answers sooner; "auto" does that for launches with enough work to repay it. `cluster`:
        how many blocks are one, where the kernel does not say it. `cores`: on how many a compiled
        kernel may run its blocks, where their order makes no difference; all that there are, if it
        is not said. `heap_bytes`: what malloc may give from now on (8 MiB if it is never said).
        `volatile`: "weak" has races take volatile accesses for plain ones, as C++ does.
        `machine`: whose limits hold, and who serves shared memory. `prove`: the report's `proof`
        says whether all schedules do the same, for all data or for these. `model`: "ptx" has races
        judged by the manual's rules alone, also where that seldom shows on GPUs. `explore`: for
        so many seconds other schedules are run, unless a proof says that all do the same; a fault
        names the one that shows it. `dependents`: the next launch may begin before this one has
        ended; it is given this report as `after`.
        """
        started, deadline = time.monotonic(), deadline_of(seconds)
        grid_size, block_size = triple(grid, "grid"), triple(block, "block")
        for_ptx(check_machine(machine), "lanes", "sector_bytes")
        self._check_shape(machine, grid_size, block_size, shared_bytes)
        check_options(races, schedule, engine, cores, volatile, model)
        check_switches(check=check, benign=benign, counters=counters, prove=prove)
        check_shape(schedule, batch_threads, grid_size, block_size)
        others = None if explore is None else check_seconds(explore)
        check_proof(prove, races, check, engine)
        before = check_overlap(dependents, after, races, engine)
        if heap_bytes is not None:
            self.owner.heap.limit = heap_limit(heap_bytes)
        together = self._cluster(grid_size, cluster)
        with within(deadline, f"making the kernel '{self.name}' ready to run"):
            code, memory, symbols = self._ready(args)
            code = self._cut_code() if isinstance(schedule, str) else code
            asked = Asked(
                grid_size, block_size, memory, symbols, shared_bytes, check, races, benign,
                counters, deadline, schedule, together, batch_threads, volatile == "weak",
                machine.serving if counters else NVIDIA, prove, model,
                self.registers(prod(block_size)), dependents=dependents, after=before,
                at_once=self._at_once(machine, block_size, shared_bytes) if prove else 0,
            )  # fmt: skip
        with within(deadline, f"the launch of the kernel '{self.name}'"):
            report = self._judged(asked, code, engine, cores, others)
        report.seconds = time.monotonic() - started
        report.counted, report.races_checked = counters, bool(races)
        if not counters:
            report.drop_uncounted()
        return report

    def _judged(
        self, asked: Asked, code: Code, engine: EngineName, cores: int | None, others: float | None
    ) -> Report:
        """The run, its proof, and for so many seconds other schedules."""
        loops = FlagLoops(code, Spins(code)) if asked.prove else None
        asked = asked if loops is None else replace(asked, loops=loops.found)
        start = None if others is None else Kept(asked.memory)
        engine = "numpy" if asked.prove or asked.overlaps else engine
        try:
            report = self._run(asked, code, engine, cores)
        except DeadlockError as error:
            if asked.prove:
                self._tell_passed(error, code)
            raise
        report.kernel = demangled(self.name)
        report.fidelity = fidelity(self._executed(report), overlaps=asked.overlaps)
        if asked.prove:
            report.proof = self._proof(asked, code, report, loops)
        if start is not None and self.owner.heap.was_used:
            raise DeviceError(
                "other schedules of a kernel that takes memory by malloc are not run",
                advice="leave explore out",
            )
        if start is not None and others and not report.races and not _is_proved(report):
            report.explored = self._explored(asked, start, others)
        return report

    def _explored(self, asked: Asked, start: Kept, seconds: float) -> Explored:
        """Other schedules from the same memory, which is afterwards as the launch left it."""
        end, code = Kept(asked.memory), self._cut_code()
        races = bool(asked.races)

        def run(holds: tuple[Hold, ...], until: float) -> Attempt:
            start.restore()
            latest = until if asked.deadline is None else min(until, asked.deadline)
            other = replace(
                asked, schedule=text_of(holds), races=races, counters=False, prove=False,
                deadline=latest, loops={},
            )  # fmt: skip
            self._judge.run(other, code, start)
            return Attempt(self._judge.events, Kept(asked.memory).digest())

        try:
            return explored(run, seconds)
        finally:
            end.restore()

    def _cut_code(self) -> Code:
        """The kernel with a block for each event, so that a schedule may come between them."""
        key = f"{self.name}, by events"
        if key not in self._codes:
            code = compile_function(
                self.owner.module, self.function, self._shared, self._call, cut=True
            )
            self._codes[key] = self.function, code
        return self._codes[key][1]

    def _proof(self, asked: Asked, code: Code, report: Report, loops: FlagLoops | None) -> Proof:
        found = Evidence(
            code, self._judge.skeletons, bool(report.races), asked.benign, asked.registers, loops,
            asked.after is not None, asked.dependents, self._judge.undecided, self._judge.unused,
            self._judge.chance, asked, self._judge.relied,
        )  # fmt: skip
        return verdict(found)

    def _tell_passed(self, error: DeadlockError, code: Code) -> None:
        """Waits that a no lets pass, too: threads that did not wait may be why others do so now."""
        for each in passed_unasked(code):
            where = "" if each.span is None else f" at {self.owner.places.words(each.span)}"
            error.advice += f"; the wait{where} may be passed without a yes"

    def _executed(self, report: Report) -> Iterator[Instruction]:
        """The instructions that some thread came to. Compiled code knows their opcodes alone, so
        that of these all are given."""
        if report.engine != "numpy":
            yield from (i for i in self.function.instructions() if i.opcode in report.mix)
            return
        for _, code in self._codes.values():
            for block, times in zip(code.blocks, code.executed, strict=True):
                if times:
                    yield from (each.instruction for each in block.passages)

    def _run(self, asked: Asked, code: Code, engine: EngineName, cores: int | None) -> Report:
        """By the engine that was asked for.

        "auto" compiles at once what has many threads, and what turns out to be long work. What
        cannot be compiled as a whole is run in pieces.
        """
        notes = Notes(asked.counters, bool(asked.races))
        # What took from the heap cannot be run again; a schedule parts the lanes of every warp.
        may_change = asked.schedule is None and not self.owner.heap.was_used and engine != "numpy"
        whole = may_change and asked.cluster == (1, 1, 1) and self.fast.is_open(engine, notes)
        at_once = engine == "c" or (whole and self.fast.is_worth_it(asked.threads, engine, notes))
        may_switch = may_change and not at_once and writable_bytes(asked.memory) <= MOST_COPIED
        again = may_switch or (not self.owner.heap.was_used and asked.races and asked.benign)
        before = Kept(asked.memory if again else Memory())
        if may_switch:
            work = Work(much_work(notes), lambda: self._may_compile(code, whole))
            try:
                return self._judge.run(asked, code, before, work)
            except TooMuch:
                before.restore()
        if whole and (at_once or may_switch):
            job = Job(
                asked.grid, asked.block, asked.memory, asked.symbols,
                self._static_shared + asked.shared_bytes, asked.shared_bytes, code.local_size,
                asked.check, asked.deadline, asked.serving, cores,
            )  # fmt: skip
            report = self._compiled(asked, code, job, notes)
            if report is not None:
                return report
        if may_change and (engine == "c" or may_switch):
            pieces = self.fast.in_pieces(code, asked.deadline)
            if pieces is not None:
                compiled = replace(asked, arithmetic=pieces.arithmetic)
                report = self._judge.run(compiled, pieces.code, before)
                report.in_pieces = True
                return report
        return self._judge.run(asked, code, before)

    def _compiled(self, asked: Asked, code: Code, job: Job, notes: Notes) -> Report | None:
        """As compiled code, which does not notice a deadlock: what waits for long, the evaluator
        looks at for a while. None where it must be left to the evaluator."""
        report = Report(grid=asked.grid, threads=prod(asked.block), serving=asked.serving)
        soon = time.monotonic() + FIRST_SLICE
        spins = code.may_spin and writable_bytes(asked.memory) <= MOST_COPIED
        if spins and (asked.deadline is None or soon < asked.deadline):
            try:
                done = self.fast.run(job, report, code.locals, notes, FIRST_SLICE)
                return report if done else None
            except LimitError:
                kept = Kept(asked.memory)
            until = time.monotonic() + LOOKED_AT
            until = until if asked.deadline is None else min(until, asked.deadline)
            try:
                return self._judge.run(replace(asked, deadline=until), code, kept)
            except LimitError:
                kept.restore()
        return report if self.fast.run(job, report, code.locals, notes) else None

    def _may_compile(self, code: Code, whole: bool) -> bool:
        if self.owner.heap.was_used:
            return False
        return (whole and not self.fast.judged(code.locals)) or self.fast.gains_by_pieces(code)

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
        symbols |= add_workspace(self._asked_of_driver, memory)
        return found[1], memory, symbols

    def _cluster(self, grid: Triple, asked: int | Sequence[int] | None) -> Triple:
        """How many blocks are one cluster, by the kernel or by the launch; checked as a driver."""
        found: Triple | None = None if asked is None else triple(asked, "cluster")
        given = {each.name: each for each in self.function.directives}
        if (required := given.get("reqnctapercluster")) is not None:
            sizes = [int(word) for word in required.words if word.isdigit()]
            written = triple(sizes or [1], "cluster")
            if found not in (None, written):
                raise DeviceError(
                    f"the kernel is made for clusters of {written} blocks",
                    self.owner.module.span(required),
                )
            found = written
        elif found is None and (open_ := given.get("explicitcluster")) is not None:
            raise DeviceError(
                "the kernel needs a cluster size at its launch",
                self.owner.module.span(open_), "give cluster=…",
            )  # fmt: skip
        found = found or (1, 1, 1)
        if any(side % part for side, part in zip(grid, found, strict=True)):
            raise DeviceError(f"a grid of {grid} is not made of clusters of {found}")
        bound, most = given.get("maxclusterrank"), CUDA.cluster_blocks
        span = None if bound is None else self.owner.module.span(bound)
        for word in bound.words if bound is not None else ():
            most = min(most, int(word)) if word.isdigit() else most
        if prod(found) > most:
            raise DeviceError(f"{prod(found)} blocks in a cluster; at most {most}", span)
        return found

    def registers(self, threads: int) -> int | None:
        """What a thread starts with, as an assembler gives it where the kernel bounds threads."""
        return registers_of(self.function, threads)

    def _at_once(self, machine: Machine, block: Triple, shared_bytes: int) -> int:
        shared = self._static_shared + shared_bytes
        return blocks_at_once(machine, block, shared, self.registers(prod(block)))

    def _check_shape(
        self, machine: Machine, grid: Triple, block: Triple, shared_bytes: int
    ) -> None:
        threads, most = prod(block), machine.block_threads
        if threads > most:
            raise DeviceError(f"{threads} threads in a block; at most {most} are possible")
        for what, shape, sides in (
            ("block", block, machine.block_sides), ("grid", grid, machine.grid_sides),
        ):  # fmt: skip
            if any(size > side for size, side in zip(shape, sides, strict=True)):
                raise DeviceError(f"a {what} of {shape}; at most {sides} is possible")
        self._check_shared(machine, shared_bytes)
        if self._asked_of_driver - {RESERVED}:
            check_together(machine, grid, self._at_once(machine, block, shared_bytes))
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

    def _check_shared(self, machine: Machine, dynamic: int) -> None:
        """As ptxas refuses what is declared, and a driver what a launch asks for beside it."""
        if not isinstance(dynamic, int | np.integer) or isinstance(dynamic, bool):
            raise DeviceError(f"{dynamic!r} bytes of shared memory", advice="give a whole number")
        if dynamic < 0:
            raise DeviceError("shared_bytes is negative")
        declared = self._static_shared - reserved_bytes(self._asked_of_driver)
        most = machine.shared_bytes_most
        if declared > machine.shared_bytes:
            raise DeviceError(
                f"{declared} bytes of shared memory are declared, {machine.shared_bytes} at most",
                self.owner.module.span(self.function),
                "what is more is given at the launch, to an .extern .shared array",
            )
        if declared + dynamic > most:
            beside = f" beside the {declared} that are declared" if declared else ""
            raise DeviceError(
                f"{dynamic} bytes of dynamic shared memory{beside}; a block has at most {most}"
            )

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


__all__ = ["Kernel", "LoadedModule", "Report", "WarploomError", "load"]
