"""Is a kernel equal to its reference, for all inputs of a shape: `warploom.judge`."""
