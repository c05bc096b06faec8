"""The command line called inside of a test: its exit status, and all that it printed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from warploom.cli.app import Application, application
from warploom.cli.start import COMMANDS


class Called(NamedTuple):
    exit_code: int
    output: str


def everything() -> Application:
    """The application with all commands."""
    return application(*COMMANDS)


def called(words: Sequence[str]) -> Called:
    """What a user would see of both streams, and the exit status."""
    both = io.StringIO()
    with redirect_stdout(both), redirect_stderr(both):
        try:
            everything()(list(words))
        except SystemExit as left:
            return Called(int(left.code or 0), both.getvalue())
