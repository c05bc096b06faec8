"""Shared memory banks: how many passes (wavefronts) the accesses of whole warps take.

Shared memory lies in banks, a word wide. Lanes that want different words of one bank are served
one after another; lanes that want the same word share it. Accesses of 8 (16) bytes are served in
halves (quarters) of the warp, each by the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.machine.coalesce import Active, Addresses
from warploom.machine.record import CUDA

BANKS = CUDA.banks
WORD_BYTES = CUDA.bank_bytes


@dataclass(frozen=True, slots=True)
class BankUse:
    """Warp-wide requests, the passes they took and the passes they would take without conflicts."""

    requests: int = 0
    wavefronts: int = 0
    ideal: int = 0

    @property
    def conflicts(self) -> int:
        return self.wavefronts - self.ideal

    def __add__(self, other: BankUse) -> BankUse:
        return BankUse(
            self.requests + other.requests,
            self.wavefronts + other.wavefronts,
            self.ideal + other.ideal,
        )


def bank_use(addresses: Addresses, width: int, active: Active) -> BankUse:
    """The passes of one instruction; `addresses` are bytes, one row per warp, one column per lane.

    >>> lanes = np.arange(32)[None]
    >>> bank_use(lanes * 8, 4, np.ones((1, 32), bool)).wavefronts
    2
    """
    requests = int(active.any(axis=1).sum())
    words = max(1, width // WORD_BYTES)
    # Wide accesses are served in groups of lanes that together ask for as many words as banks.
    groups = min(words, addresses.shape[1])
    lanes = -(-addresses.shape[1] // groups)
    padded = np.zeros((len(addresses), groups * lanes), dtype=np.int64)
    used = np.zeros(padded.shape, dtype=bool)
    padded[:, : addresses.shape[1]] = addresses
    used[:, : addresses.shape[1]] = active
    first = (padded // WORD_BYTES).reshape(-1, lanes, 1)
    rows = (first + np.arange(words)).reshape(len(first), -1)
    masks = np.repeat(used.reshape(-1, lanes), words, axis=1)
    passes = _passes(rows, masks)
    return BankUse(requests, int(passes.sum()), int(masks.any(axis=1).sum()))


def _passes(words: Addresses, active: Active) -> npt.NDArray[np.int64]:
    """For each row the largest number of different words that fall into one bank."""
    low = np.int64(-1)
    ordered = np.sort(np.where(active, words, low), axis=1)
    fresh = ordered != low
    fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    row, column = np.nonzero(fresh)
    keys = row * BANKS + ordered[row, column] % BANKS
    counts = np.bincount(keys, minlength=len(words) * BANKS).reshape(len(words), BANKS)
    return np.asarray(counts.max(axis=1, initial=0), dtype=np.int64)
