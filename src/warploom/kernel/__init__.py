"""SIMT kernels: what they are, when they are well formed, what they mean and cost."""
