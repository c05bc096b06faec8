"""A lower bound on the time of every implementation that a candidate still stands for.

In come candidates; out goes a number of nanoseconds for each, the largest of several terms, each of
which holds by itself: how long the whole machine takes for what has to be issued, computed, loaded
and stored, and how long one thread takes for its own iterations, as often as blocks have to take
turns. What is open is taken to be as good as it can be. `explain` says which term it is, and why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warploom.kernel.tensor import COLUMNS, DEPTH, ROWS
from warploom.loopnest import ir
from warploom.loopnest.cse import anew, idle, repeated
from warploom.loopnest.must_facts import SLACK, Facts, MustFacts, Use
from warploom.loopnest.sector import Neighbours, loaded_share, touched_by
from warploom.loopnest.space import NestSpace
from warploom.loopnest.tile import products
from warploom.machine.rates import Rates
from warploom.search.branching.candidate import Candidates, Flags, Index, Numbers

# Sums of logarithms come out a little too large or too small; a bound errs on the small side.
ROUNDING = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Reason:
    """One term of the bound of one candidate."""

    nanoseconds: float
    resource: str
    why: str

    def __str__(self) -> str:
        return f"{self.nanoseconds / 1e6:.4g} ms by {self.resource}: {self.why}"


@dataclass(frozen=True, slots=True, eq=False)
class Needed:
    """`dims` [rows, instructions, dims] are those of an instruction and of who uses its result;
    `threads` [rows, instructions] how many of a block do it at least, in whole warps."""

    dims: Flags
    threads: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """The store and the load of a temporary array, `pairs` of their dimensions and where it is
    decided how threads are mapped to both; `elsewhere` are dimensions of axes that it has not."""

    put: int
    get: int
    pairs: Index
    elsewhere: Flags


class Bound:
    """Called with candidates, it gives the bound of each in nanoseconds."""

    def __init__(self, space: NestSpace, rates: Rates) -> None:
        self.space, self.rates = space, rates
        self.facts = Facts(space)
        self.lanes = space.target.machine.lanes
        target = space.target
        self.threaded = target.threaded
        self.widened = (*target.vectors, *(kind for kind in target.threaded if kind == "DEAL"))
        insts = self.facts.insts
        self.issue = np.array([self._cost(inst)[0] for inst in insts])
        self.alu = np.array([self._cost(inst)[1] for inst in insts])
        self.latency = np.array([self._latency(inst) for inst in insts])
        self.is_load = np.array([_surely_loads(i) for i in insts])
        self.is_store = np.array([isinstance(i.action, ir.Store) for i in insts])
        self.is_shared = np.array([isinstance(i.action, ir.Put | ir.Get) for i in insts])
        self.moves = self.is_load | self.is_store
        self.writes = np.array([isinstance(i.action, ir.Store | ir.Put) for i in insts])
        self.puts = self._puts()
        self.sums = self._sums()
        self.uses = self._uses()
        self.handed, self.mapped = self._handing(), np.uint64(space.threads.bits(["MAPPED"]))
        shares = np.array([_share_of(inst) for inst in insts])
        self.always = shares == 1  # whatever the block and the thread
        self.elements = np.array([math.prod(float(a.size) for a in i.axes) for i in insts]) * shares
        self.anew = anew(insts, self.facts.dims) if rates.hoists else self.facts.own
        self.unrolled = rates.unrolled if rates.hoists else 0
        self.busy = ~(idle(insts, self.facts.dims) & rates.hoists)
        self.overlaps = (self.anew != self.facts.own).any(axis=1)
        self.again = repeated(insts) & rates.hoists
        # Integers may be added in any order, and compilers do.
        folds = [i.running is not None and (i.dtype.is_float or not rates.hoists) for i in insts]
        self.chains = np.array(folds) & ~self.again
        sector = space.target.machine.sector_bytes
        self.near = Neighbours(self.facts, sector)
        self.in_line = Neighbours(self.facts, rates.line_bytes) if rates.line_bytes else None
        self.sectors_read, self.dram = touched_by(insts, sector, rates.l2_bytes)
        tensor = tuple(kind for kind in target.kinds if kind == "TENSOR")
        self.shared_out = (
            *target.threaded,
            *tensor,
        )  # whose iterations are done by several threads
        self.depth = DEPTH[target.tensor or "tf32"]
        # Of twice as many factors as deep a product takes as long.
        self.at_once = rates.tensor * self.depth / DEPTH["tf32"]
        made = [each.fold for each in products(space.program)] if tensor else []
        self.multiplies = np.array([inst in made for inst in self.facts.whole])

    def __call__(self, candidates: Candidates) -> Numbers:
        if not len(candidates):
            return np.zeros(0)
        return self.terms(candidates).whole

    # -- costs -------------------------------------------------------------------------------------

    def _cost(self, inst: ir.Instruction) -> tuple[float, float]:
        match inst.action:
            case ir.Compute("move" | "choose", _):
                return 0.0, 0.0  # a compiler may do without, or have it as a part of others
            case ir.Compute("*", (ir.Constant(-1), _) | (_, ir.Constant(-1))) if self.rates.hoists:
                return 0.0, 0.0  # a sign, too
            case ir.Compute("neg" | "abs", _) if self.rates.hoists:
                return 0.0, 0.0  # a sign is part of who uses it
            case ir.Compute(_, operands) if self._is_gathered(inst, operands):
                return 0.0, 0.0
            case ir.Compute(op, operands):
                if op == "/" and isinstance(operands[1], ir.Constant) and self.rates.hoists:
                    op = "*"  # by what is one over it
                cost = self.rates.cost(op, inst.dtype.is_float)
                # One instruction adds three integers, multiplies and adds, or does two bits of
                # logic.
                both = 2 if self.rates.hoists and not inst.dtype.is_float else 1
                return cost.issue / both, cost.alu / both
            case ir.Scan():
                return 0.0, 0.0  # of what a compiler knows it may have a short form
            case ir.Load(access) if access.named:
                return 0.0, 0.0  # data may name nothing, and then it may be left out
            case ir.Load(access):
                return loaded_share(access), 0.0
            case _:
                return 1.0, 0.0

    def _is_gathered(self, inst: ir.Instruction, operands: Sequence[ir.Operand]) -> bool:
        """Integers that are parameters a compiler may put together before it begins."""
        given = any(isinstance(each, ir.Parameter) for each in operands)
        return given and self.rates.hoists and not inst.dtype.is_float

    def _latency(self, inst: ir.Instruction) -> float:
        """Nanoseconds until the result is there for whoever uses it in the same iteration."""
        match inst.action:
            case ir.Load(access) if not access.named and access.where is None:
                return self.rates.nanoseconds(self.rates.load_latency)
            case ir.Get():
                return self.rates.nanoseconds(self.rates.shared_latency)
            case ir.Compute(op, _) if inst.running is not None:
                return self.rates.nanoseconds(self.rates.cost(op, inst.dtype.is_float).latency)
            case _:
                return 0.0

    def _puts(self) -> Index:
        """The instruction that fills each temporary array."""
        program = self.space.program
        return np.array([self.facts.last(t.put) for t in program.temporaries], np.int64)

    def _sums(self) -> list[tuple[int, int]]:
        """Folds, and where the registers of each are counted."""
        space, insts = self.space, self.facts.insts
        if not any(inst.running is not None for inst in insts):
            return []
        columns = space.propagator.columns(space.result_registers)
        numbers = space.propagator.layout.counters.objects[space.result_registers][:, 0].tolist()
        column = dict(zip(numbers, range(columns.start, columns.stop), strict=True))
        whole = self.facts.whole
        found = [
            (at, space.space.numbering[whole[at]])
            for at, i in enumerate(insts)
            if i.running is not None
        ]
        return [(at, column[number]) for at, number in found if number in column]

    def _handing(self) -> list[Handed]:
        space, found = self.space, []
        start = space.propagator.columns(space.threads).start
        mapping = {pair: start + at for at, pair in enumerate(space.threads.instances)}
        for each in space.program.temporaries:
            pairs = [(a, b, mapping.get((a, b), mapping.get((b, a)))) for a, b in each.pairs]
            rows = [(self.facts.number[a], self.facts.number[b], at) for a, b, at in pairs]
            at = self.facts.last(each.put), self.facts.last(each.get)
            elsewhere = np.array([dim.axis not in each.put.axes for dim in self.facts.dims])
            found.append(Handed(*at, np.array(rows, np.int64).reshape(-1, 3), elsewhere))
        return found

    def _uses(self) -> list[tuple[int, int, Use]]:
        """Who uses whose result in a register, and when; the last who uses something first."""
        at = {inst: self.facts.last(inst) for inst in self.space.insts}
        stored, used = list[tuple[int, int, Use]](), list[tuple[int, int, Use]]()
        for number, inst in enumerate(self.facts.whole):
            if number != at[inst]:  # the pieces before it are its own
                used.append((number, at[inst], None))
        for each in self.space.program.communications:
            first, last, made = at[each.producer], at[each.consumer], each.temporary
            if made is None:
                used.append((first, last, None))
                continue
            put, get = at[made.put], at[made.get]
            stored.append((first, put, (put, True)))
            used += [(first, last, (put, False)), (get, last, (put, True))]
        return stored + sorted(used, key=lambda use: -use[1])

    def _passed(self, known: MustFacts) -> Flags:
        """[rows, instructions]: stores that an asynchronous copy may do on its way."""
        found = np.zeros(known.active.shape, np.bool_)
        if "COPY" in self.space.target.fills and len(self.puts):
            found[:, self.puts] = known.may_be(self.space.fill, "COPY")
        return found

    def _deep(self, known: MustFacts) -> Flags:
        """[rows, dims]: what may be a tile of tensor cores."""
        if not self.multiplies.any():
            return np.zeros(known.kinds.shape, np.bool_)
        return known.maybe("TENSOR")

    def _on_tensor_cores(self, known: MustFacts) -> Flags:
        """[rows, instructions]: products that tensor cores may do."""
        found: Flags = self.multiplies & (self.facts.over & self._deep(known)[:, None]).any(axis=2)
        return found

    # -- terms -------------------------------------------------------------------------------------

    def terms(self, candidates: Candidates) -> Terms:
        known = MustFacts(self.facts, candidates)
        needed = self._needed(known)
        around = self._repeated(known, needed)
        # What is beyond the end of an axis is not done, nor by a warp that has nothing else.
        within = np.where(known.within < 1, known.within / 2, 1.0)[:, None]
        work = self._work(known, around, needed)
        work = {name: each if name == "dram" else each * within for name, each in work.items()}
        low, high = self._blocks(known)
        device = {name: self._device(name, amount, high) for name, amount in work.items()}
        room = self._room(known)
        waves = np.ceil(low * ROUNDING / room)
        one = self._blocks_times(known, around, needed, ("LOOP",))
        every = self._blocks_times(known, around, needed, ("LOOP", "BLOCK"))
        blocks = {
            name: within * _larger(name, one[name] * waves[:, None], every[name] / room[:, None])
            for name in one
        }
        return Terms(work, device, blocks)

    def _repeated(self, known: MustFacts, needed: Needed) -> Flags:
        """[rows, instructions, dims]: dimensions in every iteration of which an instruction is
        done.

        What is the same in every iteration a compiler may do once, but not across blocks or threads
        that need it, nor for all that a long loop inside computes.
        """
        if not self.rates.hoists:
            return known.around
        apart = needed.dims & known.surely(*self.threaded)[:, None]
        outside = known.outside(self.unrolled)  # blocks among them
        outside &= ~known.maybe(*self.threaded)[:, None]
        return known.around & self.busy & (self.anew | outside | apart)

    def _needed(self, known: MustFacts) -> Needed:
        """By whom. What one thread alone stores a compiler may let it alone load and compute: of
        others only those do so who are meant to, or go on with the result in registers."""
        filled = self._filled(known)[:, None]
        if not self.rates.hoists:
            return Needed(self.facts.own, filled)
        dims = np.broadcast_to(self.facts.own, known.around.shape).copy()
        threads = known.least(dims & known.surely(*self.threaded)[:, None])
        for producer, consumer, there in self.uses:
            used = known.lowers(there)
            dims[:, producer] |= dims[:, consumer] & used[:, None]
            more = np.where(used, threads[:, consumer], 1.0)
            threads[:, producer] = np.maximum(threads[:, producer], more)
        whole = np.ceil(threads * ROUNDING / self.lanes) * self.lanes
        return Needed(dims, np.minimum(whole, filled))

    def _counted(self, known: MustFacts, needed: Needed) -> Flags:
        """[rows, instructions]: those that are surely there, and that no other does as well. What a
        thread has put into shared memory itself it may have in registers still."""
        found = known.active & ~self.again
        if self.rates.hoists:
            for each in self.handed:
                found[:, [each.put, each.get]] &= self._handed(known, needed, each)[:, None]
        return found

    def _handed(self, known: MustFacts, needed: Needed, way: Handed) -> Flags:
        """[rows]: whether some thread surely gets what another one put: one has another part of it,
        or several have the same, which only one of them put."""
        put, get, mapping = way.pairs.T
        plain = tuple(kind for kind in self.threaded if kind != "DEAL")
        threads, others = known.surely(*plain), ~known.maybe(*self.threaded)
        apart = known.candidates.domains[:, mapping] & self.mapped == 0
        apart &= threads[:, put] & threads[:, get]
        apart |= (threads[:, put] & others[:, get]) | (others[:, put] & threads[:, get])
        several = known.iterations > SLACK
        shared = needed.dims[:, way.get] & threads & several & way.elsewhere
        found: Flags = (apart & several[:, put]).any(axis=1) | shared.any(axis=1)
        return found

    def _work(self, known: MustFacts, around: Flags, needed: Needed) -> dict[str, Numbers]:
        """[rows, instructions] for each resource: what all threads together take at least.

        Of the lanes of a warp as many do something of their own as there are thread dimensions
        around the instruction. The others do the same again, but for stores, of which one is done.
        Iterations beyond the end of an axis count here, and are taken off by `terms`.
        """
        own, counted = self.facts.own, self._counted(known, needed)
        total = np.where(counted, known.least(around), 0.0)
        wide = known.greatest(own & known.maybe(*self.widened)[:, None])
        if self.rates.hoists:  # a compiler may put neighbours in shared memory together
            wide = np.where(self.is_shared, np.inf, wide)
        wide = np.clip(wide, 1, self.space.target.vector[1])
        threads = known.greatest(around & known.maybe(*self.shared_out)[:, None])
        filled = needed.threads
        slots = total / wide * np.maximum(1.0, filled / threads)
        slots = np.where(self._passed(known), 0.0, slots)
        # Threads of others' dimensions leave a store to the first of them.
        done = around & (own | ~known.maybe(*self.threaded)[:, None])
        within = np.where(self.writes, known.least(done), total)
        within = np.where(self.moves, self.elements * known.least(around & ~own), within)
        within = np.where(self.overlaps, np.minimum(within, total), within)
        same = np.where(self.writes, np.minimum(filled, self.lanes), filled)
        among = known.greatest(done & known.maybe(*self.threaded)[:, None])
        each = np.maximum(1.0, same / np.where(self.writes, among, threads))
        asked = np.where(counted, within, 0.0) / wide * each
        # Lanes that want the same element are one request.
        alone = known.least(around & ~own & ~known.maybe(*self.threaded)[:, None])
        elements = np.where(self.moves & counted, self.elements * alone, 0.0)
        elements = np.where(self.overlaps, np.minimum(elements, total), elements)
        memory = self._memory(known, elements, asked / self.lanes)
        tensor = self._on_tensor_cores(known)
        issued = np.where(tensor, slots / (ROWS * COLUMNS * self.depth / self.lanes), slots)
        computed = np.where(tensor, slots / self.at_once, slots)
        return {"issue": issued * self.issue, "alu": computed * self.alu, **memory}

    def _memory(self, known: MustFacts, elements: Numbers, requests: Numbers) -> dict[str, Numbers]:
        """From the elements that are loaded and stored, and the requests of warps for them."""
        rates, nothing = self.rates, np.zeros_like(elements)
        sectors = elements / self.near.most(known)
        accesses = np.where(self.moves | self.is_shared, requests * self.lanes, 0.0)
        accesses = np.where(self._passed(known), 0.0, accesses)
        reads, lines = nothing, nothing
        if not rates.cached:
            reads = np.where(self.is_load, np.maximum(sectors, requests), 0.0)
        if self.in_line is not None:
            lines = elements / self.in_line.most(known)
            lines = np.where(self.moves, np.maximum(lines, requests), 0.0)
            accesses = np.maximum(accesses, lines * self.lanes)
        row = self.lanes * self.space.target.machine.bank_bytes
        return {
            "access": accesses,
            "lines": np.where(self.is_load, lines, 0.0),
            "l2_read": np.maximum(reads, self.sectors_read),
            "l2_store": np.where(self.is_store, sectors, 0.0),
            "shared": np.where(self.is_shared, requests * row, 0.0),
            "dram": np.broadcast_to(self.dram, elements.shape),
        }

    def _blocks(self, known: MustFacts) -> tuple[Numbers, Numbers]:
        """The least and the greatest number of blocks: they are dimensions of every store."""
        own = self.facts.own[self.is_store]
        low = known.least(own & known.surely("BLOCK")[:, None]).max(axis=1)
        high = known.greatest(own & known.maybe("BLOCK")[:, None]).min(axis=1)
        return low, high

    def _device(self, name: str, amount: Numbers, blocks: Numbers) -> Numbers:
        """Blocks run on one processor each."""
        processor = getattr(self.rates.processor, name)
        rate = np.minimum(getattr(self.rates.device, name), processor * np.ceil(blocks))
        found: Numbers = amount.sum(axis=1) / rate
        return found

    def _blocks_times(
        self, known: MustFacts, around: Flags, needed: Needed, kinds: tuple[str, ...]
    ) -> dict[str, Numbers]:
        """[rows, instructions]: how long a block takes by what each thread does one after the
        other: what it issues, the iterations of loops in which it waits for a load, folds that wait
        for themselves.

        With BLOCK among the kinds it is the time of all blocks together: whether a dimension makes
        blocks or is looped over, it multiplies.
        """
        rates, own = self.rates, self.facts.own
        iterations = known.least(around & known.surely(*kinds, "UNROLL")[:, None])
        counted = self._counted(known, needed) & ~self._passed(known) & self.always
        iterations = np.where(counted, iterations, 0.0)
        sums = np.where(self._on_tensor_cores(known), ROWS * COLUMNS / self.lanes, 1.0)
        issued = iterations / sums * self.issue  # a thread has several of one product
        accessed = np.where(self.moves | self.is_shared, iterations, 0.0)
        loops = around & known.surely(*kinds)[:, None] & (own | known.outside(self.unrolled))
        waits = np.maximum(rates.nanoseconds(rates.iteration.latency), self.latency) / rates.overlap
        looped = known.least(loops)
        looped = np.where(self._counted(known, needed) & (looped > 1), looped * waits, 0.0)
        in_order = known.surely("LOOP", "UNROLL")[:, None]  # others may be threads
        chain = known.least(around & self.facts.over & in_order & ~self._deep(known)[:, None])
        others = known.least(loops & ~self.facts.over)
        chained = np.where(self.chains, chain * np.maximum(1, others / rates.overlap), 0.0)
        return {
            "issue of a thread": issued / rates.thread.issue,
            "issue of a block": issued * needed.threads / rates.processor.issue,
            "accesses of a thread": accessed / rates.thread.access,
            "iterations of a loop": looped,
            "a fold": chained * self.latency,
        }

    def _filled(self, known: MustFacts) -> Numbers:
        """The least number of threads of a block, its last warp filled up."""
        threads = np.maximum(known.low(self.space.num_threads), 1)
        found: Numbers = np.ceil(threads / self.lanes) * self.lanes
        return found

    def _room(self, known: MustFacts) -> Numbers:
        """How many blocks the machine has room for at a time, at most."""
        rates, space = self.rates, self.space
        threads = np.maximum(known.low(space.num_threads), 1)
        room = np.minimum(rates.processor_blocks, rates.processor_threads // threads)
        shared = np.maximum(known.low(space.shared_mem_used), 1)
        room = np.minimum(room, rates.processor_shared // shared)
        registers = self._registers(known) * threads
        room = np.maximum(1, np.minimum(room, rates.processor_registers // registers))
        found: Numbers = room * rates.processors
        return found

    def _registers(self, known: MustFacts) -> Numbers:
        """How many a thread has at least. A compiler has what is not needed at once in the same
        ones, so only the sums of one fold count, while a loop goes on that is not undone."""
        space, most = self.space, self.space.target.machine.thread_registers
        counted = known.low(space.registers)
        if self.rates.hoists:
            counted = np.ones(len(counted))
            loops = self.facts.over & known.surely("LOOP")[:, None]
            iterations = known.least(loops)
            for at, column in self.sums:
                own = known.candidates.low[:, column]
                long = loops[:, at].any(axis=1) & (iterations[:, at] * own > self.unrolled)
                counted = np.maximum(counted, np.where(long & ~self.again[at], own, 1))
        found: Numbers = np.clip(counted, 1, most)  # the others are spilled
        return found

    # -- in words ----------------------------------------------------------------------------------

    def explain(self, candidates: Candidates, row: int = 0) -> list[Reason]:
        """The terms of one candidate, the largest first: the first is its bound."""
        one = candidates.take(slice(row, row + 1))
        terms, known = self.terms(one), MustFacts(self.facts, one)
        found = [
            Reason(float(time[0]), name, self._shares(terms.work[name][0], name))
            for name, time in terms.device.items()
        ]
        found += [
            Reason(float(terms.block(name)[0]), name, self._loops(known, name, terms.blocks[name]))
            for name in terms.blocks
        ]
        return sorted(found, key=lambda reason: -reason.nanoseconds)

    def _shares(self, amounts: Numbers, name: str) -> str:
        if name == "dram":
            return f"{float(amounts.sum()):.4g} bytes are beyond what the L2 holds"
        order = np.argsort(-amounts)[:3]
        parts = [
            f"{_counted(amounts[at])} by {self.facts.insts[at]}" for at in order if amounts[at] > 0
        ]
        return ", ".join(parts) or "nothing"

    def _loops(self, known: MustFacts, name: str, times: Numbers) -> str:
        """Which instruction it is, and the loops that are surely around it."""
        at = int(np.argmax(times[0]))
        if times[0, at] <= 0:
            return "nothing"
        kinds = ("LOOP",) if name in ("iterations of a loop", "a fold") else ("LOOP", "UNROLL")
        again = self._repeated(known, self._needed(known))
        around = (again & known.surely(*kinds)[:, None])[0, at]
        loops = [str(dim) for dim, inside in zip(self.facts.dims, around, strict=True) if inside]
        where = f" in {', '.join(loops)}" if loops else ""
        return f"{self.facts.insts[at]}{where}; assumes waves of blocks when not all fit"


def _share_of(inst: ir.Instruction) -> float:
    return loaded_share(inst.action.access) if isinstance(inst.action, ir.Load) else 1.0


def _surely_loads(inst: ir.Instruction) -> bool:
    """Data may name nothing: then nothing is loaded."""
    return isinstance(inst.action, ir.Load) and not inst.action.access.named


# Of what threads do one after another, the terms that add up over instructions.
SUMMED = ("issue of a thread", "issue of a block", "accesses of a thread")


def _larger(name: str, first: Numbers, second: Numbers) -> Numbers:
    """Both hold, [rows, instructions]: of sums the larger sum, not the sum of what is larger."""
    if name not in SUMMED:
        return np.maximum(first, second)
    return np.where((first.sum(axis=1) >= second.sum(axis=1))[:, None], first, second)


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """`work` is by resource and instruction; `device` are the times that the whole machine takes
    for it; `blocks`, by instruction, those that blocks take one after another."""

    work: dict[str, Numbers]
    device: dict[str, Numbers]
    blocks: dict[str, Numbers]

    def block(self, name: str) -> Numbers:
        times = self.blocks[name]
        found: Numbers = times.sum(axis=1) if name in SUMMED else times.max(axis=1)
        return found

    @property
    def whole(self) -> Numbers:
        times = [*self.device.values(), *map(self.block, self.blocks)]
        found: Numbers = np.maximum.reduce(times)
        return found * ROUNDING


def _counted(amount: float) -> str:
    """Digits as long as a person reads them."""
    return f"{amount:.0f}" if amount == round(amount) and amount < 1e7 else f"{amount:.4g}"
