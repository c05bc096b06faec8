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
        """The kernel in the language `cuda`, `opencl` or `c`."""
        return emit(self.kernel, language)

    def __repr__(self) -> str:
        tiling = self.tiled.tiling
        inputs = ", ".join(array.name for array in tiling.inputs)
        outputs = ", ".join(array.name for array in tiling.outputs)
        return f"<warploom sketch {tiling.name}: {inputs} -> {outputs}>"

    @located
    def __call__(self, *arrays: Any, stream: Any = None, **named: object) -> Any:
        """The outputs of these inputs; outputs may be given, too, after the inputs."""
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
        shapes = {
            a.name: _shape_of(given[a.name], a) for a in (*inputs, *outputs) if a.name in given
        }
        if len(arrays) == len(inputs):
            shapes |= output_shapes(tiling, shapes)
        in_order = [given[param.name] for param in self.kernel.arrays if param.name in given]
        made = self.function(*in_order, stream=stream, **scalars_of(tiling, shapes))
        several = made if isinstance(made, tuple) else (made,)
        shaped = tuple(
            each if len(array.shape) == 1 else each.reshape(shapes[array.name])
            for each, array in zip(several, outputs, strict=True)
        )
        return shaped[0] if len(shaped) == 1 else shaped


def _shape_of(given: Any, array: Array) -> Shape:
    """The lengths that a kernel takes an array to have."""
    own = view(given, array.name).shape
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
        raise DeviceError(
            f"'{array.name}' has the shape {own}, but the sketch reads {_axes(array.shape)}",
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
