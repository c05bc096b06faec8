"""The command line inside the test process, as the tests of `cli/` run it."""

from tests.cli.conftest import cli

__all__ = ["cli"]
