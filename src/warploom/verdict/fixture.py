"""The fixture `judge` of the pytest plugin: what is not shown to be right fails the test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from warploom.errors import WarploomError
from warploom.verdict.answer import Judgement
from warploom.verdict.judged import judge


def passes(
    kernel: Any, reference: Callable[..., Any], args: Mapping[str, Any], *, unknown: bool = False,
    **named: Any,
) -> Judgement:  # fmt: skip
    """`named` are what `warploom.judge` takes. With `unknown` a test passes where nothing was found
    to be wrong, though not everything could be followed."""
    try:
        found = judge(kernel, reference, args, **named)
        said = str(found)
        if found.verdict == "equal" or (unknown and found.verdict == "unknown"):
            return found
    except WarploomError as error:  # a kernel that cannot be judged, or what is said of it
        said = str(error)
    # Outside of the handler: pytest would show the error twice.
    pytest.fail(said, pytrace=False)
