"""Up to what terms are equal: terms come in, their normal forms under the laws come out.

    a + (b + c)  →  a + b + c        nested folds of one operator are one fold
    + over a     →  a                a fold of one item is that item

Both hold for the operators of `OPERATORS`, of exact numbers; sums and products of floating-point
numbers are reassociated by the first. Of the word `fold` and of functions nothing is known.
`evaluate.py` packs terms in normal form from the start.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.choices import ALWAYS, FLATTENED, NOT_KNOWN
from warploom.errors import CheckError, spelled
from warploom.sketch.term.ir import Fold, Term, fold_of
from warploom.sketch.term.limits import MAX_CELLS, heights
from warploom.sketch.term.operator import OPERATORS, WORD

FLATTEN = "flatten"
# How laws are asked for: `--laws NAME`, `laws="NAME"`.
LAWS: dict[str, tuple[str, ...]] = {"flatten": (FLATTEN,), "none": ()}


def laws_named(name: str) -> tuple[str, ...]:
    if name not in LAWS:
        raise CheckError(f"unknown laws '{name[:40]}'", advice=f"laws: {', '.join(LAWS)}")
    return LAWS[name]


def default_laws(values: Sequence[Term]) -> tuple[str, ...]:
    """Those of a goal that a function gives: none if it says `fold`, which keeps folds apart."""
    words = any(fold.operator == WORD for fold in heights(tuple(values)))
    return () if words else (FLATTEN,)


def obeys(operator: str, laws: tuple[str, ...]) -> bool:
    """Whether folds with this operator flatten and vanish around one item."""
    return FLATTEN in laws and operator in OPERATORS


def laws_said(laws: tuple[str, ...]) -> str:
    """Up to what terms are compared, and what is not known, in words."""
    more = f", {FLATTENED}" if FLATTEN in laws else ""
    return f"{ALWAYS}{more}; {NOT_KNOWN}"


Use = tuple[str, str]  # what a law did, and to which operator

REASSOCIATED, LONE = "reassociated", "a fold of one item is the item"


def uses(terms: Sequence[Term], laws: tuple[str, ...]) -> set[Use]:
    """What the laws change in these terms."""
    found: set[Use] = set()
    for fold in heights(tuple(terms)) if laws else ():
        if obeys(fold.operator, laws):
            inner = {item.operator for item in fold.items if isinstance(item, Fold)}
            found |= {(REASSOCIATED, fold.operator)} if fold.operator in inner else set()
            found |= {(LONE, fold.operator)} if len(fold.items) == 1 else set()
    return found


def check_length(items: int) -> None:
    """Refuses folds that become too long by flattening."""
    if items > MAX_CELLS:
        raise CheckError(
            f"flattened, a fold has more than {MAX_CELLS} items",
            advice="compare without laws: " + spelled("--laws none", "laws='none'"),
        )


def bag(operator: str, term: Term) -> tuple[Term, ...]:
    """What a term in normal form brings into a fold with this operator."""
    return term.items if isinstance(term, Fold) and term.operator == operator else (term,)


def normal_forms(terms: Sequence[Term], laws: tuple[str, ...]) -> tuple[Term, ...]:
    if FLATTEN not in laws:
        return tuple(terms)
    known: dict[Fold, Term] = {}
    return tuple(_normal(term, laws, known) for term in terms)


def _normal(term: Term, laws: tuple[str, ...], known: dict[Fold, Term]) -> Term:
    if not isinstance(term, Fold):
        return term
    if term not in known:
        items = [_normal(item, laws, known) for item in term.items]
        if obeys(term.operator, laws):
            check_length(sum(len(bag(term.operator, item)) for item in items))
            items = [part for item in items for part in bag(term.operator, item)]
        lone = obeys(term.operator, laws) and len(items) == 1
        known[term] = items[0] if lone else fold_of(items, term.operator)
    return known[term]
