"""A kernel read on symbols: the form of every address, predicate and index, at every place.

Comes in: a module and one of its kernels. Goes out: a `Reading`. Blocks are visited in order with
values joined where paths meet, so the work grows with the text and not with the number of paths.
A register that a loop carries is `first value + step * counter` where its step is the same in all
lanes and all iterations, and unknown otherwise; that is guessed, then checked by another pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from warploom.ptx.dominance import Flow, analyse
from warploom.ptx.flow import Edge
from warploom.ptx.ir import Address, Component, Function, Instruction, Module, Register, Variable
from warploom.ptx.known import control_of, record_of
from warploom.ptx.opcode import Control, MemoryEffect
from warploom.ptx.symbolic.elementwise import choose
from warploom.ptx.symbolic.form import Atom, Form, Pool, constant
from warploom.ptx.symbolic.operand import Reader, Target, roots, width_of
from warploom.ptx.symbolic.step import evaluate, targets

MOST_PASSES = 8
MOST_FACTS = 64
MOST_BETWEEN = 1000  # blocks between a branch and where its ways meet; beyond, nothing is claimed
WRITES = frozenset({MemoryEffect.WRITES, MemoryEffect.UPDATES})
ACCESSES = WRITES | {MemoryEffect.READS}
ONE_ADDRESS = ("global", "const", "shared")  # spaces whose variables all lanes see at one place

Values = dict[str, Form]
Facts = dict[Form, bool]


@dataclass(slots=True)
class Reading:
    """What is known of a kernel. Forms of addresses are those seen where they are used."""

    module: Module
    function: Function
    flow: Flow
    pool: Pool
    addresses: dict[int, Form | None] = field(default_factory=dict)  # by instruction
    conditions: dict[int, Form] = field(default_factory=dict)  # by block that ends in a branch
    reached: set[int] = field(default_factory=set)  # blocks
    taken: set[tuple[int, int]] = field(default_factory=set)  # edges that can be followed
    parted: set[int] = field(default_factory=set)  # headers of loops whose lanes may part
    steady: set[int] = field(default_factory=set)  # headers of loops all lanes run alike
    origins: dict[int, list[tuple[int, Register]]] = field(default_factory=dict)
    written: frozenset[int] = frozenset()  # pointers that are written through
    made_at: dict[str, tuple[int, Form]] = field(default_factory=dict)  # registers set only once
    reads: dict[tuple[str, int], Form] = field(default_factory=dict)  # the others, where read


def read(module: Module, function: Function) -> Reading:
    """Walks the kernel until its guesses about loops agree with what the loops do."""
    reading = Reading(module, function, analyse(module, function), Pool())
    walker = _Walker(reading)
    reading.parted |= walker.ragged_loops()
    for _ in range(MOST_PASSES):
        walker.run()
        if not walker.learn():
            return reading
    walker.forget()
    walker.run()
    return reading


def key_of(target: Target) -> str:
    if isinstance(target, Component):
        return f"{target.register.key}.{target.index}"
    return target.key


class _Walker:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.flow = reading.flow
        self.pool = reading.pool
        self.defined_at = _definitions(self.flow)
        self.carried = _carried(self.flow, self.defined_at)
        self.steps: dict[tuple[int, str], Form] = {}
        self.refused: set[tuple[int, str]] = set()
        module, function = reading.module, reading.function
        local = [s for s in function.flat() if isinstance(s, Variable)]
        names = Counter([*{v.name for v in module.variables}, *(v.name for v in local)])
        # A name that stands for two variables says nothing.
        named = [v for v in (*module.variables, *local) if names[v.name] == 1]
        self.reader = Reader(
            self.pool,
            self.value_of,
            frozenset(p.name for p in function.parameters if not names[p.name])
            if function.kind == "entry"
            else frozenset(),
            frozenset(v.name for v in named if v.space in ONE_ADDRESS),
        )  # fmt: skip
        self.reset()

    def reset(self) -> None:
        self.single = self.reading.made_at
        self.values: Values = {}
        self.at = 0
        self.block = 0
        self.out_values: dict[int, Values] = {}
        self.out_facts: dict[int, Facts] = {}
        self.header_values: dict[tuple[int, str], Form] = {}
        self.facts: Facts = {}
        for part in (
            self.reading.addresses, self.reading.conditions, self.reading.origins,
            self.reading.made_at, self.reading.reads,
        ):  # fmt: skip
            part.clear()
        self.reading.reached.clear()
        self.reading.taken.clear()

    # -- registers ----------------------------------------------------------------------------

    def value_of(self, target: Target) -> Form:
        register = target.register if isinstance(target, Component) else target
        key = key_of(target)
        width = width_of(register.type) or 64
        if len(self.defined_at.get(key, ())) == 1:
            at, form = self.single.get(key, (-1, None))
            if form is not None and self.flow.before(at, self.at):
                return self.seen_from(form, self.block)
            # Never set, or set in an earlier iteration of a loop: two such reads may see two
            # values.
            return self.pool.unknown(f"{key} at {self.at}", width, self.block)
        form = self.pool.unknown(f"never set {key}", width)
        if key in self.values:
            form = self.seen_from(self.values[key], self.block)
        self.reading.reads[key, self.at] = form
        return form

    def seen_from(self, form: Form, block: int) -> Form:
        """The form outside the loops it was made in: lanes left them after different iterations."""
        around = self.flow.around[block]
        left = {
            made for made in self.pool.made_in(form) for header in self.flow.around[made]
            if header not in around
        }  # fmt: skip
        if not left:
            return form

        def change(atom: Atom) -> Form | None:
            if atom.args or not atom.made_in & left or not (atom.known or atom.uniform):
                return None
            if all(self.left_alike(made, around) for made in atom.made_in):
                return self.pool.symbol(f"last {atom.op}", atom.width)
            return self.pool.unknown(f"last {atom.op}", atom.width)

        return self.pool.substitute(form, change)

    def left_alike(self, made: int, around: tuple[int, ...]) -> bool:
        left = [header for header in self.flow.around[made] if header not in around]
        # Inside another loop the last value of one iteration is not that of the next: not followed.
        return not around and all(header in self.reading.steady for header in left)

    # -- one pass -----------------------------------------------------------------------------

    def run(self) -> None:
        self.reset()
        for block in self.flow.order:
            edges = [e for e in self.flow.blocks[block].into if self.is_taken(e)]
            if edges or block == self.flow.order[0]:
                self.reading.reached.add(block)
                self.enter(block, edges)
                self.run_block(block)

    def is_taken(self, edge: Edge) -> bool:
        return (edge.source, edge.target) in self.reading.taken

    def enter(self, block: int, edges: list[Edge]) -> None:
        self.block = block
        self.at = self.flow.blocks[block].start
        self.facts = self.joined_facts(edges)
        self.values = self.joined_values(block, edges)
        if block in self.flow.loops:
            for key in self.carried[block]:
                self.values[key] = self.at_header(block, key)

    def joined_facts(self, edges: list[Edge]) -> Facts:
        known = [{**self.out_facts[e.source], **self.fact(e)} for e in edges]
        if not known:
            return {}
        same = {p: v for p, v in known[0].items() if all(k.get(p) == v for k in known[1:])}
        return dict(list(same.items())[-MOST_FACTS:])

    def fact(self, edge: Edge) -> Facts:
        """What holds after following an edge: its condition, and each part of a conjunction."""
        condition = self.reading.conditions.get(edge.source)
        if condition is None or edge.predicate is None or not edge.exact:
            return {}
        facts = {condition: edge.when, constant(1, 1) + condition: not edge.when}
        if edge.when and len(condition.terms) == 1:
            for index in next(iter(condition.terms)):
                part = Form(1, {(index,): 1})
                facts[part] = True
                facts[constant(1, 1) + part] = False
        return facts

    def joined_values(self, block: int, edges: list[Edge]) -> Values:
        incoming = [self.out_values[e.source] for e in edges]
        if len(incoming) == 1:
            return dict(incoming[0])
        joined: Values = {}
        even: bool | None = None
        for key in {key for values in incoming for key in values}:
            forms = {values.get(key) for values in incoming}
            if len(forms) == 1:
                joined[key] = forms.pop()  # type: ignore[assignment]
                continue
            if even is None:
                even = self.evenly_reached(block)
            joined[key] = self.met(block, key, [f for f in forms if f is not None], even)
        return joined

    def met(self, block: int, key: str, forms: list[Form], even: bool) -> Form:
        """A value that depends on the path: the same in all lanes only if the path is."""
        width = forms[0].width
        if even and all(self.pool.uniform(self.seen_from(form, block)) for form in forms):
            return self.pool.symbol(f"met{block} {key}", width, block=block)
        return self.pool.unknown(f"met{block} {key}", width, block)

    def evenly_reached(self, block: int) -> bool:
        """Whether all lanes came the same way since the last place they all passed."""
        top = self.flow.dominator[block]
        seen = {top}
        stack = [e.source for e in self.flow.blocks[block].into if self.is_taken(e)]
        while stack and len(seen) < MOST_BETWEEN:
            number = stack.pop()
            if number not in seen:
                seen.add(number)
                stack += [e.source for e in self.flow.blocks[number].into if self.is_taken(e)]
        return not stack and all(self.even_branch(number) for number in seen)

    def even_branch(self, block: int) -> bool:
        out = [e for e in self.flow.blocks[block].out if self.is_taken(e)]
        if len(out) <= 1:
            return True
        condition = self.reading.conditions.get(block)
        return condition is not None and self.pool.uniform(condition) and out[0].exact

    def at_header(self, header: int, key: str) -> Form:
        first = self.values.get(key)
        width = first.width if first is not None else 64
        step = self.steps.get((header, key))
        if step is None or first is None or step.width != width:
            form = self.pool.unknown(f"carried{header} {key}", width, header)
        else:
            form = first + self.pool.multiply(step, self.counter(header, width))
        self.header_values[header, key] = form
        return form

    def counter(self, header: int, width: int) -> Form:
        even = header not in self.reading.parted
        atom = self.pool.symbol(
            f"iteration{header}", 64, known=even, moves=not even, uniform=even, block=header
        )
        return Form(width, atom.terms)

    def run_block(self, block: int) -> None:
        span = self.flow.blocks[block]
        for at in range(span.start, span.stop):
            self.at = at
            self.do(self.flow.code[at])
        self.out_values[block] = self.values
        self.out_facts[block] = self.facts
        self.leave(block)

    def do(self, step: Instruction) -> None:
        results = evaluate(self.reader, step, self.at, self.block)
        record = record_of(step)
        if record is not None and record.memory in ACCESSES:
            found = [operand for operand in step.operands if isinstance(operand, Address)]
            self.reading.addresses[self.at] = self.reader.address(found[0]) if found else None
        else:
            self.note_extensions(step)
        condition = self.predicate(step)
        for target, new in results:
            form = new
            if condition is not None:
                form = choose(self.pool, condition, new, self.value_of(target))
            self.assign(target, form)

    def assign(self, target: Target, form: Form) -> None:
        key = key_of(target)
        if len(self.defined_at[key]) == 1:
            self.single[key] = (self.at, form)
        else:
            self.values[key] = form
        register = target.register if isinstance(target, Component) else target
        if register.vector > 1:  # the vector as a whole and by parts are not followed together
            width = width_of(register.type) or 64
            for other in _parts(register):
                if other != key:
                    self.values[other] = self.pool.unknown(f"part {other}@{self.at}", width)

    def predicate(self, step: Instruction) -> Form | None:
        if step.predicate is None:
            return None
        form = self.value_of(step.predicate)
        form = constant(1, 1) + form if step.negated else form
        if form in self.facts:
            return constant(1, int(self.facts[form]))
        return form

    def note_extensions(self, step: Instruction) -> None:
        """Where a narrow index is widened, a later guard can still see it in a register."""
        if step.opcode != "cvt" and "wide" not in step.modifiers:
            return
        kinds = [m for m in step.modifiers if width_of(m)]
        if not kinds:
            return
        signed, width = kinds[-1][0] == "s", width_of(kinds[-1])
        wide = 2 * width if "wide" in step.modifiers else width_of(kinds[0])
        for operand in step.operands[1:3]:
            if isinstance(operand, Register) and width_of(operand.type) == width < wide:
                narrow = self.value_of(operand)
                atom = self.pool.single(self.pool.extend(narrow, wide, signed))
                # What was widened before is in range here, and its own index in no register.
                if atom is not None and atom.op in ("sext", "zext") and atom.args[0] == narrow:
                    self.reading.origins.setdefault(atom.index, []).append((self.at, operand))

    def leave(self, block: int) -> None:
        edges = self.flow.blocks[block].out
        predicate = next((e.predicate for e in edges if e.predicate is not None), None)
        known: bool | None = None
        if predicate is not None:
            form = self.value_of(predicate)
            self.reading.conditions[block] = form
            known = bool(form.constant) if form.is_constant else self.facts.get(form)
        for edge in edges:
            if edge.predicate is None or known is None or edge.when == known:
                self.reading.taken.add((edge.source, edge.target))

    # -- between passes -----------------------------------------------------------------------

    def learn(self) -> bool:
        """Compares guesses with what the pass found; True where another pass is needed."""
        changed = self.learn_written()
        loops = [loop for h, loop in self.flow.loops.items() if h in self.reading.reached]
        for loop in loops:
            sources = [e.source for e in loop.latches if self.is_taken(e)]
            for key in self.carried[loop.header]:
                if (loop.header, key) not in self.refused:
                    changed |= self.learn_step(loop.header, loop.body, key, sources)
        if changed:  # a branch on a register that a loop carries is judged once its step is known
            return True
        for loop in loops:
            changed |= self.learn_parting(loop.header)
            changed |= self.learn_steady(loop.header)
        return changed

    def learn_step(
        self, header: int, body: frozenset[int], key: str, sources: Iterable[int]
    ) -> bool:
        at_header = self.header_values[header, key]
        found: set[Form | None] = set()
        for source in sources:
            last = self.out_values[source].get(key)
            same_width = last is not None and last.width == at_header.width
            if last is None or not same_width:
                found.add(None)
            else:
                found.add(self.seen_from(last, header) - at_header)
        step = found.pop() if len(found) == 1 else None
        if step is not None and (self.pool.made_in(step) & body or not self.pool.uniform(step)):
            step = None
        old = self.steps.get((header, key))
        if step == old:
            return False
        if old is not None:  # the guess did not hold
            self.refused.add((header, key))
            del self.steps[header, key]
            return True
        assert step is not None
        self.steps[header, key] = step
        return True

    def learn_parting(self, header: int) -> bool:
        """Lanes that take different ways inside a loop may count different iterations."""
        outer = self.flow.around[header][0]
        if outer != header or header in self.reading.parted:
            return False
        body = self.flow.loops[header].body
        if all(self.stays_together(block, body) for block in body & self.reading.reached):
            return False
        self.part(body)
        return True

    def learn_steady(self, header: int) -> bool:
        """A loop in which every branch, the last one too, is the same for all lanes."""
        steady = header not in self.reading.parted and all(
            self.even_branch(block) for block in self.flow.loops[header].body & self.reading.reached
        )
        if steady == (header in self.reading.steady):
            return False
        self.reading.steady ^= {header}
        return True

    def stays_together(self, block: int, body: frozenset[int]) -> bool:
        inside = [e for e in self.flow.blocks[block].out if e.target in body and self.is_taken(e)]
        if len(inside) <= 1:
            return True
        condition = self.reading.conditions.get(block)
        return condition is not None and inside[0].exact and self.pool.uniform(condition)

    def part(self, body: frozenset[int]) -> None:
        self.reading.parted |= {h for h in self.flow.loops if h in body}

    def ragged_loops(self) -> set[int]:
        """Loops entered from several places, or that call: nothing keeps their lanes together."""
        found: set[int] = set()
        for header, loop in self.flow.loops.items():
            if self.flow.around[header][0] != header:
                continue
            entries = [e for e in self.flow.blocks[header].into if e.source not in loop.body]
            calls = any(
                control_of(step) is Control.CALL
                for block in loop.body
                for step in self.flow.instructions(self.flow.blocks[block])
            )
            if len(entries) != 1 or calls or header == self.flow.order[0]:
                found |= {h for h in self.flow.loops if h in loop.body}
        return found

    def learn_written(self) -> bool:
        """Pointers written through: `.nc` loads from them are not taken at their word."""
        found: frozenset[int] = frozenset()
        for at, form in self.reading.addresses.items():
            record = record_of(self.flow.code[at])
            if record is not None and record.memory in WRITES and form is not None:
                found |= roots(self.pool, form)
        if found <= self.reading.written:
            return False
        self.reading.written = self.reader.written = found | self.reading.written
        return True

    def forget(self) -> None:
        """Gives up all guesses: every carried register is unknown."""
        self.steps.clear()
        self.reading.steady.clear()
        self.part(frozenset(self.flow.order))


def _definitions(flow: Flow) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at, step in enumerate(flow.code):
        for target in targets(step):
            found.setdefault(key_of(target), []).append(at)
            register = target.register if isinstance(target, Component) else target
            if register.vector > 1:
                for part in _parts(register):
                    found.setdefault(part, []).extend((at, at))
    return found


def _parts(register: Register) -> list[str]:
    return [register.key, *(f"{register.key}.{index}" for index in range(register.vector))]


def _carried(flow: Flow, defined_at: dict[str, list[int]]) -> dict[int, list[str]]:
    """Registers with several definitions, one of them inside the loop, by header."""
    carried: dict[int, list[str]] = {header: [] for header in flow.loops}
    for key, places in defined_at.items():
        if len(places) < 2:
            continue
        blocks = {flow.block_of[at] for at in places}
        for header, loop in flow.loops.items():
            if blocks & loop.body:
                carried[header].append(key)
    return carried
