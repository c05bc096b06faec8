"""Declared spaces: choices, counters and constraints over objects, and what they mean."""
