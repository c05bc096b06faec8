"""Loop nests. Every core has work of its own, so NumPy's libraries take one thread each, as is said
before anything here imports NumPy."""

from os import environ

for library in ("OMP", "OPENBLAS", "MKL"):
    environ.setdefault(f"{library}_NUM_THREADS", "1")
