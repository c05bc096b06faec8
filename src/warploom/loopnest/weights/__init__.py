"""Products of matrices whose second factor is integers of few bits: a space of decisions."""
