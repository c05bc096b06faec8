"""Products of matrices by the tensor cores of warp groups: their own space of decisions."""
