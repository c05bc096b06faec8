"""Costs of permutations, as `python -m bench.catalogue.permute_fit` prints them."""

from __future__ import annotations

COSTS: dict[str, float] = {}
