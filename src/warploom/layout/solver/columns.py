"""The exact search over all linear layouts: a bank for each vector of a basis, one after another.

The bank of a vector is a column: the bits of the bank number that it adds. Only the subspace K that
stays in one bank matters, not the names of the banks; so a column is the next bank bit that is not
used yet, or a sum of those that are. That visits every K once. When the columns of some vectors are
known, so is what their sums cost at least.

Sets of columns are bits of one number: with 64 banks, a number of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from warploom.layout.solver.demand import Demand, Demands
from warploom.layout.solver.frame import Frame
from warploom.layout.solver.share import Sharing, scattered_least
from warploom.layout.solver.subspace import Span
from warploom.search.engine import Watch

# A case of a proof: the accesses that cost too much, or the cases of the next column by its value.
Case: TypeAlias = "tuple[int, ...] | dict[int, Case]"

# The columns that the next coordinate may have: by its number, and the columns before it.
Menu: TypeAlias = Callable[[int, list[int]], list[int]]

_PAUSE_EVERY = 20_000  # columns looked at for one subspace
_SCATTERED = 200  # what a set that is no subspace costs, in such columns


class _GivenUpError(Exception):
    """The nodes that a search may have are used up."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A column for each coordinate of the frame, places first; directions that share a word where
    no vector says so; the cost, scaled."""

    columns: tuple[int, ...]
    shared: tuple[int, ...]
    cost: int


class ColumnSearch:
    """Depth first, cheapest columns first; what cannot cost less than `limit` is left out.

    `worst`: the largest cost of an access counts, not the sum. `menu`: the columns that a
    coordinate may have, given those before it; unless said, all that make a difference. `record`:
    keep the cases, which then show that nothing costs less than `limit`. `most_nodes`: then it
    gives up.
    """

    def __init__(
        self,
        demands: Demands,
        watch: Watch,
        limit: int,
        *,
        worst: bool = False,
        menu: Menu | None = None,
        record: bool = False,
        most_nodes: int | None = None,
    ) -> None:
        frame = demands.frame
        self.demands, self.watch, self.limit = demands, watch, limit
        self.best: Choice | None = None
        self.case: Case = ()
        self._worst, self._record = worst, record
        self._menu = menu or every_column(frame)
        self._left = most_nodes
        self._sharing = Sharing(demands, worst)
        self._banks, self._loose = frame.bank_bits, frame.loose_bits
        self._columns = list(frame.fixed)
        self._count = frame.place_bits + len(frame.free)
        accesses = 1 + max(demand.access for demand in demands.demands)
        self._subspaces = [d for d in demands.demands if d.basis is not None]
        self._scattered = [d for d in demands.demands if d.basis is None]
        self._costs = [0] * accesses
        for demand in demands.demands:
            self._costs[demand.access] += demand.weight * demand.least
        self.floor = self._total(self._costs)
        self._floors = list(self._costs)
        self._taken = [1] * len(self._subspaces)  # banks of the decided part of each: 0 at first
        self._lost = [0] * len(self._subspaces)  # its directions that fell into banks taken before
        self._events = _events(self._subspaces, self._count)
        self._halves = [_half(bit, self._banks) for bit in range(self._banks)]
        self._tally, self._looked = watch.tally("columns"), 0

    def run(self) -> bool:
        """Leaves the best choice in `best`; whether that is sure: nothing else costs less."""
        for depth in range(len(self._columns)):  # places: their columns are known
            self._put(depth, self._columns[depth])
        try:
            self.case = self._descend(len(self._columns))
        except _GivenUpError:
            return False
        return True

    # -- the tree --------------------------------------------------------------------------------

    def _descend(self, depth: int) -> Case:
        self._tally.visited += 1
        if self._left is not None:
            if not self._left:
                raise _GivenUpError
            self._left -= 1
        self._looked += (1 << self._banks) + _SCATTERED * len(self._scattered)
        if self._looked >= _PAUSE_EVERY:
            self._looked = 0
            self.watch.pause("columns")
        if self._total(self._scattered_costs(depth)) >= self.limit:
            return self._blamed(depth)
        if depth == self._count:
            return self._leaf(depth)
        cases: dict[int, Case] = {}
        for column in self._ordered(depth):
            known = (self._taken[:], self._lost[:], self._costs[:])
            self._columns.append(column)
            self._put(depth, column)
            self._looked += len(self._events[depth])
            if self._total(self._costs) >= self.limit:
                cases[column] = self._blamed(depth + 1)
            else:
                cases[column] = self._descend(depth + 1)
            self._columns.pop()
            self._taken, self._lost, self._costs = known
            if self.best is not None and self.limit <= self.floor:
                break
        return cases if self._record else ()

    def _ordered(self, depth: int) -> list[int]:
        """The columns to try, those that lose least first."""
        found = self._menu(depth, self._columns)
        extra = dict.fromkeys(found, 0)
        out = 0
        for number, vector in self._events[depth]:
            more = self._more(number)
            if not more:
                continue
            hit = self._moved(self._taken[number], self._image(vector))
            access = self._subspaces[number].access
            alone = self._costs[access] if self._worst else self._total(self._costs)
            if alone + more >= self.limit and not self._record:
                out |= hit
                continue
            for column in found:
                extra[column] += more if hit >> column & 1 else 0
        kept = [column for column in found if not out >> column & 1]
        return sorted(kept, key=lambda column: extra[column])

    def _put(self, depth: int, column: int) -> None:
        """What a coordinate's column means for the subspaces with a vector that ends there."""
        for number, vector in self._events[depth]:
            bank = column ^ self._image(vector)
            if self._taken[number] >> bank & 1:
                demand = self._subspaces[number]
                self._costs[demand.access] += self._more(number)
                self._lost[number] += 1
            else:
                self._taken[number] |= self._moved(self._taken[number], bank)

    def _more(self, number: int) -> int:
        """What it costs if one more direction of a subspace is lost."""
        demand, lost = self._subspaces[number], max(0, self._lost[number] - self._loose)
        more = max(0, self._lost[number] + 1 - self._loose)
        return demand.weight * (max(demand.least, 1 << more) - max(demand.least, 1 << lost))

    def _leaf(self, depth: int) -> Case:
        cost, shared = self._sharing.best(tuple(self._columns))
        if cost < self.limit:
            self.limit = cost
            self.best = Choice(tuple(self._columns), shared, cost)
            self.watch.best = self.limit / self.demands.scale
        return self._blamed(depth)

    def _blamed(self, depth: int) -> Case:
        """The accesses that are why a case is closed: as few as make it cost too much."""
        if not self._record:
            return ()
        if depth == self._count and self._loose:  # which words are shared, concerns all
            return tuple(range(len(self._costs)))
        costs = self._scattered_costs(depth)
        more = {a: cost - self._floors[a] for a, cost in enumerate(costs) if cost > self._floors[a]}
        if self._worst:
            return (max(range(len(costs)), key=lambda a: costs[a]),)
        named, total = list[int](), sum(self._floors)
        for access in sorted(more, key=lambda a: -more[a]):
            if total >= self.limit:
                break
            named.append(access)
            total += more[access]
        return tuple(sorted(named))

    # -- sums over demands -----------------------------------------------------------------------

    def _total(self, costs: list[int]) -> int:
        return max(costs) if self._worst else sum(costs)

    def _scattered_costs(self, depth: int) -> list[int]:
        """The costs of all accesses with what is known of sets that are no subspaces."""
        if not self._scattered:
            return self._costs
        costs = list(self._costs)
        for demand in self._scattered:
            found = scattered_least(demand, self._columns, depth, self._loose)
            costs[demand.access] += demand.weight * max(0, found - demand.least)
        return costs

    # -- sets of columns -------------------------------------------------------------------------

    def _image(self, vector: int) -> int:
        """The sum of the known columns of a vector."""
        result = 0
        while vector:
            low = vector & -vector
            result ^= self._columns[low.bit_length() - 1]
            vector ^= low
        return result

    def _moved(self, columns: int, by: int) -> int:
        """{column ^ by for every column of the set}."""
        while by:
            low = by & -by
            half = self._halves[low.bit_length() - 1]
            columns = (columns & half) << low | columns >> low & half
            by ^= low
        return columns


