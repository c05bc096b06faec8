"""`warploom.compile`: a sketch, or what its search gave, becomes a function on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.errors import CheckError, DeviceError, located
from warploom.index.ir import whole_number
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import Kernel
from warploom.kernel.wide import index_named
from warploom.pipeline.length import output_shapes
from warploom.pipeline.subject import Layout, Subject, dtype_named, tiled
from warploom.runtime.callable import Callable, Device, load
from warploom.runtime.plan import not_by_name
from warploom.runtime.view import is_complex, view
from warploom.search.budget import Budget
from warploom.sketch.code.need import scalars_of
from warploom.sketch.code.tiling import Array, Tiled
from warploom.sketch.term.ir import Shape, size


@located
def compiled(
    sketch: Subject,
    *,
    goal: int = 0,
    lanes: int | None = None,
    steps: Mapping[str, int] | None = None,
    dtype: DType | str = f32,
    warps: int = 4,
    device: Device = "auto",
    budget: Budget | None = None,
    index_bits: int = 32,
) -> Compiled:
    """A sketch of either kind, or what its search gave, as a function on arrays.

    The best fill is searched, verified and run on the simulator before anything comes back.
    `lanes` is the length of the axis across lanes; `steps={"x": 32, "w": 0}` says how far apart the
    tiles of an input begin (0: all read the same). The result takes the inputs, or inputs and
    outputs; `.text("cuda")` is the kernel, and where it runs is the `device` of `runtime.load`.
    With `index_bits=64` arrays may have more elements than 32-bit indices allow.
    """
    if steps is not None and not isinstance(steps, Mapping):
        raise CheckError(
            f"steps are numbers by input, not {steps!r:.40}", advice='write steps={"x": 32}'
        )
    apart = {name: _number(step) for name, step in (steps or {}).items()}
    kind, index = dtype_named(dtype), index_named(index_bits)
    layout = Layout(_number(lanes), apart, kind, _number(warps), index=index)
    return Compiled(tiled(sketch, layout, goal=goal, budget=budget), device)


def _number(given: Any) -> Any:
    """NumPy's whole numbers are as good as Python's; what is none is refused later, by name."""
    whole = whole_number(given)
    return given if whole is None else whole


class Compiled:
    """A kernel of a sketch, ready to run: called with its inputs it makes its outputs."""

    def __init__(self, made: Tiled, device: Device = "auto") -> None:
        self.tiled = made
        self.function: Callable = load(made.kernel, device)

    @property
    def kernel(self) -> Kernel:
        return self.tiled.kernel

    @located
    def text(self, language: Language = "cuda") -> str:
        """The kernel in a language by its name, such as `cuda`."""
        return emit(self.kernel, language)

    def __repr__(self) -> str:
        tiling = self.tiled.tiling
        inputs = ", ".join(array.name for array in tiling.inputs)
        outputs = ", ".join(array.name for array in tiling.outputs)
        return f"<warploom sketch {tiling.name}: {inputs} -> {outputs}>"

    @located
    def __call__(self, *arrays: Any, stream: Any = None, **named: object) -> Any:
        """The outputs of these inputs; outputs may be given, too, after the inputs.

        Where a term sketch writes tiles of several axes, and inputs are whole tiles in that shape,
        axes in front of them or none, outputs are made in the shape of theirs.
        """
        for name in named:
            raise not_by_name(name)
        tiling = self.tiled.tiling
        inputs, outputs = tiling.inputs, tiling.outputs
        if len(arrays) not in (len(inputs), len(inputs) + len(outputs)):
            names = ", ".join(a.name for a in inputs)
            more = ", ".join(a.name for a in outputs)
            raise DeviceError(
                f"'{tiling.name}' takes ({names}) or ({names}, {more}), "
                f"but {len(arrays)} arguments are given"
            )
        given = dict(zip((a.name for a in (*inputs, *outputs)), arrays, strict=False))
        own = {name: view(array, name).shape for name, array in given.items()}
        shapes = {
            a.name: _shape_of(given[a.name], own[a.name], a)
            for a in (*inputs, *outputs)
            if a.name in given
        }
        if len(arrays) == len(inputs):
            shapes |= output_shapes(tiling, shapes)
        in_order = [given[param.name] for param in self.kernel.arrays if param.name in given]
        made = self.function(*in_order, stream=stream, **scalars_of(tiling, shapes))
        if len(arrays) > len(inputs):
            return made
        fronts = {_in_front(own[a.name], a) for a in inputs if a.space == "input"}
        front = fronts.pop() if len(fronts) == 1 else None
        several = made if isinstance(made, tuple) else (made,)
        shaped = tuple(
            each.reshape(_made_shape(array, shapes[array.name], front))
            for each, array in zip(several, outputs, strict=True)
        )
        return shaped[0] if len(shaped) == 1 else shaped


def _in_front(own: Shape, array: Array) -> Shape | None:
    """The axes in front of whole tiles that are given in the shape that the sketch writes; None of
    an array of one axis, where tiles lie in a line, or if tiles do not lie side by side."""
    tile = array.written
    if len(own) == 1 or not tile or array.step != array.shape or own[-len(tile) :] != tile:
        return None
    return own[: len(own) - len(tile)]


def _made_shape(array: Array, lengths: Shape, front: Shape | None) -> Shape:
    shaped = (*front, *array.written) if front is not None and array.written else lengths
    return shaped if size(shaped) == size(lengths) else lengths


def _shape_of(given: Any, own: Shape, array: Array) -> Shape:
    """The lengths that a kernel takes an array of its own shape to have."""
    if _in_front(own, array) is not None:
        return (size(own),)
    if array.space == "constant":
        if size(own) != size(array.shape):
            raise DeviceError(
                f"'{array.name}' has {size(own)} elements, but all tiles read {size(array.shape)}"
            )
        return array.shape
    if is_complex(given) and len(own) != len(array.shape):
        raise DeviceError(
            f"'{array.name}' holds complex numbers, which are pairs: their shape is {own}, but the"
            f" sketch reads {_axes(array.shape)}",
            advice="give .view(float32) of it, its pairs one after another, or a part: x.real",
        )
    if len(array.shape) == 1 and len(own) > 1:
        sides = array.step == array.shape and array.written
        whole = f" or whole tiles, (…, {', '.join(map(str, array.written))})" if sides else ""
        does = "makes" if array.space == "output" else "reads"
        raise DeviceError(
            f"'{array.name}' has the shape {own}, but the sketch {does} one axis{whole}",
            advice="give .reshape(-1) of it: its rows are then read as one, tiles cross their ends",
        )
    if len(array.shape) == 1:
        return (size(own),)
    if len(own) != len(array.shape):
        raise DeviceError(
            f"'{array.name}' has the shape {own}, but the sketch reads {_axes(array.shape)}"
        )
    return own


def _axes(shape: Shape) -> str:
    return "one axis" if len(shape) == 1 else f"{len(shape)} axes"
