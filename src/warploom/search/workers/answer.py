"""An answer of a worker elsewhere: what a function gave there, and which sources made it.

The value travels as bytes that are read only once the digest is right: an object of other sources
may not be what its class says here.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warploom.errors import DeviceError
from warploom.search.workers.sources import CHANGED, running_digest

# What a worker says that has no Warploom, or one without what we ask for.
_MISSING = re.compile(
    r"No module named '(?P<module>warploom[\w.]*)'|attribute '\w+' (on|of) <?module '?warploom"
    r"|module 'warploom[\w.]*' has no attribute|cannot import name '\w+' from '?warploom"
)
_MARK = "warploom answer 1"  # the form of the tuple below


def packed(
    token: str, who: str, fn: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[str, str, str, str, bytes]:
    """Called over there. The digest is taken last: modules may have been loaded by the work."""
    try:
        value = pickle.dumps((True, fn(*args, **named)))
    except Exception as error:  # noqa: BLE001  # it is raised where it was asked for
        value = error_bytes(error)
    return _MARK, token, who, running_digest(), value


def error_bytes(error: Exception) -> bytes:
    """An error as it travels, or its words where it cannot."""
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
    except Exception:  # noqa: BLE001  # an error that cannot travel
        return pickle.dumps((False, DeviceError(f"{type(error).__name__}: {error}")))
    return answer


@dataclass(frozen=True, slots=True)
class Answer:
    who: str
    digest: str
    packed: bytes

    def value(self) -> tuple[bool, Any]:
        """Whether it succeeded, and the result or the error."""
        succeeded, value = pickle.loads(self.packed)
        return bool(succeeded), value


def answer_to(token: str, said: object) -> Answer | None:
    """What was said, if it is an answer to that question."""
    match said:
        case (str(mark), str(to), str(who), str(digest), bytes(value)):
            return Answer(who, digest, value) if (mark, to) == (_MARK, token) else None
    return None


def fault_of(said: object, ours: str) -> str | None:
    """What is wrong with a worker that says this of its sources: its digest, or an error, which
    may come wrapped in another."""
    if said == CHANGED:
        return "runs Warploom from files that changed after it was loaded"
    missing = _MISSING.search(str(said)) if isinstance(said, Exception) else None
    if missing is not None and missing["module"] == "warploom":
        return "has no Warploom installed"
    if isinstance(said, str) or missing is not None:
        return None if said == ours else "runs other sources of Warploom than this command"
    return f"cannot load Warploom ({type(said).__name__}: {str(said)[:120]})"
