"""Passes through the banks of shared memory, as the counters of both evaluators keep them.

Who is served together is in `serving.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.machine.record import CUDA, NVIDIA
from warploom.machine.serving import Active, Addresses, RequestKind, Serving, serve

BANKS = CUDA.banks
WIDEST = 16  # bytes of a lane in one request; wider accesses are several


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


def matrix_use(
    addresses: Addresses, active: Active, *, load: bool, serving: Serving = NVIDIA
) -> BankUse:
    """The passes of ldmatrix or stmatrix, of which lanes give the addresses of rows."""
    kind: RequestKind = "ldmatrix" if load else "stmatrix"
    served = serve(serving, addresses, WIDEST, kind, active)
    requests = int(active.any(axis=1).sum())
    return BankUse(requests, int(served.wavefronts.sum()), int(served.ideal.sum()))


def bank_use(
    addresses: Addresses,
    width: int,
    active: Active,
    *,
    load: bool = True,
    serving: Serving = NVIDIA,
) -> BankUse:
    """The passes of one instruction; `addresses` are bytes, one row per warp, one column per lane.

    `load` is for plain loads; atomics are served as stores are.

    >>> import numpy as np
    >>> lanes = np.arange(32)[None]
    >>> bank_use(lanes * 8, 4, np.ones((1, 32), bool)).wavefronts
    2
    >>> [bank_use(lanes * 0, 16, lanes >= 0, load=load).wavefronts for load in (True, False)]
    [2, 4]
    """
    if addresses.shape[1] > serving.lanes:  # warps of 64 lanes ask in two halves
        addresses = addresses.reshape(-1, serving.lanes)
        active = active.reshape(-1, serving.lanes)
    piece = min(width, WIDEST)
    requests = int(active.any(axis=1).sum())
    found = BankUse()
    for offset in range(0, width, piece):
        served = serve(serving, addresses + offset, piece, "ld" if load else "st", active)
        found += BankUse(requests, int(served.wavefronts.sum()), int(served.ideal.sum()))
    return found
