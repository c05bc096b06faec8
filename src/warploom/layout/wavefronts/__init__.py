"""What a layout costs under a pattern: wavefronts, bank conflicts, bounds."""
