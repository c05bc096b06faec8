"""Softmax, norms and cross entropy as functions on arrays, and as operators of PyTorch."""
