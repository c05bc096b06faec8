"""References for `warploom judge`: NumPy functions; parameters are arguments of the kernel."""

import numpy as np


def softmax(x):
    made = np.exp(x - x.max(axis=1, keepdims=True))
    return made / made.sum(axis=1, keepdims=True)
