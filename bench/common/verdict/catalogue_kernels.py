"""Kernels of the catalogue as the compiler's PTX, each beside a reference in NumPy.

Floats have a reference of their own here, on which the judge can calculate; of whole numbers, which
stay as they are, it is the specification of the entry.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from warploom import ptx
from warploom.catalogue import entries, function_entries
from warploom.catalogue.entry import Case, Entry, Parameter, Size
from warploom.index.evaluate import evaluate
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.kernel.pool import launched_bytes
from warploom.runtime.emulated import EmulatedFunction
from warploom.verdict.answer import Judgement
from warploom.verdict.argument import Said, said_in
from warploom.verdict.judged import judged as judged_launch
from warploom.verdict.recorded import RecordedShape
from warploom.verdict.reference import Reference

ALL: Mapping[str, Entry] = {**entries(), **function_entries()}
MOST_ELEMENTS = 3000  # of all arrays of a launch


# -- references on floats ------------------------------------------------------------------------


def _window(values: Mapping[str, Any], taps: int, **_: Any) -> Any:
    x, n = values["x"], values["n"]
    return sum(x[j : j + n] for j in range(taps)) / taps


def _weighted(values: Mapping[str, Any], taps: int, **_: Any) -> Any:
    x, w, n = values["x"], values["w"], values["n"]
    return sum(w[j] * x[j : j + n] for j in range(taps))


def _image(values: Mapping[str, Any], taps: int, **_: Any) -> Any:
    """Borders are replicated."""
    height, columns, w = values["height"], values["columns"], values["w"].reshape(taps, taps)
    image = values["image"].reshape(height, columns)
    rows, places = np.arange(height)[:, None], np.arange(columns)[None, :]

    def near(y: int, x: int) -> Any:
        down = np.clip(rows + y - taps // 2, 0, height - 1)
        return image[down, np.clip(places + x - taps // 2, 0, columns - 1)]

    return sum(w[y, x] * near(y, x) for y in range(taps) for x in range(taps)).reshape(-1)


def _permuted(values: Mapping[str, Any], axes: str, **_: Any) -> Any:
    order = [int(each) for each in axes.split(",")]
    shape = [values[f"n{axis}"] for axis in range(len(order))]
    return values["x"].reshape(shape).transpose(order).reshape(-1)


def _scanned(values: Mapping[str, Any], lanes: int, registers: int, operator: str, **_: Any) -> Any:
    x = values["x"].reshape(-1, lanes * registers)
    join = {"+": np.add, "max": np.maximum}[operator]
    found = [x[:, 0]]
    for at in range(1, x.shape[1]):
        found.append(join(found[-1], x[:, at]))
    return np.stack(found, axis=1)


def _inclusive(values: Mapping[str, Any], **settings: Any) -> Any:
    return _scanned(values, **settings).reshape(-1)


def _exclusive(values: Mapping[str, Any], **settings: Any) -> Any:
    found = _scanned(values, **settings)
    none = np.full((found.shape[0], 1), {"+": 0.0, "max": -np.inf}[settings["operator"]])
    return np.concatenate([none, found[:, :-1]], axis=1).reshape(-1)


ON_FLOATS: dict[str, Callable[..., Any]] = {
    "stencil-1d": _window, "convolution-1d": _weighted, "convolution-2d": _image,
    "permute": _permuted, "inclusive-scan": _inclusive, "exclusive-scan": _exclusive,
    "aos-to-soa": lambda values, fields, **_: values["x"].reshape(-1, fields).T,
    "soa-to-aos": lambda values, fields, **_: values["x"].reshape(fields, -1).T,
    "aos-sum": lambda values, fields, **_: values["x"].reshape(-1, fields).sum(axis=1),
    "transposition": lambda values, m, n, **_: values["x"].reshape(-1, m, n).transpose(0, 2, 1),
}  # fmt: skip


# -- judged ----------------------------------------------------------------------------------------


def settings() -> Iterator[tuple[str, dict[str, Parameter]]]:
    """Every kernel, as it is and in its variants."""
    for name, entry in ALL.items():
        for variant in ({}, *(each for each in entry.variants if each)):
            yield name, variant


def title(name: str, variant: Mapping[str, Parameter]) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in variant.items())])


def judged(
    name: str, variant: Mapping[str, Parameter], seed: int, seconds: float = 60.0
) -> Judgement:
    entry = ALL[name]
    kernel = entry.kernel(**variant)
    case = _case(entry, kernel, variant)
    values: dict[str, Any] = dict(
        zip((each.name for each in kernel.params), case.arguments, strict=True)
    )
    arrays = {
        each.name: values[each.name]
        for each in kernel.params
        if isinstance(each, ArrayParam) and each.space != "constant"
    }
    scalars = {name: each for name, each in values.items() if isinstance(each, int)}
    grid = tuple(int(evaluate(each, scalars)) for each in kernel.grid)
    args = [values[e.name].tobytes() if _is_constant(e) else values[e.name] for e in kernel.params]
    shape = RecordedShape(
        [each for name in arrays if (each := _said(name, arrays[name], case))],
        grid, kernel.block, None, launched_bytes(kernel), args, arrays,
    )  # fmt: skip
    made = ptx.load(EmulatedFunction(kernel).ptx, f"{name}.ptx").kernel()
    fixed = {name: each for name, each in values.items() if name not in arrays}
    reference = Reference(_specification(entry, variant, fixed, arrays, case))
    return judged_launch(made, reference, shape, dict(case.size), seconds, seed)


def _is_constant(param: Any) -> bool:
    return isinstance(param, ArrayParam) and param.space == "constant"


def _case(entry: Entry, kernel: Kernel, variant: Mapping[str, Parameter]) -> Case:
    """The largest that is small enough, or the smallest that there is."""
    found = [entry.case(kernel, size, 1, **variant) for size in _sizes(entry, variant)]
    small = [case for case in found if _elements(case) <= MOST_ELEMENTS]
    return max(small, key=_elements) if small else min(found, key=_elements)


def _sizes(entry: Entry, variant: Mapping[str, Parameter]) -> list[Size]:
    return [*entry.sizes(**entry.settings(variant))]


def _elements(case: Case) -> int:
    return sum(each.size for each in case.arguments if isinstance(each, np.ndarray))


def _said(name: str, array: Any, case: Case) -> Said | None:
    """Outputs, and inputs that stand for any values; whole numbers stay as they are."""
    kind = f"{array.dtype.kind}{8 * array.dtype.itemsize}"
    output = name in case.expected
    if not output and not kind.startswith("f"):
        return None
    shape = case.expected[name].shape if output else array.shape
    return said_in(f"{name}={kind}[{','.join(map(str, shape))}]{'=out' if output else ''}")


def _specification(
    entry: Entry, variant: Mapping[str, Parameter], fixed: Mapping[str, Any],
    arrays: Mapping[str, Any], case: Case,
) -> Any:  # fmt: skip
    """A function whose parameters bear the names of inputs."""
    inputs = [name for name in arrays if name not in case.expected]
    chosen = entry.settings(variant)
    floats = any(each.dtype.kind == "f" for each in arrays.values())

    def specification(**given: Any) -> Any:
        values = {**fixed, **given}
        if floats:
            return ON_FLOATS[entry.name](values, **chosen)
        return entry.specification(values, **chosen)

    signature = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in inputs]
    specification.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return specification
