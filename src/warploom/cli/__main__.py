"""`python -m warploom.cli` is the `warploom` executable."""

from warploom.cli.start import main

main()
