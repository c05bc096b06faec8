"""Propagation: what a decision rules out elsewhere, for a whole batch of candidates at once."""
