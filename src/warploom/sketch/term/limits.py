"""How big a sketch may be. Bad sizes are refused before anything is allocated for them."""

from __future__ import annotations

import math

from warploom.errors import CheckError, Span
from warploom.sketch.term.ir import Fold, Shape, Term
from warploom.sketch.term.operator import is_function

MAX_TEXT = 1 << 22  # characters of one sketch file
MAX_WORDS = 1 << 18  # words of one sketch file; plain numbers in a row count as one
MAX_NAME = 200  # characters of one name
MAX_CELLS = 1 << 22  # cells of one array
MAX_TOTAL = 1 << 23  # cells of all arrays of a sketch together
MAX_RANK = 32  # NumPy 1 goes no further
MAX_NESTING = 32  # blocks in blocks, folds in folds: keeps every recursion shallow


def check_shape(shape: Shape, span: Span | None = None) -> None:
    """Refuses shapes with a size below one, too many axes or too many cells."""
    if len(shape) > MAX_RANK:
        raise CheckError(f"an array has at most {MAX_RANK} axes, this one has {len(shape)}", span)
    if any(length <= 0 for length in shape):
        raise CheckError(
            f"every size of a shape is at least 1, got {show_shape(shape)}",
            span,
            "an array without cells cannot hold anything",
        )
    if math.prod(shape) > MAX_CELLS:
        raise CheckError(
            f"{show_shape(shape)} has {math.prod(shape)} cells, more than {MAX_CELLS}",
            span,
            "sketch one warp or one block of the kernel, not the whole array",
        )


def check_run(operator: str, length: int) -> None:
    """Refuses a function of several items: only folds have those."""
    if is_function(operator) and length != 1:
        raise CheckError(
            f"'{operator}' takes one item, not {length}", advice="fold the items with + or * first"
        )


def show_shape(shape: Shape) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def heights(terms: tuple[Term, ...]) -> dict[Fold, int]:
    """For each fold in the terms, how deep folds nest in it: 1 for a fold of symbols.

    Refuses terms that nest deeper than `MAX_NESTING`, however deep, without recursion.
    """
    known: dict[Fold, int] = {}
    stack: list[tuple[Fold, int]] = [(term, 1) for term in terms if isinstance(term, Fold)]
    while stack:
        term, depth = stack[-1]
        if term in known:
            stack.pop()
            continue
        if depth > MAX_NESTING:
            raise CheckError(f"folds nest at most {MAX_NESTING} deep")
        inner = [item for item in term.items if isinstance(item, Fold)]
        missing = [(item, depth + 1) for item in inner if item not in known]
        if missing:
            stack += missing
            continue
        known[term] = 1 + max((known[item] for item in inner), default=0)
        stack.pop()
    return known


def height(terms: tuple[Term, ...]) -> int:
    """How deep folds nest in any of the terms; 0 without folds."""
    tallest = max(heights(terms).values(), default=0)
    if tallest > MAX_NESTING:
        raise CheckError(f"folds nest at most {MAX_NESTING} deep")
    return tallest
