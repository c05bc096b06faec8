"""A tensor with its axes in another order: the problem, the rule, the kernels, the call."""
