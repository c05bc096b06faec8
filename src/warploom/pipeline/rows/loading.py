"""`warploom.load`: a name of the catalogue, or of a program of rows, as a function on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from warploom.catalogue import loaded
from warploom.catalogue.loaded import TUNE_SECONDS, Loaded
from warploom.errors import CheckError, located, one_of
from warploom.kernel.dtype import DType
from warploom.kernel.wide import index_named
from warploom.pipeline.rows.function import RowFunction
from warploom.pipeline.rows.stated import STATED
from warploom.runtime.callable import Device, check_device
from warploom.search.storage.store import Store

if TYPE_CHECKING:
    from warploom.catalogue.attention.call import Attending

OfRows: TypeAlias = Literal[
    "softmax", "log-softmax", "layer-norm", "rms-norm", "cross-entropy", "softmax-gradient",
    "log-softmax-gradient", "layer-norm-gradient", "rms-norm-gradient", "cross-entropy-gradient",
    "norm-statistics", "scale-gradient", "shift-gradient",
]  # fmt: skip
TYPES = {repr(each): each for each in (DType.F32, DType.F16, DType.BF16)}


@overload
def load(name: Literal["attention"], **how: Any) -> Attending: ...
@overload
def load(name: OfRows, **how: Any) -> RowFunction: ...
@overload
def load(name: str, **how: Any) -> Loaded: ...


@located
def load(
    name: str,
    *,
    device: Device = "auto",
    tune: bool | float = False,
    store: Store | bool = True,
    index_bits: int = 32,
    **settings: Any,
) -> Any:
    """A kernel by name, as a function on arrays: `load("aos-to-soa", fields=5)(x)`.

    Names are those of `warploom.kernels()`, and of programs of rows: `softmax`, `log-softmax`,
    `layer-norm`, `rms-norm`, `cross-entropy` and their gradients. The function takes the inputs, or
    inputs and outputs, of NumPy, CuPy, PyTorch or anything with DLPack. It runs where they are: on
    the caller's current stream of a GPU, or on the simulator.

    Settings that are not given are chosen by rule, for the size of the arrays and the machine,
    `dtype` as the arrays have it. With `tune` they are measured on the GPU when a size comes first,
    for 30 seconds at most or as many as it says, and kept in the store of this user, in the given
    one, or in none (False). Kernels of rows are found by the time model, or measured. With
    `index_bits=64` arrays may have more elements than 32-bit indices allow.

    "attention" is softmax(q·kᵀ)·v on tensors of (batch, heads, length, size). Its options are those
    of `causal`, `window`, `scale`, `soft_cap`, `lse` and `dtype`, which calls may change.

    >>> import numpy as np, warploom
    >>> split = warploom.load("aos-to-soa", fields=3)
    >>> points = np.arange(12, dtype=np.float32).reshape(4, 3)  # x, y, z of four points
    >>> split(points).tolist()
    [[0.0, 3.0, 6.0, 9.0], [1.0, 4.0, 7.0, 10.0], [2.0, 5.0, 8.0, 11.0]]
    >>> softmax = warploom.load("softmax")
    >>> softmax(np.zeros((2, 4), np.float32)).tolist()
    [[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]
    """
    if not isinstance(name, str) or name not in STATED:
        return loaded.load(
            name, device=device, tune=tune, store=store, index_bits=index_bits, **settings
        )
    check_device(device)
    index_named(index_bits)  # rows have as many bits as they need
    options = dict(settings)
    axis, kind = options.pop("axis", -1), options.pop("dtype", None)
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise CheckError(f"axis is a whole number, not {axis!r:.40}")
    if kind is not None and kind not in TYPES:
        raise CheckError(f"there are no rows of {kind!s:.40}", advice=one_of(str(kind), [*TYPES]))
    seconds = None if tune is False else TUNE_SECONDS if tune is True else float(tune)
    dtype = None if kind is None else TYPES[str(kind)]
    return RowFunction(STATED[name], options, device, dtype, axis, seconds, store)
