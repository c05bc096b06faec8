"""`warploom.load`: a kernel of the catalogue as a function on arrays that keep their shape.

The kernel for a call is built when its first call comes, with the settings that the rule chooses
for its size; later calls of the same kind only launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

from warploom.catalogue import find
from warploom.catalogue.entry import Entry, Fit, Parameter, Parameters, Shapes, Size
from warploom.catalogue.permute.call import permute
from warploom.catalogue.permuted import Permuted, order_of, permuted
from warploom.catalogue.tuning import Tuner
from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.emit.parts import with_names
from warploom.errors import CheckError, DeviceError, ensure, located
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Kernel
from warploom.kernel.largest import with_largest
from warploom.kernel.wide import index_named
from warploom.pictured import PublicResult
from warploom.runtime.callable import Callable, Device, check_device
from warploom.runtime.callable import load as load_kernel
from warploom.runtime.driver import Launch
from warploom.runtime.gpu import machine_of
from warploom.runtime.plan import Given, MisalignedError, Named, Plan, Planner
from warploom.runtime.view import View, view
from warploom.search.storage.store import Store, users_store

if TYPE_CHECKING:
    from warploom.catalogue.attention.call import Attending

TUNE_SECONDS = 30.0
ATTENTION = "attention"


@overload
def load(name: Literal["attention"], **how: Any) -> Attending: ...
@overload
def load(name: str, **how: Any) -> Loaded: ...


@located
def load(
    name: str,
    *,
    index_bits: int = 32,
    device: Device = "auto",
    tune: bool | float = False,
    store: Store | bool = True,
    **settings: Any,
) -> Any:
    """A kernel of the catalogue as a function on arrays; `warploom.load` says what it takes."""
    if not isinstance(name, str):
        raise CheckError(
            f"a kernel of the catalogue is named by a text, not by a {type(name).__name__}",
            advice="warploom.kernels() lists them; a sketch is for warploom.compile",
        )
    check_device(device)
    if not isinstance(store, Store | bool):
        raise CheckError(
            f"store is a Store, True or False, not {store!r:.40}",
            advice="write store=Store(path), from warploom.search.storage.store",
        )
    if name == ATTENTION:
        return _attending(settings, device, tune, store)
    entry = find(name).with_index(index_named(index_bits))
    given = {key: _as_word(value) for key, value in settings.items()}
    if name == "permute":
        return _permuting(entry, given, device, tune)
    if tune is False:
        return _built(Loaded(entry, given, device))
    seconds = _seconds(tune)
    kept = users_store() if store is True else None if store is False else store
    return _built(Loaded(entry, given, device, Tuner(seconds, kept)))


def _as_word(value: Any) -> Parameter:
    """A setting; numbers in a row as a text, as in `axes=(1, 0)`."""
    if not isinstance(value, tuple | list):
        return value  # type: ignore[no-any-return]
    return ",".join(str(each) for each in value)


def _attending(
    given: Mapping[str, Any], device: Device, tune: bool | float, store: Store | bool
) -> Attending:
    """Attention is made for the sizes of a call: there is no kernel before."""
    # Here, not at the top: few calls are of it, and it takes a while to be imported.
    from warploom.catalogue.attention.call import attending

    seconds = 0.0 if tune is False else _seconds(tune)
    kept = users_store() if store is True and seconds else store or None
    return attending(given, device, seconds, None if kept is True else kept)


def _permuting(entry: Entry, given: Parameters, device: Device, tune: bool | float) -> Loaded:
    if tune is not False:
        raise CheckError(
            "'permute' has nothing to tune: its kernels follow from sizes and strides",
            advice="leave out tune",
        )
    return _built(Permuting(entry, given, device))


def _seconds(tune: bool | float) -> float:
    if tune is True:
        return TUNE_SECONDS
    if not isinstance(tune, int | float) or not 0 <= tune < math.inf:
        raise CheckError(
            f"tune is True, False or a number of seconds, not {tune!r:.40}",
            advice="write tune=True, or tune=10",
        )
    return float(tune)


def _built(loaded: Loaded) -> Loaded:
    """Parameters that no kernel can have are refused at once, not at the first call."""
    ensure(loaded.kernel, "there is a kernel, or an error")  # it is built by being asked for
    return loaded


class Loaded(Planner, PublicResult):
    """A kernel of the catalogue with its parameters. For each size the rule may choose another
    strategy; what is built is kept by its settings."""

    def __init__(
        self,
        entry: Entry,
        given: Parameters,
        device: Device = "auto",
        tuner: Tuner | None = None,
    ) -> None:
        super().__init__()
        self.entry, self.given_settings, self.device = entry, dict(given), device
        self.tuner = tuner
        self.settings = entry.settings(given)  # where no size is known
        self._functions: dict[tuple[Parameter, ...], Callable] = {}

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value}" for key, value in self.given_settings.items())
        return f"<warploom kernel {self.entry.name}({given}) on {self.device}>"

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel for arrays of any size."""
        return self.entry.kernel(**self.settings)

    @located
    def text(self, language: Language = "cuda", name: str | None = None) -> str:
        """The kernel in a language by its name, such as `cuda`; `name` is that of the kernel."""
        return emit(with_names([with_largest(self.kernel)], name)[0], language)

    def record(self) -> dict[str, Any]:
        """What `warploom kernel --json` writes of a kernel that is neither checked nor timed."""
        return {"name": self.entry.name, "settings": dict(self.settings), "doc": self.kernel.doc}

    def settings_for(
        self, size: Size, gpu: int = -1, dtype: DType | None = None
    ) -> dict[str, Parameter]:
        """What the rule chooses for a size, on a GPU by its number, or the tuner finds there; the
        elements have the type that was asked for, or that of the arrays."""
        given = self.given_settings
        if dtype is not None and "dtype" in self.entry.parameters and "dtype" not in given:
            given = {**given, "dtype": dtype.value}
        if self.tuner is not None and all(size.values()):  # of nothing nothing is measured
            return self.tuner.settings(self.entry, given, size, gpu)
        return self.entry.settings(given, size, machine_of(gpu))

    def function(self, settings: Parameters) -> Callable:
        """The kernel with these settings, as a function on arrays of one axis."""
        key = tuple(settings.values())
        found = self._functions.get(key)
        if found is None:
            found = self._functions[key] = load_kernel(
                self.entry.kernel(**settings),
                self.device,
                shapes=self._output_shapes,
                misaligned=self._narrowly if self._narrow is not None else None,
            )
        return found

    def names(self, count: int) -> Sequence[str]:
        arrays = self.kernel.arrays
        for params in (arrays, [each for each in arrays if each.const]):
            if len(params) == count:
                return [each.name for each in params]
        names = ", ".join(each.name for each in arrays if each.const)
        more = ", ".join(each.name for each in arrays)
        raise DeviceError(f"'{self.entry.name}' takes ({names}) or ({more}), not {count} arrays")

    def plan(self, given: list[Given], named: Named) -> Plan:
        names = self.names(len(given))
        views = {n: v for n, v in zip(names, given, strict=True) if isinstance(v, View)}
        inner = self.entry.inner
        found = permuted(views, inner)
        if found is None:
            return self._planned(given, named)
        turned, outer = found
        plan = self._planned([turned.get(n, v) for n, v in zip(names, given, strict=True)], named)
        outputs = [each.name for each in self.kernel.arrays if not each.const]
        return Permuted(
            plan,
            tuple(order_of(outer, inner[name]) if name in inner else None for name in names),
            tuple(order_of(outer, inner[name]) for name in outputs),
        )

    def _planned(self, given: list[Given], named: Named) -> Plan:
        function, scalars = self._chosen(given)
        for name, number in scalars.items():
            if named.get(name, number) != number:
                raise DeviceError(
                    f"'{name}' is {number} by the shapes of the arrays, not {named[name]}"
                )
        return function.plan(given, {**scalars, **named})

    @located
    def prepare(self, *arguments: Any, stream: Any = None) -> Launch:
        """Everything checked once, on inputs and outputs; the result launches again and again."""
        function, scalars = self._chosen(self.given(arguments))
        try:
            return function.prepare(*arguments, stream=stream, **scalars)
        except MisalignedError:
            if self._narrow is None:
                raise
            return self._narrow.prepare(*arguments, stream=stream)

    def _chosen(self, given: list[Given]) -> tuple[Callable, Mapping[str, int]]:
        """The function for arrays of these shapes, which are checked, and its scalars."""
        views = [each for each in given if isinstance(each, View)]
        if len(views) != len(given):
            raise DeviceError(f"'{self.entry.name}' takes arrays alone, and no numbers")
        arrays = dict(zip(self.names(len(views)), views, strict=True))
        for name, each in arrays.items():
            if not each.shape:
                raise DeviceError(f"'{name}' has no axes", advice="a kernel takes arrays")
        fit = self.fit({name: each.shape for name, each in arrays.items()})
        if fit is None:
            return self.function(self.settings), {}
        _check_outputs(arrays, fit)
        gpu = max((each.device for each in views), default=-1)
        settings = self.settings_for(fit.scalars, gpu, views[0].dtype)
        return self.function(settings), fit.scalars

    def fit(self, shapes: Shapes) -> Fit | None:
        return None if self.entry.fit is None else self.entry.fit(shapes, **self.settings)

    @property
    def _output_shapes(self) -> Function[[Shapes], Shapes] | None:
        fit = self.entry.fit
        return None if fit is None else lambda shapes: fit(shapes, **self.settings).outputs

    # -- slices that begin anywhere

    @cached_property
    def _narrow(self) -> Loaded | None:
        """This kernel with one-element accesses, which need no alignment; None if it has none."""
        given = self.given_settings
        if "width" not in self.entry.parameters or "width" in given or "pack" in given:
            return None
        single: dict[str, Parameter] = {"width": 1}
        if self.settings.get("strategy") == "registers":
            single["pack"] = 1
        known = {k: v for k, v in single.items() if k in self.entry.parameters}
        return Loaded(self.entry, {**given, **known}, self.device)

    def _narrowly(self, arguments: Sequence[Any], pointers: Sequence[int], stream: Any) -> Any:
        del pointers
        assert self._narrow is not None
        return self._narrow(*arguments, stream=stream)


class Permuting(Loaded):
    """A permutation with its axes. Calls are those of `warploom.permute`, which chooses among
    faster kernels by sizes and strides; the text is the one kernel for all of them."""

    @located
    def __call__(self, *arguments: Any, stream: Any = None, **named: int | float) -> Any:
        if named or not 1 <= len(arguments) <= 2:
            raise DeviceError("'permute' takes (x) or (x, y), and no scalars")
        kind = self.given_settings.get("dtype")
        if kind is not None and view(arguments[0], "x").dtype.value != kind:
            raise DeviceError(f"'x' has other elements than {kind}", advice="leave out dtype")
        axes = tuple(int(axis) for axis in str(self.settings["axes"]).split(","))
        return permute(arguments[0], axes, *arguments[1:], device=self.device, stream=stream)


def _check_outputs(arrays: dict[str, View], fit: Fit) -> None:
    """Outputs that are given have the shape that follows, or one axis."""
    for name, wanted in fit.outputs.items():
        shape = arrays[name].shape if name in arrays else wanted
        if len(shape) > 1 and shape != wanted:
            raise DeviceError(f"'{name}' has the shape {shape}, but the result has {wanted}")
