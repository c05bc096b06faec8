"""Attention: softmax(Q·Kᵀ·scale + mask)·V as one kernel."""
