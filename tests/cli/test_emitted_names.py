"""`--name` names what a text defines, and the command in its header makes it again."""

from __future__ import annotations

import re
import shlex

import pytest
from tests.cli.conftest import Cli


@pytest.mark.parametrize("words", [
    ["layout", "solve", "transpose:32x32:f32"],
    ["layout", "convert", "--from", "(32,4):(1,32)", "--to", "(32,4):(4,1)",
     "--way", "shuffles"],
    ["explore", "axpy", "--size", "n=64", "--evaluations", "1", "--model"],
    ["map", "total", "--size", "n=32", "--first"],
])  # fmt: skip
def test_a_text_has_the_name_that_is_asked_for(cli: Cli, words: list[str]) -> None:
    ran = cli(*words, "--emit", "c", "--name", "mine", "--no-store")
    assert ran.status == 0
    assert re.search(r"\bmine(_\d+)?\(", ran.out)
    command = re.search(r"// Command: warploom (.*)", ran.out)
    assert command is not None
    assert cli(*shlex.split(command[1]), "--no-store").out == ran.out  # reproducible
    if words[0] != "layout" or words[1] == "convert":
        refused = cli(*words, "--name", "mine", "--no-store")
        assert refused.status == 2
        assert "--name means nothing without --emit" in refused.err
    refused = cli(*words, "--emit", "c", "--name", "my-name", "--no-store")
    assert refused.status == 2
    assert "a name has letters, digits and _" in refused.err
