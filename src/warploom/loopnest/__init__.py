"""Loop nests: instructions over dimensions, all their implementations as one space, kernels."""
