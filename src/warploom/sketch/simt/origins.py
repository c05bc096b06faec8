"""What of a sketch the names of its kernel stand for, and arrays that no kernel can have."""

from __future__ import annotations

from warploom.errors import CheckError, UnsupportedError
from warploom.sketch.code.origin import Origin
from warploom.sketch.code.tiling import size_names
from warploom.sketch.simt.ir import Traced

_MOST_AXES = 3  # of what a grid counts


def origins(traced: Traced) -> dict[str, Origin]:
    """What has a name in a sketch; values have none that the user gave."""
    ours = traced.spans.keys() - traced.arrays.keys() - traced.extents.keys()
    return {
        name: Origin("a value made here" if name in ours else f"'{name}'", span)
        for name, span in traced.spans.items()
    }


def check_arrays(traced: Traced) -> None:
    """Refuses arrays whose lengths a kernel cannot take as parameters."""
    for array in traced.arrays.values():
        if array.space not in ("input", "output"):
            continue
        if len(array.shape) > _MOST_AXES:
            raise UnsupportedError(
                f"'{array.name}' has {len(array.shape)} axes, in a kernel",
                traced.spans.get(array.name),
                f"arrays of a kernel have at most {_MOST_AXES}; put some together",
            )
        for name in size_names(array):
            if name in traced.arrays:
                raise CheckError(
                    f"'{name}' is what a kernel calls a length of '{array.name}'",
                    traced.spans.get(name),
                    "give the array another name",
                )
