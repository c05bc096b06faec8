"""From which statement to which a shared array holds something that is still needed.

Statements are numbered in program order. An array is needed from its first access to its last; in
a loop from its beginning to its end, unless all that an iteration reads it has written before, and
nothing written there is read after the loop; and in the whole of a condition or loop that not all
threads of the block run alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from warploom.kernel.footprint import Access, Footprints, footprints
from warploom.kernel.ir import For, If, Kernel, Shared
from warploom.kernel.scope import Level, Site, scopes


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The numbers of the first and last statement, both included."""

    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last

    def with_(self, other: Lifetime) -> Lifetime:
        return Lifetime(min(self.first, other.first), max(self.last, other.last))


def lifetimes(kernel: Kernel) -> dict[str, Lifetime]:
    """The lifetime of every shared array that is used."""
    known = scopes(kernel)
    names = {each.name for each in kernel.body if isinstance(each, Shared)}
    return _Finder(footprints(known), names).of(known.body)


@dataclass(frozen=True, slots=True)
class _NumberedAccess:
    access: Access
    number: int


class _Finder:
    def __init__(self, footprints: Footprints, names: set[str]) -> None:
        self.footprints = footprints
        self.names = names
        self.numbers = count()
        self.found: dict[str, Lifetime] = {}
        self.filled: list[tuple[str, Lifetime]] = []  # arrays, and loops that write to them

    def of(self, sites: Sequence[Site]) -> dict[str, Lifetime]:
        uses = list(self._uses(sites))
        for (
            name,
            loop,
        ) in self.filled:  # iteration by iteration: what one iteration wrote outlives the next
            after = (use for use in uses if use.access.array == name and use.number > loop.last)
            if any(not use.access.write for use in after):
                self._note(name, loop.first, loop.last)
        return self.found

    def _uses(self, sites: Sequence[Site]) -> Iterator[_NumberedAccess]:
        """The accesses in program order; lifetimes are noted on the way."""
        for site in sites:
            number = next(self.numbers)
            access = self.footprints.access(site)
            if access is not None and access.array in self.names:
                self._note(access.array, number, number)
                yield _NumberedAccess(access, number)
            inside = [use for body in site.bodies for use in self._uses(body)]
            last = next(self.numbers)
            for name in {use.access.array for use in inside}:
                uses = [use for use in inside if use.access.array == name]
                if self._throughout(site, uses):
                    self._note(name, number, last)
                elif isinstance(site.stmt, For) and any(use.access.write for use in uses):
                    self.filled.append((name, Lifetime(number, last)))
            yield from inside

    def _note(self, name: str, first: int, last: int) -> None:
        new = Lifetime(first, last)
        self.found[name] = self.found[name].with_(new) if name in self.found else new

    def _throughout(self, site: Site, uses: Sequence[_NumberedAccess]) -> bool:
        """Whether an array is needed in all of a condition or loop."""
        inner = [body[0].place for body in site.bodies if body]
        if any(place.level > Level.BLOCK for place in inner):
            return True
        match site.stmt:
            case If():
                return False
            case For():
                return not self._written_first(uses, inner[0].guards)
            case _:
                return False

    def _written_first(self, uses: Sequence[_NumberedAccess], guards: Sequence[object]) -> bool:
        """Whether all that is read in an iteration was written before in the same iteration."""
        for use in uses:
            if use.access.write:
                continue
            before = [
                other.access for other in uses
                if other.access.write and other.number < use.number
                and self.footprints.surely(other.access, len(guards))
            ]  # fmt: skip
            if not self.footprints.covers(before, use.access):
                return False
        return True
