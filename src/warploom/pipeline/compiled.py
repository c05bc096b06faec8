"""`warploom.compile`: a sketch, or what any of the searches gave, becomes a function on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack, overload

from warploom.catalogue.loaded import Loaded
from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.emit.parts import with_names
from warploom.errors import CheckError, DeviceError, located
from warploom.index.ir import whole_number
from warploom.kernel.dtype import DType, f32
from warploom.kernel.ir import Kernel
from warploom.kernel.wide import index_named
from warploom.pictured import PublicResult
from warploom.pipeline.length import output_shapes
from warploom.pipeline.runnable import OfNoSketch, Runnable, runnable
from warploom.pipeline.subject import Layout, Subject, dtype_named, tiled
from warploom.runtime.callable import Callable, Device, load
from warploom.runtime.plan import not_by_name
from warploom.runtime.view import is_complex, view
from warploom.search.budget import Budget
from warploom.sketch.code.need import scalars_of
from warploom.sketch.code.tiling import Array, Tiled
from warploom.sketch.term.ir import Shape, size


class SketchOptions(TypedDict, total=False):
    """What can be said of a sketch, and of nothing else."""

    goal: int
    lanes: int | None
    steps: Mapping[str, int] | None
    dtype: DType | str
    warps: int
    budget: Budget | None
    index_bits: int


@overload
def compiled(result: Loaded, *, device: Device = "auto") -> Loaded: ...
@overload
def compiled(result: OfNoSketch, *, device: Device = "auto") -> Runnable: ...
@overload
def compiled(
    result: Subject | Compiled, *, device: Device = "auto", **options: Unpack[SketchOptions]
) -> Compiled: ...
@located
def compiled(
    result: Subject | PublicResult,
    *,
    goal: int = 0,
    lanes: int | None = None,
    steps: Mapping[str, int] | None = None,
    dtype: DType | str = f32,
    warps: int = 4,
    device: Device = "auto",
    budget: Budget | None = None,
    index_bits: int = 32,
) -> Compiled | Loaded | Runnable:
    """A function on arrays: of a sketch, or of a result of a search.

    Results are those of `synthesize`, `solve`, `explore`, `map_array`, `solve_layout` and
    `convert_layout`.

    Of a sketch the best fill is searched, verified and run on the simulator before anything comes
    back. `lanes` is the length of the axis across lanes; `steps={"x": 32, "w": 0}` says how far
    apart the tiles of an input begin (0: all read the same). With `index_bits=64` arrays may have
    more elements than 32-bit indices allow. These, `goal`, `dtype`, `warps` and `budget` are for
    sketches alone.

    The function takes the inputs, or inputs and outputs. `device` says where it runs: `auto` (where
    the arrays are: on a GPU, or else on the simulator), `cuda`, `opencl`, `c`, `ptx`, `simulator`.
    `.text("cuda")` is the kernel. Of a layout, the function gives the places of elements.

    >>> import numpy as np, warploom
    >>> s = warploom.Sketch("turned by one")
    >>> x = s.input("x", 4)
    >>> y = s.hole("rots", x, main=0, second=0, out=0)
    >>> s.goal(lambda x: [x[1], x[2], x[3], x[0]])
    >>> turned = warploom.compile(s)
    >>> turned(np.arange(8, dtype=np.float32)).tolist()  # two tiles of four
    [1.0, 2.0, 3.0, 0.0, 5.0, 6.0, 7.0, 4.0]
    """
    if steps is not None and not isinstance(steps, Mapping):
        raise CheckError(
            f"steps are numbers by input, not {steps!r:.40}", advice='write steps={"x": 32}'
        )
    own = _of_no_sketch(result, device)
    if own is not None:
        _check_alone(result, (goal, lanes, steps, dtype, warps, budget, index_bits))
        return own
    apart = {name: _number(step) for name, step in (steps or {}).items()}
    kind, index = dtype_named(dtype), index_named(index_bits)
    layout = Layout(_number(lanes), apart, kind, _number(warps), index=index)
    subject: Any = result  # what is neither a sketch nor a result is refused there, by its kind
    return Compiled(tiled(subject, layout, goal=goal, budget=budget), device)


def _of_no_sketch(result: Any, device: Device) -> Compiled | Loaded | Runnable | None:
    """What is a function already, or has a kernel of its own."""
    match result:
        case Compiled() | Loaded() | Runnable():
            if device not in ("auto", result.device):
                raise CheckError(
                    f"{result!r} is already compiled", advice="say the device where it is made"
                )
            return result
        case PublicResult():
            return runnable(result, device)
    return None


def _check_alone(result: object, given: tuple[object, ...]) -> None:
    """What is for sketches is not left out in silence."""
    names = ("goal", "lanes", "steps", "dtype", "warps", "budget", "index_bits")
    usual = (0, None, None, f32, 4, None, 32)
    for name, value, other in zip(names, given, usual, strict=True):
        if value != other:
            raise CheckError(
                f"a {type(result).__name__} has no {name} to choose",
                advice=f"leave {name} out: it is for sketches",
            )


def _number(given: Any) -> Any:
    """NumPy's whole numbers are as good as Python's; what is none is refused later, by name."""
    whole = whole_number(given)
    return given if whole is None else whole


class Compiled(PublicResult):
    """A kernel of a sketch, ready to run: called with its inputs it makes its outputs."""

    def __init__(self, made: Tiled, device: Device = "auto") -> None:
        self.tiled, self.device = made, device
        self.function: Callable = load(made.kernel, device)

    @property
    def kernel(self) -> Kernel:
        return self.tiled.kernel

    @located
    def text(self, language: Language = "cuda", name: str | None = None) -> str:
        """The kernel in a language by its name, such as `cuda`; `name` is that of the kernel."""
        return emit(with_names([self.kernel], name)[0], language)

    def record(self) -> dict[str, Any]:
        """What `warploom kernel --json` writes of a sketch that is neither checked nor timed."""
        return {"name": self.tiled.tiling.name, "settings": {}, "doc": self.kernel.doc}

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
