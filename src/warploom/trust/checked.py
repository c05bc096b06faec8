"""What every checker of certificates says, and how each knows that nothing was changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import CheckError


@dataclass(frozen=True, slots=True)
class Checked:
    """What a certificate shows; `open` is what it leaves open, if anything."""

    shown: tuple[str, ...]
    open: str = ""


def digest(record: dict[str, Any], but: Collection[str] = ("digest",)) -> str:
    """Of all parts of a record but some."""
    rest = {key: value for key, value in record.items() if key not in but}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def require(holds: bool, message: str) -> None:
    if not holds:
        raise CheckError(f"the certificate does not hold: {message}")


def whole_numbers(given: object) -> npt.NDArray[np.int64]:
    """A table as it stands in a record; nothing is rounded."""
    found = np.array(given)
    require(found.dtype == np.int64, "there are numbers that are not whole")
    return found
