"""Fills the holes of a sketch: all fills, the first or the best, soundly pruned and verified."""
