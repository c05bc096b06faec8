"""Statements of Hopper as CUDA: who fills and who consumes, and what they wait for.

    ring over k, 4 stages       fills, by one thread            all others
      fill a, b                 wait until the stage is empty   wait until the stage is full
      products                  say how many bytes come         products, as one group
                                copy                            all but the last group done:
                                                                the stage before is empty

Outer loops are printed twice, for both. A stage has two barriers in shared memory, behind all
arrays; counters of stages go on from ring to ring, and a phase turns when they begin again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from warploom.emit.cluster_sum import ClusterSumPrinter, arriving, sum_barrier
from warploom.emit.under_way import PLAIN, Group, at_once, needed, products_in
from warploom.emit.words import WordPrinter
from warploom.errors import EmitError
from warploom.index.ir import Const, Var, variables
from warploom.index.ranges import Ranges
from warploom.kernel import ir
from warploom.kernel.check_hopper import REGISTER_FILE
from warploom.kernel.pool import (
    BARRIER_BYTES,
    barriers_at,
    rings_of,
    turn_barrier_at,
)
from warploom.kernel.roles import filling
from warploom.kernel.traverse import exprs_of
from warploom.kernel.warpgroup import GROUP, Fill, Hopper, Ring

if TYPE_CHECKING:
    from warploom.emit.cuda import CudaPrinter

# Statements without parts, which each thread, warp or cluster does where it comes to them.
Moved: TypeAlias = (
    ir.LoadMatrix
    | ir.StoreMatrix
    | ir.BulkStore
    | ir.ClusterSum
    | ir.Unpack
    | ir.Interleave
    | ir.SharedSum
)

_OWN = f"(int)threadIdx.x / {GROUP}"  # the number of a thread's warp group
# The barriers at which they meet, and each warp group of them, and where each waits for its turn.
CONSUMERS, GROUPS, TURNS = 1, 2, 10


class Pipeline(WordPrinter):
    """Prints for a printer of CUDA."""

    def __init__(self, printer: CudaPrinter) -> None:
        super().__init__(printer)
        kernel = printer.kernel
        self.maps = {each.name: each for each in kernel.maps}
        self.barriers = barriers_at(kernel)
        self.rings = rings_of(kernel)
        stmts = list(ir.walk(kernel.body))
        fresh = self.fresh
        self.phases = {each.stage: fresh.name(f"{each.stage}_phase") for each in self.rings}
        self.lasts = {each.stage: fresh.name(f"{each.stage}_before") for each in self.rings}
        sent = [each for each in ir.walk(kernel.body) if isinstance(each, ir.BulkStore)]
        self.sent = {each.array: each.scope for each in sent}
        turns = [each for each in stmts if isinstance(each, ir.PingPong)]
        self.taken = {id(e) for turn in turns for e in turn.body if isinstance(e, Ring)}
        self.ordered_turns = bool(self.taken)
        self.groups = kernel.threads // GROUP
        self.passes = self.groups > 1 and any(isinstance(each, ir.OrderedBarrier) for each in stmts)
        self.sum = next((each for each in stmts if isinstance(each, ir.ClusterSum)), None)
        # Then other blocks are waited for where something is sent to them.
        self.begins_late = self.sum is not None and not any(map(self.shared_by_cluster, self.rings))
        self.under_way: list[Group] = []
        self.whose = fresh.name("whose")
        self.last_of_turn: Ring | None = None
        self.summed = False  # without a wait for those who read
        self.met = False  # since the last statement that is no box
        self.covered = False  # by a wait before a statement around
        self.uses_base = bool(self.rings or sent or self.sum) or any(
            isinstance(each, ir.LoadMatrix | ir.StoreMatrix | ir.SharedSum)
            for each in ir.walk(kernel.body)
        )

    def by_address(self, array: str) -> bool:
        """Whether a shared array is never named in the text, only the address of its elements."""
        stmts = list(ir.walk(self.kernel.body))
        named = {each.array for each in stmts if isinstance(each, ir.Load | ir.Store)}
        return self.uses_base and array not in named

    def barrier_of(self, ring: Ring, empty: bool, stage: str) -> str:
        first = self.barriers[ring.stage] + (BARRIER_BYTES * ring.stages if empty else 0)
        return f"{self.base} + {first} + {BARRIER_BYTES} * {stage}"

    def shared_by_cluster(self, ring: Ring) -> bool:
        return any(each.split is not None for each in ring.fills)

    # -- the whole

    def end(self) -> None:
        """Other blocks have read what they add up."""
        if self.summed:
            self.call("cluster_wait")
        self.summed = False

    def begin(self) -> None:
        if self.uses_base:
            address = "(unsigned int)__cvta_generic_to_shared(pool)"
            self.add(f"const unsigned int {self.base} = {address};")
        if self.sum is not None and self.kernel.roles is None:
            self._barriers()
            self.call("cluster_arrive_begun")

    def roles(self, body: tuple[ir.Stmt, ...]) -> None:
        """Both roles, side by side."""
        roles, lines = self.kernel.roles, self.printer.lines
        assert roles is not None
        declared = tuple(each for each in body if isinstance(each, ir.Shared))
        self.printer.in_order(declared)
        rest = tuple(each for each in body if not isinstance(each, ir.Shared))
        threads, bounds = self.kernel.threads, dict(self.printer.bounds)
        lines.open(f"if ((int)threadIdx.x == {threads})")
        for map in self.kernel.maps:
            self.call("prefetch", f"&{map.name}")
        lines.close()
        self._barriers()
        lines.open(f"if ((int)threadIdx.x >= {threads})")
        self._registers("dec", roles.producer_registers)
        lines.open(f"if ((int)threadIdx.x == {threads})")
        self._counters(False)
        self.produced(filling(rest))
        lines.close()
        if self.kernel.cluster > 1:
            self.add("__syncwarp();")
            self.call("cluster_meet")
        lines.close("} else {")
        lines.depth += 1
        self.printer.bounds.clear()
        self.printer.bounds.update(bounds)
        self._registers("inc", roles.consumer_registers)
        self._counters(True)
        if self.begins_late:
            self.call("cluster_arrive")
        begun = 0 if self.begins_late else self._last_ring(rest)
        self.printer.in_order(rest[:begun])
        if self.kernel.cluster > 1 and not self.begins_late:
            self.call("cluster_arrive")
        self.printer.in_order(rest[begun:])
        for scope in sorted(set(self.sent.values())):
            self._sent_are_read(scope)
        if self.kernel.cluster > 1 and not self.begins_late:
            self.call("cluster_wait")
        lines.close()

    def _last_ring(self, body: tuple[ir.Stmt, ...]) -> int:
        """After so many statements nothing of another block's is used any more, nor it by others
        once they came so far, too: they end when all did."""
        found = [at for at, stmt in enumerate(body)
                 if any(isinstance(each, Ring) for each in ir.walk((stmt,)))]  # fmt: skip
        return found[-1] + 1

    def _registers(self, way: str, count: int) -> None:
        """Given away, and taken, where a launch gives consumers less than they ask for."""
        roles = self.kernel.roles
        assert roles is not None
        if REGISTER_FILE // (self.kernel.threads + GROUP) < roles.consumer_registers:
            self.add(f'asm volatile("setmaxnreg.{way}.sync.aligned.u32 {count};");')

    def _counters(self, consumes: bool) -> None:
        for ring in self.rings:
            self.add(f"int {ring.stage} = 0;")
            self.add(f"unsigned int {self.phases[ring.stage]} = 0;")
            self.printer.bounds[ring.stage] = (0, ring.stages - 1)
        if self.passes and consumes:  # before the first turn of the first group
            self.printer.lines.open(f"if ({_OWN} == {self.groups - 1})")
            self._barrier("arrive", "0")
            self.printer.lines.close()
        if self.ordered_turns and consumes:
            self.add(f"int {self.whose} = 0;")
            # The first does not wait: a phase before the first one seems to be complete.
            self.add(f"unsigned int {self.whose}_phase = {_OWN} == 0;")

    def _barriers(self) -> None:
        lines = self.printer.lines
        lines.open("if (threadIdx.x == 0)")
        for ring in self.rings:
            lines.open(f"for (int i = 0; i < {ring.stages}; ++i)")
            self.call("barrier_begin", self.barrier_of(ring, False, "i"), "1")
            self.call("barrier_begin", self.barrier_of(ring, True, "i"), str(self._arrivals(ring)))
            lines.close()
        if self.ordered_turns:
            for group in range(self.kernel.threads // GROUP):
                self.call("barrier_begin", self._turn_barrier(str(group)), str(GROUP))
        if self.sum is not None:
            self.call("barrier_begin", sum_barrier(self), "1")
        self.asm("fence.mbarrier_init.release.cluster;")
        if self.sum is not None:
            bytes_ = arriving(self.sum, self.kernel.threads)
            self.call("expect", sum_barrier(self), self.index(bytes_))
        lines.close()
        if self.kernel.cluster > 1 and not self.begins_late:
            self.call("cluster_meet")
        elif self.kernel.roles is not None:
            self.add("__syncthreads();")

    def _arrivals(self, ring: Ring) -> int:
        """How often it is said of a stage that it is empty."""
        each = GROUP if self._only_products(ring) else self.kernel.warp_size
        blocks = self.kernel.cluster if self.shared_by_cluster(ring) else 1
        threads = GROUP if id(ring) in self.taken else self.kernel.threads
        return threads // each * blocks

    def meet(self, scope: str = "block") -> None:
        if scope == "block":
            self.asm(f"bar.sync {CONSUMERS}, {self.kernel.threads};")
        else:
            group = f"{GROUPS} + {_OWN}"
            self.add(f'asm volatile("bar.sync %0, {GROUP};" :: "r"({group}) : "memory");')

    # -- who fills

    def produced(self, body: tuple[ir.Stmt, ...]) -> None:
        """Loops, names and fills."""
        lines = self.printer.lines
        for stmt in body:
            match stmt:
                case ir.Let():
                    self.printer.statement(stmt)
                case ir.For():
                    self.printer.loop_head(stmt, stmt.start, stmt.stop)
                    self.produced(stmt.body)
                    lines.close()
                case ir.If(condition, then, otherwise):
                    lines.open(f"if ({self.printer.index(condition)})")
                    self.produced(then)
                    if otherwise:
                        lines.close("} else {")
                        lines.depth += 1
                        self.produced(otherwise)
                    lines.close()
                case Ring():
                    self._filled(stmt)
                case ir.PingPong():
                    self.produced(stmt.body)
                case _:
                    pass

    def _filled(self, ring: Ring) -> None:
        self.add("#pragma unroll 1")  # its registers are few
        self._head(ring)
        full = self.barrier_of(ring, False, ring.stage)
        self._wait(ring, True, f"{self.phases[ring.stage]} ^ 1")
        self.call("expect", full, str(sum(map(self._bytes, ring.fills))))
        for fill in ring.fills:
            self._copy(fill, full)
        self.produced(ring.rest)
        self._turn(ring)
        self.printer.lines.close()

    def _bytes(self, fill: Fill) -> int:
        boxes = 1 if fill.split is None else self.kernel.cluster
        return boxes * self.maps[fill.map].elements * self.shared[fill.array].dtype.bytes

    def _copy(self, fill: Fill, full: str) -> None:
        map, index, at = self.maps[fill.map], fill.index, list(fill.at)
        if fill.split is None:
            way, more = "in", tuple[str, ...]()
        else:
            rank = Var("block_x") % self.kernel.cluster
            index = index + rank * map.elements
            at[fill.split] = at[fill.split] + rank * map.box[fill.split]
            way, more = "in_all", (str((1 << self.kernel.cluster) - 1),)
        axes = [self.index(each) for each in reversed(at)]
        self.call(
            f"copy_{way}_{len(axes)}", self.place(fill.array, index), f"&{map.name}", *axes,
            full, *more,
        )  # fmt: skip

    # -- both

    def _head(self, ring: Ring) -> None:
        high = Ranges(self.printer.bounds).of(ring.count).high
        self.printer.bounds[ring.var] = (0, max(0, high - 1))
        kind = self.printer.indices.declared(ring.var, (0, max(0, high)))
        count = self.printer.index(ring.count)
        self.printer.lines.open(f"for ({kind} {ring.var} = 0; {ring.var} < {count}; ++{ring.var})")

    def _wait(self, ring: Ring, empty: bool, phase: str) -> None:
        name = "wait_cluster" if self.shared_by_cluster(ring) else "wait"
        self.call(name, self.barrier_of(ring, empty, ring.stage), phase)

    def _turn(self, ring: Ring) -> None:
        stage = ring.stage
        self.add(f"if (++{stage} == {ring.stages}) {stage} = 0, {self.phases[stage]} ^= 1;")

    # -- who consumes

    def statement(self, stmt: Hopper) -> None:
        match stmt:
            case Ring():
                begins = at_once(stmt) and id(stmt) not in self.taken
                (self._begun if begins else self._consumed)(stmt)
            case ir.PingPong():
                self._turn_of(stmt)
            case ir.OrderedBarrier():
                if self.passes:
                    self._passed(stmt.ends)
            case ir.WarpgroupProduct():
                raise EmitError(
                    f"a product that is summed in '{stmt.target.name}' stands beside other "
                    "statements in a loop or condition",
                    advice="let products of warp groups stand in loops of their own",
                )
            case Fill():
                pass  # by others
            case _:
                self._moved(stmt)

    def _moved(self, stmt: Moved) -> None:
        match stmt:
            case ir.LoadMatrix():
                self.load_matrix(stmt)
            case ir.StoreMatrix():
                self.store_matrix(stmt)
            case ir.BulkStore():
                self._send(stmt)
            case ir.ClusterSum():
                if self.begins_late:
                    self.call("cluster_wait")
                ClusterSumPrinter(self, stmt).printed()
            case Fill():
                pass  # by others
            case ir.Unpack():
                self.unpack(stmt)
            case ir.Interleave():
                self.interleave(stmt)
            case ir.SharedSum():
                self._shared_sum(stmt)
            case _:
                assert_never(stmt)

    def _turn_barrier(self, group: str) -> str:
        return f"{self.base} + {turn_barrier_at(self.kernel)} + {BARRIER_BYTES} * ({group})"

    def _passed(self, ends: bool) -> None:
        """A group waits until that before it passes its turn on; two groups come to a barrier."""
        own, kind = (f"({_OWN} + 1) % {self.groups}", "arrive") if ends else (_OWN, "sync")
        self._barrier(kind, own)

    def _barrier(self, kind: str, group: str) -> None:
        self.add(
            f'asm volatile("bar.{kind} %0, {2 * GROUP};" :: "r"({TURNS} + {group}) : "memory");'
        )

    def _turn_of(self, stmt: ir.PingPong) -> None:
        """A group waits until that before it has seen all of its stages: then a phase of theirs
        cannot be taken for the last but one. Stages that others use are counted."""
        lines, groups = self.printer.lines, self.kernel.threads // GROUP
        rings = [each for each in stmt.body if isinstance(each, Ring)]
        lines.open(f"if ({_OWN} == {self.whose})")
        if rings:
            self.call("wait", self._turn_barrier(_OWN), f"{self.whose}_phase")
            self.add(f"{self.whose}_phase ^= 1;")
            self.last_of_turn = rings[-1]
        self.printer.in_order(stmt.body)
        self.last_of_turn = None
        if rings:
            lines.close("} else {")
            lines.depth += 1
            for ring in rings:
                self._left_out(ring)
        lines.close()
        self.add(f"if (++{self.whose} == {groups}) {self.whose} = 0;")

    def _left_out(self, ring: Ring) -> None:
        """The stages of another group's ring."""
        stage, phase = ring.stage, self.phases[ring.stage]
        self.add(f"const int {stage}_after = {stage} + ({self.printer.index(ring.count)});")
        self.add(f"{stage} = {stage}_after % {ring.stages};")
        self.add(f"{phase} ^= {stage}_after / {ring.stages} & 1;")

    def _passed_on(self) -> None:
        """The turn goes to the next group."""
        groups = self.kernel.threads // GROUP
        self.call("arrive", self._turn_barrier(f"({_OWN} + 1) % {groups}"))

    def _only_products(self, ring: Ring) -> bool:
        """Whether stages are read by products alone, which end by themselves."""
        return all(isinstance(each, PLAIN) for each in ir.walk(ring.rest))

    # -- products that are under way while statements after them are printed

    def before(self, stmt: ir.Stmt) -> None:
        """Products that a statement needs the results of are waited for."""
        if self.under_way:
            self._finish(needed(self.under_way, stmt))

    def ended(self, already: int) -> None:
        """The end of a list of statements: what began in it ends in it."""
        if len(self.under_way) > already:
            self._finish(len(self.under_way))

    def _begun(self, ring: Ring) -> None:
        """The one iteration of a ring, whose products are waited for where they are used."""
        stage = self.fresh.name(self.lasts[ring.stage])
        self.add(f"const int {stage} = {ring.stage};")
        used = {
            name for each in ir.walk(ring.rest) for e in exprs_of(each) for name in variables(e)
        }
        if ring.var in used:
            self.add(f"const int {ring.var} = 0;")
        self.printer.bounds[ring.var] = (0, 0)
        self.around.append(ring)
        self._wait(ring, False, self.phases[ring.stage])
        words = self._started(ring.rest)
        self.around.pop()
        self._turn(ring)
        targets = {each.target.name: each.target for each in products_in(ring.rest)}
        self.under_way.append(Group(ring, stage, targets, words))

    def _finish(self, count: int) -> None:
        """The first so many groups of those under way; then their stages are empty. ptxas 13.0
        moves a wait above what is computed before it, but not above an event either."""
        if not count:
            return
        done, self.under_way = self.under_way[:count], self.under_way[count:]
        held = [each for group in done for each in self._held(group.targets, group.words)]
        wait = f"wgmma.wait_group.sync.aligned {len(self.under_way)};"
        self._pinned(f"pmevent 0; {wait} pmevent 0;", held)
        for group in done:
            self._released(group.ring, group.stage, "")

    def _consumed(self, ring: Ring) -> None:
        late = self._only_products(ring)
        stage, last = ring.stage, self.lasts[ring.stage]
        if late:
            self.add(f"int {last} = -1;")
        self._head(ring)
        self.around.append(ring)
        self._wait(ring, False, self.phases[stage])
        if late:
            self._group(ring.rest, 1)
            self._released(ring, last, f"{last} >= 0 && ")
            self.add(f"{last} = {stage};")
        else:
            self._mixed(ring.rest)
            self.add("__syncwarp();")
            self._released(ring, stage, "")
        self.around.pop()
        self._turn(ring)
        self.printer.lines.close()
        if ring is self.last_of_turn:
            self._passed_on()
        if late:
            self._awaited(0, list(products_in(ring.rest)))
            self._released(ring, last, f"{last} >= 0 && ")

    def _released(self, ring: Ring, stage: str, guard: str) -> None:
        """What products read, they have read when they are waited for."""
        plain = self._only_products(ring)
        each = GROUP if plain else self.kernel.warp_size
        own, bar = f"(int)threadIdx.x % {each}", self.barrier_of(ring, True, stage)
        prefix, way = self.printer.prefix, "read" if plain else "at"
        if self.shared_by_cluster(ring):
            blocks = self.kernel.cluster
            self.add(f"if ({guard}{own} < {blocks}) {prefix}arrive_{way}({bar}, {own});")
        else:
            self.add(f"if ({guard}{own} == 0) {prefix}arrive({bar});")

    def _mixed(self, body: tuple[ir.Stmt, ...]) -> None:
        """Products that stand together are a group, which is waited for."""
        group: list[ir.Stmt] = []
        already = len(self.under_way)
        for stmt in (*body, None):
            alone = stmt is not None and all(isinstance(e, PLAIN) for e in ir.walk((stmt,)))
            if stmt is not None and alone and (any(products_in((stmt,))) or group):
                self.before(stmt)
                group.append(stmt)
                continue
            if group:
                self._group(tuple(group), 0)
                group = []
            if stmt is not None:
                self.before(stmt)
                self.printer.statement(stmt)
        self.ended(already)

    def _group(self, body: tuple[ir.Stmt, ...], pending: int) -> None:
        """Products in one group, after which at most so many groups are pending."""
        self._started(body)
        self._awaited(pending, list(products_in(body)))

    def _awaited(self, pending: int, products: list[ir.WarpgroupProduct]) -> None:
        """Registers are read after the wait only, so it seems to write them. ptxas 13.0 moves
        conversions of sums above it all the same, where tiles have few columns; what triggers an
        event of a profiler stands in their way, and does nothing else."""
        names = {} if pending else {each.target.name: each.target for each in products}
        wait = f"wgmma.wait_group.sync.aligned {pending};"
        if names:
            self._pinned(f"{wait} pmevent 0;", self._held(names, ()))
        else:
            self.asm(wait)

    # -- sums and boxes

    def _shared_sum(self, stmt: ir.SharedSum) -> None:
        many, share = self.kernel.cluster, stmt.count // self.kernel.cluster
        self.end()
        self.summed = True
        place = self.place(stmt.array, Const(0))
        self.call(f"shared_sum_{many}", place, str(share), str(self.kernel.threads))

    def _send(self, stmt: ir.BulkStore) -> None:
        """One thread sends what all have stored, once they met for the first of several boxes."""
        lines = self.printer.lines
        if not self.met:
            self.asm("fence.proxy.async.shared::cta;")
            self.meet(stmt.scope)
            self.met = True
        lines.open(f"if ({self._sends(stmt.scope)})")
        axes = [self.index(each) for each in reversed(stmt.at)]
        place = self.place(stmt.array, stmt.index)
        self.call(f"copy_out_{len(axes)}", f"&{stmt.map}", *axes, place)
        self.asm("cp.async.bulk.commit_group;")
        lines.close()

    def _sends(self, scope: str) -> str:
        return "threadIdx.x == 0" if scope == "block" else f"(int)threadIdx.x % {GROUP} == 0"

    def _sent_are_read(self, scope: str, pending: int = 0) -> None:
        wait = f"cp.async.bulk.wait_group.read {pending};"
        self.add(f'if ({self._sends(scope)}) asm volatile("{wait}" ::: "memory");')

    def stores(self, stmt: ir.Stmt) -> list[str]:
        """The arrays that a statement stores to, of those that boxes are sent from."""
        inside = list(ir.walk((stmt,)))
        arrays = {each.array for each in inside if isinstance(each, ir.Store | ir.StoreMatrix)}
        return sorted(arrays & self.sent.keys())

    def sends(self, stmt: ir.Stmt) -> bool:
        return any(isinstance(each, ir.BulkStore) for each in ir.walk((stmt,)))

    def ordered(self, stmt: ir.Stmt, since: dict[str, int]) -> bool:
        """Before all store again where boxes were sent from, those have been read. `since` says of
        an array how many boxes were sent in this list after its own; whether it is printed here."""
        if isinstance(stmt, ir.BulkStore):
            since.update({each: count + 1 for each, count in since.items()})
            since[stmt.array] = 0
        elif self.sends(stmt):
            since.clear()
        elif not self.covered and (arrays := self.stores(stmt)):
            fresh = [each for each in arrays if since.get(each, 0) >= 0]
            if fresh:
                for scope in sorted({self.sent[each] for each in fresh}):
                    least = min(since.get(e, 0) for e in fresh if self.sent[e] == scope)
                    self._sent_are_read(scope, least)
                    self.meet(scope)
            since.update(dict.fromkeys(arrays, -1 << 30))  # until it is sent again
            self.covered = True
            self.printer.statement(stmt)
            self.covered = False
            return True
        return False
