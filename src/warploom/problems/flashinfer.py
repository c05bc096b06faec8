"""A definition in FlashInfer's form beside a kernel: axes, inputs, outputs and a reference.

Comes in: a JSON file whose `reference` is a text with a function `run`, and CUDA or PTX that writes
into outputs that it is given, inputs first, then outputs, then the sizes that vary. Goes out: a
question for the judge.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warploom.errors import CheckError, ParseError
from warploom.problems.kernelbench import Asked, called_safely
from warploom.verdict.argument import said
from warploom.verdict.judged import Shapes
from warploom.verdict.reference import Reference
from warploom.verdict.stand_in import torch_stands_in
from warploom.without_gpu.cuda_kernel import CudaKernel

_TYPES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "int32": "i32", "int64": "i64",
}  # fmt: skip


def asked_of_definition(
    problem: Path, kernel: Path, sizes: Mapping[str, Sequence[int]],
    launch: tuple[str, str, int], name: str | None, arch: str, seconds: float,
) -> Asked:  # fmt: skip
    """The question; `launch` has grid, block and bytes of shared memory, as expressions of axes."""
    made = _read(problem)
    axes = made["axes"]
    varies = [axis for axis, how in axes.items() if how.get("type") == "var"]
    if missing := [axis for axis in varies if axis not in sizes]:
        raise ParseError(
            f"'{problem}' needs a size of {', '.join(missing)}",
            advice="give each axis that varies a size",
        )
    constants = {axis: [int(how["value"])] for axis, how in axes.items() if axis not in varies}
    listed = [said(each, _text(each, how)) for each, how in made["inputs"].items()]
    listed += [said(each, f"{_text(each, how)}=out") for each, how in made["outputs"].items()]
    loaded = CudaKernel(str(kernel), name, arch, seconds).kernel
    left = len(loaded.function.parameters) - len(listed)
    listed += [said(axis, f"i32={axis}") for axis in varies[: max(left, 0)]]
    if len(listed) != len(loaded.function.parameters):
        what = f"'{loaded.name}' has {len(loaded.function.parameters)} parameters"
        raise CheckError(
            f"{what}, and the definition {len(listed)}",
            advice="inputs, outputs, then the axes that vary, in the definition's order",
        )
    grid, block, shared = launch
    reference = Reference(_reference(made, problem), on_tensors=True)
    shapes = Shapes(listed, grid, block, None, str(shared))
    return Asked(loaded, reference, shapes, {**constants, **sizes})


def _read(path: Path) -> dict[str, Any]:
    try:
        made = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise ParseError(
            f"cannot read '{path}': {getattr(error, 'strerror', None) or error}"
        ) from None
    parts = ("axes", "inputs", "outputs", "reference")
    if not isinstance(made, dict) or any(part not in made for part in parts):
        raise ParseError(f"'{path}' is no definition", advice=f"it has {', '.join(parts)}")
    if any(not isinstance(made[part], dict) for part in parts[:3]):
        raise ParseError(f"'{path}' is no definition: axes, inputs and outputs are objects")
    return made


def _text(name: str, how: Mapping[str, Any]) -> str:
    """`x=f32[n,128]` as the judge is told it."""
    kind = _TYPES.get(str(how.get("dtype")))
    if kind is None:
        raise ParseError(f"'{name}' is of type {how.get('dtype')}, which is not judged")
    shape = how.get("shape")
    return kind if shape is None else f"{kind}[{','.join(map(str, shape))}]"


def _reference(made: Mapping[str, Any], problem: Path) -> Callable[..., Any]:
    """`run` of the text, as a function of tensors by name."""
    names: dict[str, Any] = {"__name__": problem.stem}
    text = str(made["reference"])
    with torch_stands_in(None):
        called_safely(lambda: exec(compile(text, str(problem), "exec"), names), problem)
    if not callable(names.get("run")):
        raise CheckError(f"the reference of '{problem}' has no function 'run'")

    def reference(**given: Any) -> Any:
        found = names["run"](*[given[each] for each in made["inputs"]])
        if isinstance(found, dict):
            return found
        listed = list(found) if isinstance(found, tuple | list) else [found]
        return dict(zip(made["outputs"], listed, strict=True))

    kind = inspect.Parameter.KEYWORD_ONLY
    reference.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in made["inputs"]]
    )
    reference.__name__ = str(made.get("name") or problem.stem)
    return reference
