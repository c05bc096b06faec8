"""`python -m warploom`: the command line where its executable is not on the path."""

from warploom.cli import main

main()
