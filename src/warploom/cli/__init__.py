"""The command line: one module for each command; `main` is what the `warploom` executable calls."""

from warploom.cli.start import main

__all__ = ["main"]
