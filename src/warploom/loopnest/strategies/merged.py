"""Sums that are added up later written as one sum: α·Σ A·x + β·Σ B·x is Σ (α·A + β·B)·x.

One sum is half the loops of two, and strategies know programs of one fold.
"""

from __future__ import annotations

from warploom.loopnest import ir
from warploom.loopnest.build import Leaf, Node, Term
from warploom.loopnest.rebuild import Rebuilding
from warploom.loopnest.strategies.form import folds_of


def with_one_sum(program: ir.Program) -> ir.Program:
    """The program with its sums merged; as it is, where that is not the same."""
    folds = folds_of(program)
    users = [i for i in program.instructions if any(r.instruction in folds for r in ir.results(i))]
    if len(folds) < 2 or any(each in folds for each in users) or not _alike(folds):
        return program
    return _Merging(program, folds).done_or(program)


def _alike(folds: list[ir.Instruction]) -> bool:
    """Whether all are sums of floats from zero over the same axes."""
    kinds = {
        (each.axes, tuple(dim.axis for dim in each.over if dim.tile is None)) for each in folds
    }
    starts = [each.running.start.action for each in folds if each.running is not None]
    zero = all(
        isinstance(a, ir.Compute) and isinstance(o := a.operands[0], ir.Constant) and o.value == 0
        for a in starts
    )
    ops = {each.action.op for each in folds if isinstance(each.action, ir.Compute)}
    floats = all(each.dtype.is_float for each in folds)
    return len(kinds) == 1 and zero and ops <= {"+", "fma"} and floats


class _NotLinearError(Exception):
    pass


class _Merging(Rebuilding):
    """A sum stands for what it adds up, until who uses them all is written."""

    def __init__(self, program: ir.Program, folds: list[ir.Instruction]) -> None:
        super().__init__(program, {})
        self.folds = folds
        self.summands: dict[Leaf, Term] = {}
        self.merged = False

    def done_or(self, program: ir.Program) -> ir.Program:
        try:
            made = self.done()
        except _NotLinearError:
            return program
        return made if self.merged else program

    def write(self, each: ir.Instruction) -> None:
        if each in self.folds:
            _, expression = self.summand(each)
            stands = Leaf(ir.Constant(0.0), each.dtype)
            self.values[each], self.summands[stands] = stands, expression
            return
        uses = [r for r in ir.results(each) if r.instruction in self.folds]
        if isinstance(each.action, ir.Store) and uses:
            raise _NotLinearError
        tree = self.node(each) if isinstance(each.action, ir.Compute) else None
        if tree is None or not (held := self._sums_in(tree)):
            super().write(each)
            return
        if set(held) != set(self.summands) or not self._is_linear(tree):
            raise _NotLinearError
        self.values[each], self.merged = self._one(tree), True

    def _one(self, tree: Term) -> Leaf:
        """The sum of the tree, with a factor that all have outside."""
        factors = [
            set(each.operands) if isinstance(each, Node) and each.op == "*" else set()
            for each in self.summands.values()
        ]
        common = next((f for f in factors[0] if all(f in own for own in factors)), None)
        over = [self.axes[dim.axis].axes[0] for dim in self.folds[0].over if dim.tile is None]
        whole = self._with(tree, common)
        if common is not None:
            whole = Node("*", (whole, common), whole.dtype)
        return self.nest.sum(whole, over=over)

    def _with(self, tree: Term, common: Term | None) -> Term:
        if isinstance(tree, Leaf):
            summand = self.summands.get(tree)
            if summand is None or common is None or not isinstance(summand, Node):
                return summand or tree
            return next(each for each in summand.operands if each is not common)
        return Node(tree.op, tuple(self._with(o, common) for o in tree.operands), tree.dtype)

    def _sums_in(self, tree: Term) -> list[Leaf]:
        if isinstance(tree, Leaf):
            return [tree] if tree in self.summands else []
        return [leaf for each in tree.operands for leaf in self._sums_in(each)]

    def _is_linear(self, tree: Term) -> bool:
        """A sum of multiples of the sums, by numbers that are the same everywhere."""
        if isinstance(tree, Leaf):
            return tree in self.summands
        if tree.op in ("+", "-", "neg"):
            return all(map(self._is_linear, tree.operands))
        if tree.op != "*":
            return False
        scales = [each for each in tree.operands if not self._sums_in(each)]
        others = [each for each in tree.operands if self._sums_in(each)]
        numbers = all(
            isinstance(each, Leaf) and isinstance(each.value, ir.Constant | ir.Parameter)
            for each in scales
        )
        return numbers and len(others) == 1 and self._is_linear(others[0])
