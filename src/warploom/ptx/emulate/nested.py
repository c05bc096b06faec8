"""Arguments that hold addresses: structures with pointers in them, and arrays of pointers.

    pointers([a, b, c])                                # an array of three addresses
    structure(bytes(24), {0: a, 8: b})                 # its words at bytes 0 and 8 are addresses

What an address leads to may be such an argument itself. The emulator allocates all of it, and
writes the addresses, which the host does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.errors import DeviceError

Array = npt.NDArray[Any]
WORD = 8  # bytes of an address
DEEPEST = 16
Path = tuple[int, ...]  # the number of an argument, then bytes at which addresses stand


@dataclass(frozen=True, eq=False)
class Nested:
    """Bytes, some words of which are addresses of other arrays."""

    data: npt.NDArray[np.uint8]
    pointers: Mapping[int, Any]

    def inner(self, path: Path) -> Iterator[tuple[Path, Any]]:
        """All that it leads to, from the outside inwards."""
        if len(path) > DEEPEST:
            raise DeviceError(f"argument {path[0]}: addresses of addresses, {DEEPEST} deep")
        for place, value in self.pointers.items():
            yield (*path, place), value
            if isinstance(value, Nested):
                yield from value.inner((*path, place))

    def fill(self, path: Path, known: Mapping[Path, int]) -> None:
        """Writes the addresses into its bytes."""
        for place, value in self.pointers.items():
            inner = (*path, place)
            address = 0 if value is None else known[inner]
            self.data[place : place + WORD] = np.array([address], np.uint64).view(np.uint8)
            if isinstance(value, Nested):
                value.fill(inner, known)


def structure(data: Any, pointers: Mapping[int, Any]) -> Nested:
    """A structure: its bytes, as `bytes` or a NumPy record, and what its words at some bytes
    point to: a NumPy array, another structure, or None for a null pointer.

    >>> import numpy as np
    >>> from warploom import ptx
    >>> ptx.structure(np.zeros(2, np.uint64), {8: np.ones(4, np.float32)}).data.size
    16
    """
    raw = data.tobytes() if isinstance(data, np.ndarray | np.generic) else bytes(memoryview(data))
    for place, value in pointers.items():
        whole = isinstance(place, int | np.integer) and place >= 0 and place % WORD == 0
        if not whole or place + WORD > len(raw):
            raise DeviceError(
                f"no address can stand at byte {place!r} of a structure of {len(raw)} bytes",
                advice=f"addresses have {WORD} bytes, and begin at multiples of that",
            )
        if not (value is None or isinstance(value, Nested | np.ndarray)):
            raise DeviceError(
                f"byte {place} of a structure points to a {type(value).__name__}",
                advice="give a NumPy array, a structure or None",
            )
    given = {int(place): value for place, value in pointers.items()}
    return Nested(np.frombuffer(bytearray(raw), np.uint8), given)


def pointers(arrays: Sequence[Any]) -> Nested:
    """An array of pointers, one to each of these arrays."""
    places = {WORD * number: value for number, value in enumerate(arrays)}
    return structure(bytes(WORD * max(1, len(arrays))), places)
