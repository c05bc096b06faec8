"""Runs the command line inside the test process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest
from tests.cli.calls import everything

app = everything()


class Ran(NamedTuple):
    status: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli("synth", "a.swflow", stdin=b"…")` gives the exit status and what was printed."""

    def run(*args: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as left:
            app(list(args))
        out, err = capsys.readouterr()
        code = left.value.code
        return Ran(int(code or 0), out, err)

    return run
