"""What every engine shares; declared spaces, their propagation and their search."""
