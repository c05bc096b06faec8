"""`warploom.load("attention")`: softmax(q·kᵀ)·v as a function on tensors."""
