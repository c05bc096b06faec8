"""Programs of rows as functions on arrays: `load("softmax")(x)`.

Arrays have any shape; rows are along the last axis, or the one that is said. The first call with
rows of a length finds a kernel for it: at once by the time model, or, with `tune`, by measuring.
Where blocks are rows it serves any number of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.errors import CheckError, DeviceError, located, one_of
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.pipeline.exploring import explored
from warploom.pipeline.nest import Explored
from warploom.pipeline.rows.any_rows import of_any_rows, of_given_rows
from warploom.pipeline.rows.first import first
from warploom.pipeline.rows.stated import Along, Stated, types_wanted
from warploom.pipeline.runnable import runnable
from warploom.runtime.callable import Callable, Device, load
from warploom.runtime.gpu import machine_of
from warploom.runtime.plan import Given, Named, Plan, Planner
from warploom.runtime.view import Shape, View, library_of, view
from warploom.search.storage.store import Store

REAL = (DType.F32, DType.F16, DType.BF16)
MOST = 2**31  # elements of a kernel for any number of rows


class RowFunction(Planner):
    """A program of rows, called with its inputs, or with inputs and outputs."""

    def __init__(
        self,
        stated: Stated,
        options: Mapping[str, Any],
        device: Device = "auto",
        dtype: DType | None = None,
        axis: int = -1,
        seconds: float | None = None,
        store: Store | bool = True,
    ) -> None:
        super().__init__()
        self.stated, self.options, self.device = stated, stated.given(options), device
        self.dtype, self.axis, self.seconds, self.store = dtype, axis, seconds, store
        self.inputs = stated.inputs(self.options)
        self.outputs = stated.outputs(self.options)
        self.found: dict[tuple[Any, ...], Explored] = {}
        self._functions: dict[tuple[Any, ...], Any] = {}

    def __repr__(self) -> str:
        return f"<warploom {self.stated.name}({', '.join(self.inputs)}) on {self.device}>"

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of the size that was called last."""
        if not self.found:
            raise CheckError(
                f"'{self.stated.name}' has a kernel for each length of rows",
                advice="call it once, or give prepare(m, n) their number and length",
            )
        return list(self.found.values())[-1].kernels

    @located
    def text(self, language: Language = "cuda") -> str:
        """The kernels of the size that was called last, in a language by its name."""
        return "\n".join(emit(each, language) for each in self.kernels)

    def names(self, count: int) -> Sequence[str]:
        for names in ([*self.inputs], [*self.inputs, *self.outputs]):
            if len(names) == count:
                return names
        more = ", ".join((*self.inputs, *self.outputs))
        raise DeviceError(
            f"'{self.stated.name}' takes ({', '.join(self.inputs)}) or ({more}), not {count} arrays"
        )

    def __call__(self, *arguments: Any, stream: Any = None, **named: int | float) -> Any:
        if "mask" in self.inputs:
            at = [*self.inputs].index("mask")
            arguments = tuple(_bytes(each) if i == at else each for i, each in enumerate(arguments))
        if self.axis == -1:
            return super().__call__(*arguments, stream=stream, **named)
        return self._turned(arguments, stream, named)

    # -- rows that are not along the last axis -----------------------------------------------------

    def _turned(self, arguments: Sequence[Any], stream: Any, named: Named) -> Any:
        """With that axis last, in copies; the results are turned back."""
        names = self.names(len(arguments))
        if len(arguments) > len(self.inputs):
            raise DeviceError(
                "outputs are made where rows are not along the last axis", advice="leave them out"
            )
        given = [_last(each, self.axis, name) if self.inputs[name] == "whole" else each
                 for name, each in zip(names, arguments, strict=True)]  # fmt: skip
        made = super().__call__(*given, stream=stream, **named)
        several = made if isinstance(made, tuple) else (made,)
        back = tuple(
            _moved(each, -1, self.axis) if along == "whole" else each
            for each, along in zip(several, self.outputs.values(), strict=True)
        )
        return back if isinstance(made, tuple) else back[0]

    # -- plans -------------------------------------------------------------------------------------

    def first(self, arguments: Sequence[Any], named: Named) -> Plan:
        """Inputs with gaps, and those that do not begin as wide accesses need it, are copied in
        each call; outputs with gaps are copied back."""
        if all(_is_whole(each) for each in arguments):
            return super().first(arguments, named)

        def on_copies(arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
            del pointers
            outputs = arguments[len(self.inputs) :]
            for name, each in zip(self.outputs, outputs, strict=False):
                if not view(each, name).writable:
                    raise DeviceError(f"'{name}' is written, but the array is read-only")
            wholes = [_whole(each) for each in arguments]
            made = self(*wholes, stream=stream, **named)
            if not outputs:
                return made
            for output, whole in zip(outputs, wholes[len(self.inputs) :], strict=True):
                if whole is not output:
                    output[...] = whole
            return outputs[0] if len(outputs) == 1 else tuple(outputs)

        return on_copies

    def plan(self, given: list[Given], named: Named) -> Plan:
        views = dict(zip(self.names(len(given)), given, strict=True))
        arrays = {name: each for name, each in views.items() if isinstance(each, View)}
        if len(arrays) != len(views):
            raise DeviceError(f"'{self.stated.name}' takes arrays; numbers go by name")
        shape = self._shape(arrays)
        types = {name: self._type(each) for name, each in arrays.items()}
        self._check(arrays, types, shape)
        main = next(name for name, along in self.inputs.items() if along == "whole")
        types |= {name: types[main] for name in self.outputs if name not in types
                  and self.stated.rows}  # fmt: skip
        function = self._function(math.prod(shape[:-1]), shape[-1], types, arrays[main].device)
        plan: Plan = function.plan(given, named)
        return plan

    def _shape(self, arrays: Mapping[str, View]) -> Shape:
        """That of arrays with an element for each place."""
        main = next(name for name, along in self.inputs.items() if along == "whole")
        shape = arrays[main].shape
        if not shape:
            raise DeviceError(f"'{main}' is a single number", advice="give at least one axis")
        if not shape[-1]:
            raise DeviceError(f"'{main}' has rows without elements", advice="give some")
        return shape

    def _type(self, given: View) -> DType:
        """Codes that NumPy has as whole numbers are those that were asked for."""
        if self.dtype is not None and given.dtype.value == self.dtype.storage.name:
            return self.dtype
        return given.dtype

    def _check(self, arrays: Mapping[str, View], types: Mapping[str, DType], shape: Shape) -> None:
        wanted = self.shapes(shape)
        for name, each in arrays.items():
            known = types_wanted(name) or REAL
            if types[name] not in known:
                raise DeviceError(
                    f"'{name}' holds {types[name].value}",
                    advice=one_of(types[name].value, [kind.value for kind in known])
                    + "; codes of bfloat16 that NumPy has as uint16 take dtype='bf16'",
                )
            if each.shape != wanted[name]:
                raise DeviceError(
                    f"'{name}' has the shape {each.shape}, not {wanted[name]}, beside rows of"
                    f" {shape[-1]} in {shape}"
                )
        main = next(name for name, along in self.inputs.items() if along == "whole")
        for name, along in {**self.inputs, **self.outputs}.items():
            of_numbers = along == "whole" and name in types and types_wanted(name) is None
            if of_numbers and types[name] is not types[main]:
                raise DeviceError(
                    f"'{main}' holds {types[main].value}, but '{name}' {types[name].value}"
                )

    def shapes(self, shape: Shape) -> dict[str, Shape]:
        """The shapes of all arrays beside rows of this one."""
        of: dict[Along, Shape] = {"whole": shape, "column": shape[-1:], "each": shape[:-1]}
        return {name: of[along] for name, along in {**self.inputs, **self.outputs}.items()}

    # -- kernels -----------------------------------------------------------------------------------

    def _function(self, m: int, n: int, types: Mapping[str, DType], gpu: int) -> Any:
        """What computes m rows of n, by kernels found once; several kernels, or one that depends on
        the number of rows, are of that number."""
        kinds = tuple(sorted((name, kind.value) for name, kind in types.items()))
        for key in ((n, kinds, gpu), (m, n, kinds, gpu)):
            if key in self._functions and (len(key) > 3 or m * n < MOST):
                return self._functions[key]
        if not m and not self.stated.rows:
            raise DeviceError(f"'{self.stated.name}' of no rows", advice="give some")
        for rows in (2, 1) if m < 2 and self.stated.rows else (m,):  # of one row none are many
            result = self.explore(rows, n, types, gpu)
            kernel, alone = result.kernels[0], len(result.kernels) == 1
            found = of_any_rows(kernel, result.program) if alone and rows * n < MOST else None
            if found is not None:
                made = self._functions[n, kinds, gpu] = _Reshaping(self, found)
                return made
        if not m:
            kernel, alone = of_given_rows(kernel, result.program), True
        own = _Reshaping(self, kernel) if alone else _Several(result, self.device)
        self._functions[m, n, kinds, gpu] = own
        return own

    def explore(self, m: int, n: int, types: Mapping[str, DType], gpu: int = -1) -> Explored:
        """The implementation for m rows of n: the first, or the best within some seconds."""
        nest = self.stated.nest(m, n, types, self.options)
        machine = machine_of(gpu)
        name = machine.name if "times" in vars(machine) else "h200"
        if self.seconds is None:
            result = first(nest, name)
        else:
            result = explored(nest, machine=name, seconds=self.seconds, store=self.store)
        self.found[m, n, tuple(types.items())] = result
        return result

    @located
    def prepare(self, m: int, n: int, dtype: DType = DType.F32) -> Explored:
        """Finds the kernel for m rows of n elements of a type before the first call."""
        types = {
            name: (types_wanted(name) or (dtype,))[0] for name in (*self.inputs, *self.outputs)
        }
        return self.explore(m, n, types)


class _Reshaping:
    """Plans of one kernel, whose outputs have the shapes that inputs say."""

    def __init__(self, owner: RowFunction, kernel: Kernel) -> None:
        self.owner, self.kernel = owner, kernel
        self.order = [each.name for each in kernel.arrays if not each.const]

    def _shapes(self, given: Mapping[str, Shape]) -> Mapping[str, Shape]:
        owner = self.owner
        main = next(name for name, along in owner.inputs.items() if along == "whole")
        shapes = owner.shapes(given[main])
        return {name: shapes[name] for name in self.order}

    def plan(self, given: list[Given], named: Named) -> Plan:
        def on_copies(arguments: Sequence[Any], pointers: Sequence[int], stream: Any, /) -> Any:
            del pointers
            copies = [each.clone() if hasattr(each, "clone") else each.copy() for each in arguments]
            made = loaded(*copies, stream=stream, **named)
            outputs = zip(arguments, copies, strict=True)
            for array, copy in list(outputs)[len(self.owner.inputs) :]:
                array[...] = copy
            return made

        loaded: Callable = load(
            self.kernel, self.owner.device, shapes=self._shapes, misaligned=_Copying(on_copies)
        )
        return loaded.plan(given, named)


@dataclass(frozen=True, slots=True)
class _Copying:
    """What is done where an array does not begin as wide accesses need it."""

    run: Function[..., Any]

    def __call__(self, arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
        """Runs it on arguments of the same keys."""
        return self.run(arguments, pointers, stream)


class _Several:
    """Plans of kernels that run one after the other."""

    def __init__(self, result: Explored, device: Device) -> None:
        found = runnable(result, device)
        assert found is not None
        self.call = found

    def plan(self, given: list[Given], named: Named) -> Plan:
        del given

        def run(arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
            del pointers
            if stream is not None:
                raise DeviceError("a stream is given to two kernels", advice="make it current")
            return self.call(*arguments, **named)

        return run


# -- arrays ----------------------------------------------------------------------------------------


def _is_whole(array: Any) -> bool:
    """Whether elements lie one after the other, as they are."""
    match library_of(array):
        case "torch":
            return bool(array.is_contiguous() and not array.is_neg())
        case "numpy" | "cupy" if hasattr(array, "flags"):
            return bool(array.flags.c_contiguous)
    return True


def _whole(array: Any) -> Any:
    if _is_whole(array):
        return array
    if library_of(array) == "torch":
        return array.resolve_neg().contiguous()
    return array.copy()


def _bytes(mask: Any) -> Any:
    """Truth values as bytes."""
    if str(getattr(mask, "dtype", "")).rpartition(".")[2] != "bool":
        return mask
    if library_of(mask) == "torch":
        return mask.view(mask.new_empty(0).byte().dtype)
    return mask.view(np.uint8)


def _moved(array: Any, one: int, other: int) -> Any:
    if hasattr(array, "movedim"):
        return array.movedim(one, other)
    if library_of(array) == "numpy":
        return np.moveaxis(array, one, other)
    axes = [axis for axis in range(array.ndim) if axis != one % array.ndim]
    axes.insert(other % array.ndim, one % array.ndim)
    return array.transpose(axes)


def _last(array: Any, axis: int, name: str) -> Any:
    if not hasattr(array, "ndim"):
        view(array, name)  # says what it is instead
        raise DeviceError(f"'{name}' has no axes to turn", advice="give an array of its library")
    if not -array.ndim <= axis < array.ndim:
        raise DeviceError(f"there is no axis {axis} of {array.ndim}")
    return _whole(_moved(array, axis, -1))
