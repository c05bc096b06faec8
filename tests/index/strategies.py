"""Random index expressions over a few variables, and the values to try them on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from warploom.index.ir import BINARY, UNARY, Binary, Const, Expr, Select, Unary, Var

NAMES = ("x", "y", "z")
BOUNDS = {"x": (-5, 6), "y": (0, 7), "z": (-3, -1)}


def _larger(part: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(lambda op, a: Unary(op, a), st.sampled_from(UNARY), part),
        st.builds(lambda op, a, b: Binary(op, a, b), st.sampled_from(BINARY), part, part),
        # Division and remainder by a constant are what index arithmetic is made of.
        st.builds(
            lambda op, a, b: Binary(op, a, Const(b)),
            st.sampled_from(("+", "-", "*", "//", "%", "&", "^", ">>", "<", "==")),
            part,
            st.sampled_from((1, 2, 3, 4, 6, 8)),
        ),
        st.builds(lambda c, a, b: Select(c, a, b), part, part, part),
    )


def expressions(max_leaves: int = 8) -> st.SearchStrategy[Expr]:
    """Any expression of the language; it may be undefined for some or all values."""
    leaves = st.one_of(
        st.builds(lambda name: Var(name), st.sampled_from(NAMES)),
        st.builds(lambda value: Const(value), st.integers(-9, 9)),
    )
    return st.recursive(leaves, _larger, max_leaves=max_leaves)


def environments() -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({name: st.integers(*BOUNDS[name]) for name in NAMES})


def grid() -> dict[str, np.ndarray]:
    """Every value of BOUNDS, as flat arrays."""
    axes = [np.arange(low, high + 1) for low, high in (BOUNDS[name] for name in NAMES)]
    return {name: axis.ravel() for name, axis in zip(NAMES, np.meshgrid(*axes), strict=True)}
