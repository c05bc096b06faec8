"""In which memory a result lies: what `to_…` says, and otherwise what its arguments say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from warploom.array.language.ir import Apply, Param, Term, facts_of, is_concrete
from warploom.array.language.op import Iterate, Let, Map, Reduce, Scan, SpaceName, To
from warploom.array.plan.element import Stored, element_of
from warploom.array.plan.known import Known
from warploom.array.plan.view import Part, Path
from warploom.array.types import Array, Tuple, Type, Vector
from warploom.index.ir import Const, Expr

Spaces = Mapping[Param, SpaceName]

_NOTHING_PROVED = Known({}, effort=0)


def leaf_paths(type_: Type, index: Callable[[int], Expr] = lambda _: Const(0)) -> Iterator[Path]:
    """A path to one number of each part of a type; `index` gives what stands before so many
    others."""
    match type_:
        case Array(element, _):
            for path in leaf_paths(element, index):
                yield (index(len(path)), *path)
        case Tuple(parts):
            for at, part in enumerate(parts):
                for path in leaf_paths(part, index):
                    yield (Part(at), *path)
        case Vector():
            yield (index(0),)
        case _:
            yield ()


def memories_of(view: Term) -> frozenset[Param]:
    """The buffers that the elements of an abstract expression lie in."""
    found = [element_of(view, path, _NOTHING_PROVED) for path in leaf_paths(view.type)]
    return frozenset(each.memory for each in found if isinstance(each, Stored))


def spaces_of(view: Term, spaces: Spaces) -> frozenset[SpaceName]:
    """The memories that the elements of an abstract expression lie in."""
    found: set[SpaceName] = set()
    for path in leaf_paths(view.type):
        element = element_of(view, path, _NOTHING_PROVED)
        found.add(spaces[element.memory] if isinstance(element, Stored) else "private")
    return frozenset(found)


def asked(term: Term) -> SpaceName | None:
    """What `to_…` says of the memory of a result."""
    match term:
        case Apply(To(space), _, _):
            return space
        case Apply(Map(), (f,), (argument,)):
            return asked(f.body) if is_concrete(f.body) else asked(argument)
        case Apply(Let() | Iterate() | Scan(), (f,), _):
            return asked(f.body)
        case Apply(Reduce(), _, (start, _)):
            return asked(start) or "private"
        case Apply(_, (), arguments):
            said = {asked(each) for each in arguments if is_concrete(each)}
            return said.pop() if len(said) == 1 else None
        case _:
            return None


def home_of(term: Term, spaces: Spaces) -> SpaceName:
    """The memory that a concrete expression is computed to, if nobody says where it goes."""
    said = asked(term)
    if said is not None:
        return said
    mentioned = {spaces[param] for param in facts_of(term).params if param in spaces}
    shared = mentioned - {"private"}
    if not shared:
        return "private"
    return shared.pop() if len(shared) == 1 else "global"
