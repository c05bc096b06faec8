"""The reference: a function on arrays of NumPy or tensors of PyTorch, called by the names of its
parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from warploom.errors import CheckError, WarploomError, one_of, raising_line
from warploom.ptx.field.arrays import Exact, joined
from warploom.ptx.field.elements import NotKnown
from warploom.verdict.case import Case
from warploom.verdict.stand_in import torch_of_references
from warploom.verdict.tensor_types import spoken_to_pytorch
from warploom.verdict.torch_reference import as_tensor, speaks_torch, without_tensors

Function = Callable[..., Any]


class Reference:
    """A function whose parameters bear the names of arguments and sizes. `stands_in`: it was read
    while something stood in for PyTorch, and is called so, too. `on_tensors`: it takes tensors; if
    nothing is said, its text says it."""

    def __init__(
        self, function: Function, *, stands_in: bool = False, on_tensors: bool | None = None
    ) -> None:
        if not callable(function):
            advice = "give a function on arrays, such as lambda x: x + 1"
            raise CheckError(f"a {type(function).__name__} is no reference", advice=advice)
        self.function = function
        self.on_tensors = speaks_torch(function) if on_tensors is None else on_tensors
        self.stands_in = stands_in
        self.name = getattr(function, "__name__", type(function).__name__)
        code = inspect.unwrap(function)
        self.file = getattr(getattr(code, "__code__", None), "co_filename", "")

    def of(self, given: Mapping[str, Any], case: Case) -> list[Any]:
        """Its results for these, one for each output, of the shape that the kernel writes."""
        outputs = {each.name: each.shape for each in case.outputs}
        if self.on_tensors:
            kinds = {name: each.said.kind for name, each in case.named.items()}
            given = {name: as_tensor(name, each, kinds.get(name)) for name, each in given.items()}
        made = self._called(given)
        listed = self._listed(made, list(outputs))
        return [
            self._of_shape(each, name, shape)
            for each, (name, shape) in zip(listed, outputs.items(), strict=True)
        ]

    def _called(self, given: Mapping[str, Any]) -> Any:
        chosen = self._chosen(given)
        try:
            with np.errstate(all="ignore"), self._torch():
                made = self.function(**chosen)
                return without_tensors(made) if self.on_tensors else made
        except (NotKnown, WarploomError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001  # whatever somebody's function raises
            if isinstance(error.__cause__, NotKnown):
                raise error.__cause__ from None
            said = f"{type(error).__name__}: {str(error)[:300]}"
            span = raising_line(error, self.file) if self.file else None
            raise CheckError(f"the reference '{self.name}' raised {said}", span) from None

    def _torch(self) -> AbstractContextManager[None]:
        if self.stands_in:
            return torch_of_references()
        return spoken_to_pytorch() if self.on_tensors else nullcontext()

    def _chosen(self, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            advice = "give a function whose parameters have names"
            raise CheckError(
                f"the parameters of '{self.name}' are not known", advice=advice
            ) from None
        found: dict[str, Any] = {}
        for each in parameters:
            if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL, each.POSITIONAL_ONLY):
                shown = str(each).split(":")[0]
                raise CheckError(
                    f"the reference '{self.name}' has the parameter '{shown}'",
                    advice="give each parameter the name of an argument or of a size",
                )
            if each.name in given:
                found[each.name] = given[each.name]
            elif each.default is each.empty:
                raise CheckError(
                    f"the reference '{self.name}' has the parameter '{each.name}'",
                    advice=f"no argument or size is called so: {one_of(each.name, given)}",
                )
        return found

    def _listed(self, made: Any, outputs: list[str]) -> list[Any]:
        if isinstance(made, dict):
            if set(made) != set(outputs):
                what = ", ".join(map(str, made))
                raise CheckError(
                    f"the reference '{self.name}' returns {what}",
                    advice=f"the kernel writes {', '.join(outputs)}",
                )
            return [made[name] for name in outputs]
        listed = list(made) if isinstance(made, tuple | list) else [made]
        if len(listed) != len(outputs):
            raise CheckError(
                f"the reference '{self.name}' returns {len(listed)} results",
                advice=f"return one for each that the kernel writes: {', '.join(outputs)}",
            )
        return listed

    def _of_shape(self, made: Any, name: str, shape: tuple[int, ...]) -> Any:
        found = made if isinstance(made, Exact) else joined(np.asarray(made))
        if not isinstance(found, Exact) and found.dtype.kind not in "biuf":
            raise CheckError(
                f"the reference '{self.name}' gives '{name}' the type {found.dtype}",
                advice="return floats or whole numbers",
            )
        if found.shape != shape:
            raise CheckError(
                f"the reference '{self.name}' gives '{name}' the shape {found.shape}",
                advice=f"the kernel writes {shape}",
            )
        return found
