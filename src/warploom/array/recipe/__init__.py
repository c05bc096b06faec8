"""Rewriting recipes: what to compute → a mid-level expression, tiled and with memories."""
