"""`python -m warploom.cli` is the `warploom` executable."""

from warploom.cli.app import main

main()
