"""Rewriting of array expressions: laws, where they apply, strategies."""
