"""Functional arrays: what to compute, as expressions; which map runs where is found by search."""
