"""Search for the cheapest solution where a cost has to be measured: few candidates can be, so that
a bound and what was measured so far say which.

In comes an exploration: a problem with a bound, and `measure`, which gives a cost for each of some
solutions (infinite where one fails). Out goes a stream of improvements. Candidates whose bound is
not below the best cost are never looked at again. `random_search` draws every decision with
probability by how far the bound is below the best cost; `tree_search` grows a tree on top of that
by threshold ascent (de Mesmay et al. 2009): it goes where most of the best costs came from. The
tree holds decisions and costs, no candidates: those are made again from the decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from warploom.search.branching.bound import Best
from warploom.search.branching.candidate import Bits, Candidates, Flags, Index, Numbers
from warploom.search.branching.descent import Descents, descended, drawn_child, seeds
from warploom.search.branching.problem import Measure, SpaceProblem, children, start
from warploom.search.budget import Budget
from warploom.search.engine import Gathered, OnProgress, Result, Watch, gather
from warploom.search.outcome import Found, Impossible, Outcome, Reason, Undecided

# Best costs that are remembered of each edge, and how greedy the ascent is (larger is greedier).
KEPT = 10
GREED = 1.0

SOON = 4  # solutions in the first batch: later ones grow with what is known

Engine = Callable[["Exploration", Watch], Iterator[Best]]
# Descents from candidates by their seeds, below a cost.
Descend = Callable[[Candidates, Bits, float, Watch], Descents]


@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """`measure` is asked for `batch` solutions at a time, at most, for `evaluations` in all, never
    for one twice. `cut` is a cost to start from: nothing that is not below it is wanted. `descend`
    are others who do the descents; where these end does not depend on who does them."""

    problem: SpaceProblem
    measure: Callable[[Candidates], Numbers]
    evaluations: int
    batch: int = 16
    seed: int = 0
    cut: float = math.inf
    kept: int = KEPT
    greed: float = GREED
    descend: Descend | None = None


def below(problem: SpaceProblem, cost: float, watch: Watch) -> Measure:
    """Weights of candidates, in proportion to what could be won."""

    def weights(candidates: Candidates) -> Numbers:
        bounds = _bounds(problem, candidates)
        watch.tally("candidates").prune("bound", int(np.count_nonzero(bounds >= cost)))
        return _weights(bounds, cost)

    return weights


def _bounds(problem: SpaceProblem, candidates: Candidates) -> Numbers:
    return np.zeros(len(candidates)) if problem.bound is None else problem.bound(candidates)


@dataclass(slots=True, eq=False)
class _Best:
    """What was measured: the best cost, and the cost of every solution seen."""

    exploration: Exploration
    watch: Watch
    cost: float
    known: dict[bytes, float] = field(default_factory=dict)

    @property
    def left(self) -> int:
        return self.exploration.evaluations - len(self.known)

    @property
    def wanted(self) -> int:
        """In the next batch."""
        return min(self.exploration.batch, self.left, max(SOON, len(self.known)))

    def descended(self, here: Candidates, random: np.random.Generator) -> Descents:
        problem, seed = self.exploration.problem, seeds(len(here), random)
        if self.exploration.descend is not None:
            return self.exploration.descend(here, seed, self.cost, self.watch)
        return descended(problem, here, seed, below(problem, self.cost, self.watch), self.watch)

    def measured(self, leaves: Candidates) -> tuple[Numbers, list[Best]]:
        """The cost of each, and improvements among them. Beyond the evaluations that are left:
        infinite."""
        keys = [leaves.domains[row].tobytes() for row in range(len(leaves))]
        new = list(dict.fromkeys(key for key in keys if key not in self.known))[: self.left]
        if new:
            rows = np.array([keys.index(key) for key in new])
            costs = np.asarray(self.exploration.measure(leaves.take(rows)), np.float64)
            self.known |= dict(zip(new, costs.tolist(), strict=True))
        found = []
        for row, key in enumerate(keys):
            if key in new and self.known[key] < self.cost:
                self.cost = self.watch.best = self.known[key]
                found.append(Best(leaves.take(slice(row, row + 1)), self.cost))
        return np.array([self.known.get(key, math.inf) for key in keys]), found


def _weights(bounds: Numbers, cost: float) -> Numbers:
    if math.isinf(cost):
        return 1.0 / (bounds + 1e-6)
    return np.maximum(cost - bounds, 0.0)


# -- random ----------------------------------------------------------------------------------------


def random_improvements(exploration: Exploration, watch: Watch) -> Iterator[Best]:
    problem, random = exploration.problem, np.random.default_rng(exploration.seed)
    best = _Best(exploration, watch, exploration.cut)
    root = start(problem, watch)
    fruitless = 0
    while best.left > 0 and len(root) and fruitless < FRUITLESS:
        before = best.left
        here = root.take(np.zeros(best.wanted, np.int64))
        found = best.descended(here, random)
        yield from best.measured(found.leaves.take(found.arrived))[1]
        fruitless = fruitless + 1 if best.left == before else 0


# Batches without a solution that is new: then everything that is not cut has been seen, or nearly.
FRUITLESS = 50


# -- tree ------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Edge:
    """A decision: `bits` at the position of its node. Costs are the best that came through it."""

    bits: int
    bound: float
    visits: int = 0
    costs: list[float] = field(default_factory=list)
    node: _Node | None = None
    dead: bool = False


@dataclass(slots=True, eq=False)
class _Node:
    """What is decided here, and the values that it may have."""

    position: int
    edges: list[_Edge]


@dataclass(slots=True, eq=False)
class _Path:
    """From the root to an edge whose node is not there yet; none at the root itself."""

    nodes: list[_Node] = field(default_factory=list)
    edges: list[_Edge] = field(default_factory=list)


class _Tree:
    def __init__(self, exploration: Exploration, watch: Watch) -> None:
        self.exploration, self.watch = exploration, watch
        self.problem = exploration.problem
        self.random = np.random.default_rng(exploration.seed)
        self.best = _Best(exploration, watch, exploration.cut)
        self.root = start(self.problem, watch)
        self.top: _Node | None = None
        self.dead = not len(self.root)

    def improvements(self) -> Iterator[Best]:
        fruitless = 0
        while not self.dead and self.best.left > 0 and fruitless < FRUITLESS:
            self.watch.pause("tree search")
            before = self.best.left
            chosen = (self._selected() for _ in range(self.best.wanted))
            paths = [path for path in chosen if path is not None]
            yield from self._rolled_out(paths)
            fruitless = fruitless + 1 if self.best.left == before else 0

    # -- selection ---------------------------------------------------------------------------------

    def _selected(self) -> _Path | None:
        """Down to an edge without a node; visits are noted on the way down, so that the next one
        goes elsewhere."""
        path, node = _Path(), self.top
        while node is not None:
            edge = self._chosen(node)
            if edge is None:
                self._kill(path)
                return None
            edge.visits += 1
            path.nodes.append(node)
            path.edges.append(edge)
            node = edge.node
        return path

    def _chosen(self, node: _Node) -> _Edge | None:
        cost = self.best.cost
        alive = [edge for edge in node.edges if not edge.dead and edge.bound < cost]
        if not alive:
            return None
        fresh = [edge for edge in alive if edge.visits == 0]
        if fresh:
            weights = _weights(np.array([edge.bound for edge in fresh]), cost)
            return fresh[int(drawn_child(np.zeros(len(fresh), np.int64), weights, self.random)[0])]
        return max(zip(self._scores(alive), range(len(alive)), alive, strict=True))[2]

    def _scores(self, edges: list[_Edge]) -> list[float]:
        """Upper confidence bounds on how often an edge gives one of the best costs."""
        costs = sorted(cost for edge in edges for cost in edge.costs)
        threshold = costs[min(self.exploration.kept, len(costs)) - 1] if costs else math.inf
        visits = sum(edge.visits for edge in edges)
        alpha = max(0.0, math.log(2 * visits * len(edges) / self.exploration.greed))
        scores = []
        for edge in edges:
            good = sum(cost <= threshold for cost in edge.costs)
            root = math.sqrt(alpha * (2 * good + alpha))
            scores.append((good + alpha + root) / edge.visits)
        return scores

    def _kill(self, path: _Path) -> None:
        """The last edge leads nowhere; nor do those before it that have no other."""
        while path.edges:
            edge, node = path.edges.pop(), path.nodes.pop()
            edge.dead, edge.node = True, None
            if any(not other.dead and other.bound < self.best.cost for other in node.edges):
                return
        self.dead = True

    # -- expansion and roll-out --------------------------------------------------------------------

    def _rolled_out(self, paths: list[_Path]) -> Iterator[Best]:
        if not paths:
            return
        here, alive = self._states(paths)
        for path, living in zip(paths, alive.tolist(), strict=True):
            if not living:
                self._kill(path)
        paths = [path for path, living in zip(paths, alive.tolist(), strict=True) if living]
        position = self.problem.brancher(here)
        leaves = position < 0
        self._expand(paths, here, position)
        found = self.best.descended(here, self.random)
        costs, improved = self.best.measured(found.leaves.take(found.arrived))
        yield from improved
        measured = iter(costs.tolist())
        for at, path in enumerate(paths):
            if found.arrived[at]:
                self._credit(path, next(measured))
            if leaves[at]:
                self._kill(path)

    def _states(self, paths: list[_Path]) -> tuple[Candidates, Flags]:
        """Decisions commute: those of a path are taken all at once."""
        rows = [at for at, path in enumerate(paths) for _ in path.edges]
        places = [node.position for path in paths for node in path.nodes]
        bits = [edge.bits for path in paths for edge in path.edges]
        here = self.root.take(np.zeros(len(paths), np.int64))
        alive = self.problem.propagator.restrict(
            here,
            np.array(rows, np.int64),
            np.array(places, np.int64),
            np.array(bits, np.uint64),
        )
        return here.take(alive), alive

    def _expand(self, paths: list[_Path], here: Candidates, position: Index) -> None:
        """A node behind each last edge, with all children, bounded at least as their parent."""
        inner = np.flatnonzero(position >= 0)
        if not len(inner):
            return
        made = children(self.problem, here.take(inner), position[inner], self.watch)
        bounds = _bounds(self.problem, made.candidates)
        at = position[inner][made.parent]
        bits = made.candidates.domains[np.arange(len(at)), at].tolist()
        for number, row in enumerate(inner.tolist()):
            own = np.flatnonzero(made.parent == number)
            path = paths[row]
            inherited = path.edges[-1].bound if path.edges else 0.0
            edges = [_Edge(bits[c], max(inherited, float(bounds[c]))) for c in own.tolist()]
            node = _Node(int(position[row]), edges)
            if path.edges:
                path.edges[-1].node = node
            elif self.top is None:
                self.top = node

    def _credit(self, path: _Path, cost: float) -> None:
        if math.isfinite(cost):
            for edge in path.edges:
                edge.costs = sorted([*edge.costs, cost])[: self.exploration.kept]


def tree_improvements(exploration: Exploration, watch: Watch) -> Iterator[Best]:
    return _Tree(exploration, watch).improvements()


# -- as engines ------------------------------------------------------------------------------------


def explore(
    engine: Engine,
    exploration: Exploration,
    budget: Budget | None = None,
    on_progress: OnProgress | None = None,
) -> Result[Best]:
    """The best solution that was found. Not complete: what was not measured may be better."""
    watch = Watch(budget or Budget(), on_progress)
    gathered = gather(engine(exploration, watch), budget=watch.budget)
    watch.clock.lap("search")
    return Result(_outcome(exploration.problem, gathered), watch.statistics())


def _outcome(problem: SpaceProblem, gathered: Gathered[Best]) -> Outcome[Best]:
    """Without an answer it is "impossible" only if propagation alone says so."""
    if gathered.answers:
        return Found(gathered.answers[-1], complete=False, stopped=gathered.stopped)
    if not len(problem.propagator.root(problem.decisions)):
        return Impossible()
    return Undecided(gathered.stopped or Reason.EVALUATIONS)
