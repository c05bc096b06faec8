"""The search for a layout with the fewest wavefronts, its answers and certificates."""
