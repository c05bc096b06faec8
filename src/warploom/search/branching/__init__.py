"""Branching over candidates: enumeration, branch and bound, random descents, estimates."""
