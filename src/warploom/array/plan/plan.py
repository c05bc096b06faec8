"""An expression becomes a plan: loops, buffers and writes, in the order of evaluation.

What is computed and then read becomes a buffer, in the memory that `home.py` says; what is the
result of something goes where that goes, through the layout operations around it. Where that does
not work (an operation that cannot be written through, an array that is only looked at) the copy
that is needed is written out as maps. What is computed outside of all loops into global memory is a
stage of its own: no kernel may wait for all groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from warploom.array.language.bind import variables_of
from warploom.array.language.ir import (
    Apply,
    Lambda,
    Literal,
    Param,
    Program,
    Term,
    apply,
    close,
    facts_of,
    fresh,
    is_concrete,
    opened,
)
from warploom.array.language.op import (
    ANY,
    Ask,
    Choose,
    Compute,
    Convert,
    Copy,
    Get,
    Iterate,
    Layout,
    Let,
    Map,
    Pack,
    Reduce,
    Scan,
    SpaceName,
    To,
)
from warploom.array.plan.element import Stored, at_index, element_of
from warploom.array.plan.home import asked, home_of, leaf_paths, memories_of, spaces_of
from warploom.array.plan.known import Known
from warploom.array.plan.loops import (
    Buffer,
    Loop,
    MapFacts,
    Node,
    Plan,
    Stage,
    Write,
    guarded,
    read,
    reads_of,
    sites,
    without_unread,
)
from warploom.array.plan.target import At, Target, Through, ThroughMap, Whole, locate, memory_of
from warploom.array.plan.view import Part, Path, is_readable, is_writable
from warploom.array.types import Array, Tuple, Type, Vector, array, dtype_of
from warploom.errors import InternalError, UnsupportedError
from warploom.index.ir import Const, Expr, Var
from warploom.kernel import ir as kernel
from warploom.kernel.ir import Cast, Compare, Number, Operation, Value, added

ZERO = Const(0)


def plan(program: Program) -> Plan:
    """The loops and buffers of a program."""
    made = _Planner(program, variables_of(program)).plan()
    _check_stages(made)
    return made


def copied(term: Term) -> Apply:
    """The same value, every number of it written anew."""
    match term.type:
        case Array(element, _):
            x = fresh(element)
            return apply(Map(ANY), (close((x,), copied(x)),), (term,))
        case Tuple(parts):
            return apply(Pack(), (), [copied(part_of(term, at)) for at in range(len(parts))])
        case _:
            return apply(Copy(), (), (term,))


def part_of(term: Term, at: int) -> Term:
    if isinstance(term, Apply) and isinstance(term.op, Pack):
        return term.arguments[at]
    return apply(Get(at), (), (term,))


def is_number(type_: Type) -> bool:
    """Numbers and tuples of them, which registers hold."""
    if isinstance(type_, Tuple):
        return all(map(is_number, type_.parts))
    return not isinstance(type_, Array)


def as_stored(type_: Type) -> Type:
    """Numbers are stored as arrays of one element."""
    return array(type_, 1) if is_number(type_) else type_


def unrolled(term: Apply) -> Term:
    """f(f(… x)), each application computed once."""
    assert isinstance(term.op, Iterate)
    result = term.arguments[0]
    for _ in range(term.op.times):
        result = apply(Let(), term.functions, (result,))
    return result


def only_moves(term: Term, hole: Param) -> bool:
    """Whether an abstract expression holds one hole once, and can be written through to it."""
    match term:
        case Param():
            return term is hole
        case Apply(Map(), (f,), (argument,)):
            (param,), body = opened(f)
            inside = hole not in facts_of(body).params and only_moves(body, param)
            return inside and only_moves(argument, hole)
        case Apply(op, (), arguments) if isinstance(op, Layout):
            holding = [each for each in arguments if hole in facts_of(each).params]
            return (
                len(arguments) == len(holding) == 1
                and is_writable(op)
                and only_moves(holding[0], hole)
            )
        case _:
            return False


def passes_through(term: Apply) -> bool:
    """Whether what an operation is applied to can be written straight to where its result goes."""
    if isinstance(term.op, Map):
        (param,), body = opened(term.functions[0])
        return not is_concrete(body) and only_moves(body, param)
    return isinstance(term.op, Layout) and is_writable(term.op)


@dataclass(slots=True)
class _Planner:
    program: Program
    taken: frozenset[str]
    buffers: list[Buffer] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    spaces: dict[Param, SpaceName] = field(default_factory=dict)
    body: list[Node] = field(default_factory=list)
    chain: tuple[int, ...] = ()
    known: Known = field(default_factory=lambda: Known({}, effort=0))
    nested: bool = False  # inside any loop
    # What was computed already, in loops that are still open.
    done: dict[Term, Term] = field(default_factory=dict)
    # The map that is all that the map around does, if it does nothing else.
    only: Term | None = None
    maps: int = 0
    others: int = 0

    def plan(self) -> Plan:
        for each in self.program.inputs:
            self._declare(each, "private" if is_number(each.type) else "global", "input")
        result = self.program.body
        output = Param("out", as_stored(result.type))
        self._declare(output, "global", "output")
        self.write(result, _place(output, result.type))
        self._end_stage()
        self.stages = without_unread(self.stages, output)
        return Plan(self.program, tuple(self._staged()), tuple(self.stages), output)

    def _staged(self) -> Iterator[Buffer]:
        """The buffers, each with the stage that writes it."""
        writers = {
            site.write.memory: number
            for number, stage in enumerate(self.stages)
            for site in sites(stage.body)
        }
        for each in self.buffers:
            yield replace(each, stage=writers.get(each.memory, 0))

    # -- buffers and loops

    def _declare(self, memory: Param, space: SpaceName, role: str = "temporary") -> None:
        self.spaces[memory] = space
        self.buffers.append(Buffer(memory, space, self.chain, role))

    def _new(self, type_: Type, space: SpaceName) -> Param:
        memory = Param(self._name("t"), type_)
        self._declare(memory, space)
        return memory

    def _name(self, letter: str) -> str:
        self.others += 1
        name = f"{letter}{self.others}"
        return name if name not in self.taken else self._name(letter)

    def _end_stage(self) -> None:
        if self.body:
            self.stages.append(Stage(tuple(self.body)))
            self.body = []

    @contextmanager
    def _looping(
        self, counter: str, size: Expr, facts: MapFacts | None = None, lanes: bool = False
    ) -> Iterator[Var]:
        outer = (self.body, self.chain, self.known, self.nested, self.done, self.only)
        self.body, self.nested, self.done, self.only = [], True, dict(self.done), None
        self.known = self.known.with_counter(counter, size)
        if facts is not None:
            self.chain = (*self.chain, facts.number)
        yield Var(counter)
        made = Loop(counter, size, tuple(self.body), facts, lanes)
        self.body, self.chain, self.known, self.nested, self.done, self.only = outer
        self.body.append(made)

    # -- results

    def write(self, term: Term, target: Target) -> None:
        """Computes an expression into a target."""
        match term:
            case Apply(To(space), _, (argument,)):
                goes = self.spaces[memory_of(target)] == space
                self.write(argument if goes else copied(term), target)
            case Apply(Let(), _, _):
                self.write(self._let(term), target)
            case Apply(Iterate(), _, _):
                self.write(unrolled(term), target)
            case _ if is_number(term.type):
                self._write_number(term, target)
            case Apply(Map(), (f,), _) if not self._is_view(f.body) and not passes_through(term):
                self._write_map(term, target)
            case Apply(Reduce() | Scan(), _, _):
                self._write_fold(term, target)
            case Apply() if passes_through(term) and not self._is_view(term):
                self._write_layout(term, target)
            case _:  # it is only looked at, or cannot be written through
                self.write(copied(term), target)

    def _is_view(self, term: Term) -> bool:
        """Whether an expression can be read as it is."""
        facts = facts_of(term)
        return not facts.concrete and not facts.unreadable

    def _write_layout(self, term: Apply, target: Target) -> None:
        if isinstance(term.op, Map):
            self.write(term.arguments[0], ThroughMap(target, term.functions[0]))
            return
        for at, argument in enumerate(term.arguments):
            self.write(argument, Through(target, term, at))

    def _write_number(self, term: Term, target: Target) -> None:
        match term.type:
            case Tuple(parts):
                whole = term
                if not (isinstance(term, Apply) and isinstance(term.op, Pack)):
                    whole = self.view(term)
                for at in range(len(parts)):
                    self.write(part_of(whole, at), At(target, (Part(at),)))
            case Vector(_, width):
                ready = self._ready(term)
                with self._looping(self._name("v"), Const(width), lanes=True) as lane:
                    self._store(ready, target, (lane,))
            case _:
                self._store(self._ready(term), target, ())

    def _store(self, ready: Term, target: Target, path: Path) -> None:
        place = locate(target, path, self.known)
        if place is not None:
            value = self._value(ready, path)
            self.body.append(Write(place.memory, place.path, place.conditions, value))

    def _write_map(self, term: Apply, target: Target) -> None:
        perfect = term is self.only and not self.body
        assert isinstance(term.op, Map)
        view = self.view(term.arguments[0])
        assert isinstance(view.type, Array)
        number, self.maps = self.maps, self.maps + 1
        writes = frozenset((self.spaces[memory_of(target)],))
        reads = spaces_of(view, self.spaces)
        facts = MapFacts(number, term.op.level, writes, reads, perfect)
        name = f"i{number}" if f"i{number}" not in self.taken else self._name("i")
        with self._looping(name, view.type.size, facts) as counter:
            element = at_index(view, counter)
            body = term.functions[0](element)
            self.only = _only(body, element)
            self.write(body, At(target, (counter,)))

    def _let(self, term: Apply) -> Term:
        """The body of a let, its value computed."""
        return term.functions[0](self.view(term.arguments[0]))

    # -- folds

    def _write_fold(self, term: Apply, target: Target) -> None:
        if isinstance(term.op, Reduce) and self._starts_from(target, term):
            self._fold_in_place(term, target)
            return
        memory = self._folded(term, target if isinstance(term.op, Scan) else None)
        if isinstance(term.op, Reduce):
            self.write(_whole(memory), At(target, (ZERO,)))

    def _folded(self, term: Apply, each: Target | None = None) -> Param:
        """The accumulator after a fold; `each` is where it goes after every element."""
        start, xs = term.arguments
        view = self.view(xs)
        assert isinstance(view.type, Array)
        memory = self._accumulator(start)
        with self._looping(self._name("r"), view.type.size) as counter:
            self._step(term.functions[0], memory, at_index(view, counter))
            if each is not None:
                self.write(_whole(memory), At(each, (counter,)))
        return memory

    def _starts_from(self, target: Target, term: Apply) -> bool:
        """Whether a fold starts from what is where its result goes, and looks at that through its
        state alone: then it can go on there."""
        start, xs = term.arguments
        memory = memory_of(target)
        looked_at = facts_of(term.functions[0].body).params
        if not self._is_view(start) or not self._is_view(xs) or memory in looked_at:
            return False
        if self.spaces[memory] != "private" or memory in memories_of(xs):
            return False
        for path in leaf_paths(start.type, lambda depth: Var(f"any{depth}")):
            found = element_of(start, path, self.known)
            place = locate(At(target, (ZERO,)), path, self.known)
            if not isinstance(found, Stored) or place is None:
                return False
            if (found.memory, found.path, found.guards) != (memory, place.path, ()):
                return False
            if place.conditions:
                return False
        return True

    def _fold_in_place(self, term: Apply, target: Target) -> None:
        start, xs = term.arguments
        view = self.view(xs)
        assert isinstance(view.type, Array)
        with self._looping(self._name("r"), view.type.size) as counter:
            body = term.functions[0](start, at_index(view, counter))
            before = len(self.body)
            self.write(body, At(target, (ZERO,)))
            _check_in_place(memory_of(target), tuple(self.body[before:]))

    def _accumulator(self, start: Term) -> Param:
        """Memory for one accumulator, as an array of one element, that holds the start."""
        if not is_number(start.type) and not is_concrete(start):
            start = apply(To("private"), (), (copied(start),))
        number = is_number(start.type)
        space = (asked(start) or "private") if number else home_of(start, self.spaces)
        memory = self._new(array(start.type, 1), space)
        self.write(start, At(Whole(memory), (ZERO,)))
        return memory

    def _step(self, f: Lambda, memory: Param, item: Term) -> None:
        """The accumulator after one element."""
        target = At(Whole(memory), (ZERO,))
        state = at_index(memory, ZERO)
        body = f(state, item)
        if isinstance(state.type, Tuple):  # all parts see the state before
            later = self._new(memory.type, "private")
            self.write(body, At(Whole(later), (ZERO,)))
            body = copied(at_index(later, ZERO))
        before = len(self.body)
        self.write(body, target)
        _check_in_place(memory, tuple(self.body[before:]))

    # -- what is read

    def view(self, term: Term) -> Term:
        """The expression with everything that it computes in buffers: it only looks now."""
        if self._is_view(term) or isinstance(term, Param | Literal):
            return term
        if term not in self.done:
            self.done[term] = self._viewed(term)
        return self.done[term]

    def _viewed(self, term: Term) -> Term:
        match term:
            case Apply(Let(), _, _):
                return self.view(self._let(term))
            case Apply(Iterate(), _, _):
                return self.view(unrolled(term))
            case Apply(op, (), arguments) if isinstance(op, Layout) and is_readable(op):
                return apply(op, (), [self.view(each) for each in arguments])
            case Apply(Map() as op, (f,), (argument,)) if self._is_view(f.body):
                return apply(op, (f,), (self.view(argument),))
            case Apply(Reduce(), _, _) if self.nested or asked(term) != "private":
                return self._closed(self._folded(term))
            case Apply():
                return self._computed(term)
            case _:
                raise InternalError("a parameter outside of its lambda")

    def _computed(self, term: Apply) -> Term:
        """A buffer with the value of an expression."""
        number = is_number(term.type)
        source: Term = term
        if isinstance(term.op, To):
            source = term.arguments[0]
        space = self._home(term, number)
        memory = self._new(as_stored(term.type), space)
        self.write(source, _place(memory, term.type))
        self._closed(memory)
        return at_index(memory, ZERO) if number else memory

    def _home(self, term: Apply, number: bool) -> SpaceName:
        if isinstance(term.op, To):
            return term.op.space
        if not self.nested:  # for what comes after, which may be another kernel
            return asked(term) or "global" if not isinstance(term.op, Reduce) else "global"
        return (asked(term) or "private") if number else home_of(term, self.spaces)

    def _closed(self, memory: Param) -> Param:
        if not self.nested and self.spaces[memory] == "global":
            self._end_stage()
        return memory

    # -- numbers

    def _ready(self, term: Term, done: dict[Term, Term] | None = None) -> Term:
        """A number of which nothing but operators on what is stored is left to do."""
        done = {} if done is None else done
        if term not in done:
            match term:
                case Apply(Compute() | Copy() | Ask() | Choose() | Convert() as op, _, arguments):
                    made: Term = apply(op, (), [self._ready(each, done) for each in arguments])
                case Apply(Let(), _, _):
                    made = self._ready(self._let(term), done)
                case _:
                    made = self.view(term)
            done[term] = made
        return done[term]

    def _value(
        self, ready: Term, path: Path, done: dict[tuple[Term, Path], Value] | None = None
    ) -> Value:
        done = {} if done is None else done
        key = ready, path
        if key not in done:
            done[key] = self._computes(ready, path, lambda each, at: self._value(each, at, done))
        return done[key]

    def _computes(
        self, ready: Term, path: Path, value: Callable[[Term, Path], Value]
    ) -> Value:  # fmt: skip
        match ready:
            case Apply(Compute("+"), _, (left, right)):
                return added(value(left, path), value(right, path))
            case Apply(Compute(op), _, arguments):
                return Operation(op, tuple(value(each, path) for each in arguments))
            case Apply(Copy(), _, (argument,)):
                return value(argument, path)
            case Apply(Convert(dtype), _, (argument,)):
                return Cast(dtype, value(argument, path))
            case Apply(Choose(), _, (Apply(Ask(op), _, (left, right)), then, otherwise)):
                asked = Compare(op, value(left, ()), value(right, ()))
                return kernel.Choose(asked, value(then, path), value(otherwise, path))
            case _:
                return self._looked_up(ready, path)

    def _looked_up(self, ready: Term, path: Path) -> Value:
        dtype = dtype_of(ready.type)
        if dtype is None:
            raise UnsupportedError(
                "a Boolean cannot be stored",
                advice="write the comparison inside choose: choose(a.lt(b), …)",
            )
        found = element_of(ready, path, self.known)
        if isinstance(found, Stored):
            return guarded(found.guards, read(found.memory, found.path, dtype))
        return guarded(found.guards, Number(found.value, dtype))


def _place(memory: Param, type_: Type) -> Target:
    """Where a value of a type goes in its buffer."""
    return At(Whole(memory), (ZERO,)) if is_number(type_) else Whole(memory)


def _whole(memory: Param) -> Term:
    """The one element of an accumulator."""
    return at_index(memory, ZERO)


def _only(body: Term, element: Term) -> Term | None:
    """The map that a body is, if it is one of the element itself."""
    while isinstance(body, Apply) and isinstance(body.op, To):
        body = body.arguments[0]
    alone = isinstance(body, Apply) and isinstance(body.op, Map) and body.arguments[0] is element
    return body if alone else None


def _check_in_place(memory: Param, nodes: tuple[Node, ...]) -> None:
    """An accumulator is overwritten number by number, each made of itself alone."""
    for node in nodes:
        found = list(sites((node,)))
        if not any(site.write.memory is memory for site in found):
            continue
        for site in found:
            for each in reads_of(site.write.value):
                same = site.write.memory is memory and each.path == site.write.path
                if each.memory is memory and not same:
                    raise UnsupportedError(
                        "a fold reads other elements of its accumulator than the one it writes",
                        advice="copy the accumulator first: let(to_private(map_(copy, s)), …)",
                    )


def _check_stages(made: Plan) -> None:
    """What only a thread or a group sees is not read by a later kernel."""
    home = {each.memory: each for each in made.buffers}
    for number, stage in enumerate(made.stages):
        for site in sites(stage.body):
            for each in reads_of(site.write.value):
                buffer = home[each.memory]
                lost = buffer.role == "temporary" and buffer.space != "global"
                if lost and buffer.stage != number:
                    raise UnsupportedError(
                        f"a later kernel reads what is in {buffer.space} memory",
                        advice="put it into global memory: to_global",
                    )
