"""Whether our own checks can be believed: mutants of a kernel must not pass them."""