def every_column(frame: Frame) -> Menu:
    """A new bank bit first, then all sums of those used so far, each with the places allowed."""
    start, most = frame.place_bits, frame.bank_bits - frame.place_bits

    def menu(depth: int, columns: list[int]) -> list[int]:
        used = 0
        for column in columns:
            used |= column >> start
        highs = list(range(1 << used.bit_length()))
        if used.bit_length() < most:
            highs.insert(0, 1 << used.bit_length())
        places = subsets(frame.free[depth - start].places)
        return [low | high << start for high in highs for low in places]

    return menu


def _half(bit: int, bits: int) -> int:
    """The columns that do not have a bit, as a set."""
    return sum(1 << column for column in range(1 << bits) if not column >> bit & 1)


def subsets(mask: int) -> list[int]:
    """All numbers with bits of the mask alone, in order."""
    found, each = [0], mask
    while each:
        found.append(each)
        each = (each - 1) & mask
    return sorted(found)


def _events(subspaces: list[Demand], count: int) -> list[list[tuple[int, int]]]:
    """For each coordinate, which subspaces have a vector that ends there, and the rest of it."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, demand in enumerate(subspaces):
        for vector in Span(demand.basis or ()).basis:
            top = vector.bit_length() - 1
            found[top].append((number, vector ^ 1 << top))
    return found
