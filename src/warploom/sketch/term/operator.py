"""What a fold may stand for: operators by their signs, and what is known of each.

Every operator commutes and associates, so that a multiset of items says it all. The word `fold` is
none yet: how a sketch and its goal are read together (`read.py`) says which. A name such as
`mean()` is a function of one item of which nothing is known but its name.
"""

from __future__ import annotations

import math

# Each operator with its neutral element, which is what a zero is to a fold that consumes it.
NEUTRAL: dict[str, float] = {
    "+": 0, "*": 1, "min": math.inf, "max": -math.inf, "&": -1, "|": 0, "^": 0,
}  # fmt: skip
OPERATORS = tuple(NEUTRAL)
WORD = "fold"

_VERBS = {
    "+": "adds", "*": "multiplies", "min": "takes the minimum", "max": "takes the maximum",
    "&": "takes the bitwise and", "|": "takes the bitwise or", "^": "takes the exclusive or",
}  # fmt: skip


def is_function(operator: str) -> bool:
    """Whether a fold is a named function of one item."""
    return operator.endswith("()")


def function(name: str) -> str:
    """The operator that stands for a function: `mean` is `mean()`."""
    return f"{name}()"


def neutral(operator: str) -> float:
    """What a zero is to this fold; to a function, and to a fold that nobody knows, it is 0."""
    return NEUTRAL.get(operator, 0)


def says(operator: str) -> str:
    """What a fold with this operator does, in words."""
    if is_function(operator):
        return f"computes '{operator.removesuffix('()')}'"
    return f"{_VERBS[operator]} ({operator})" if operator in _VERBS else f"is written '{operator}'"
