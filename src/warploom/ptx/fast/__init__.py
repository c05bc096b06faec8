"""The fast engine: a kernel as C, lanes as vectors. The NumPy evaluator stays the definition."""
