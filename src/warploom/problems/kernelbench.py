"""A problem in KernelBench's form beside a candidate: judged for all inputs, without PyTorch or a
GPU.

Comes in: a file with `Model`, `get_inputs` and `get_init_inputs`, and one with `ModelNew`, whose
kernel is CUDA text given to `load_inline`. Goes out: a judgement. The candidate's `forward` is
called once, to see which kernel it launches on what; its result has to be what that kernel writes.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from warploom.errors import CheckError, ParseError, Source, Span, WarploomError, raising_line
from warploom.problems.host import Launch, functions, without_host
from warploom.problems.stand_in import Module, torch_stands_in
from warploom.problems.tensors import Tensor
from warploom.ptx.launch import Kernel
from warploom.verdict.answer import Judgement
from warploom.verdict.argument import Said, said
from warploom.verdict.judged import Shapes, judged
from warploom.verdict.precision import Limits
from warploom.verdict.reference import Reference
from warploom.without_gpu.cuda_kernel import CudaKernel

_FLOATS = {"float16": "f16", "float32": "f32", "float64": "f64"}
_NUMBERS = {"s32": "i32", "u32": "i32", "b32": "i32", "s64": "i64", "u64": "i64", "b64": "i64",
            "f32": "f32", "f64": "f64"}  # fmt: skip
_ONE = "judge such kernels one by one, as CUDA files of their own"


@dataclass(slots=True)
class _Seen:
    """What a candidate did in its one call."""

    launches: list[Launch] = field(default_factory=list)
    made: list[tuple[Tensor, str]] = field(default_factory=list)
    text: str = ""

    def load_inline(self, **how: Any) -> Any:
        """In the place of PyTorch's: the functions are read, and their launches noted."""
        parts = how.get("cuda_sources") or ""
        text = parts if isinstance(parts, str) else "\n".join(parts)
        self.text = text
        found = functions(text, "cuda_sources")
        wanted = how.get("functions") or list(found)
        module = ModuleType(str(how.get("name")))
        for name in [wanted] if isinstance(wanted, str) else wanted:
            if name not in found:
                raise CheckError(f"no function '{name}' that gives a tensor is in cuda_sources")
            setattr(module, name, self._caller(found[name]))
        return module

    def _caller(self, function: Any) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            read = function.call(list(given))
            self.launches += read.launches
            self.made += [(each, read.made[id(each)]) for each in read.names.values()
                          if id(each) in read.made]  # fmt: skip
            self.made += [(each, read.made[id(each)]) for each in read.returned
                          if id(each) in read.made]  # fmt: skip
            return read.returned[0] if len(read.returned) == 1 else list(read.returned)

        return call


@dataclass(frozen=True, slots=True)
class Asked:
    """A candidate, as a question for the judge."""

    kernel: Kernel
    reference: Reference
    shapes: Shapes
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def judged(
        self, seconds: float, seed: int | None, limits: Limits | None = None, others: int = 0,
        general: bool = False,
    ) -> Judgement:  # fmt: skip
        return judged(
            self.kernel, self.reference, self.shapes, self.sizes, seconds, seed, limits, others,
            general,
        )  # fmt: skip


def asked(
    problem: Path, candidate: Path, sizes: Mapping[str, int], arch: str, seconds: float
) -> Asked:
    """The question of one candidate; `sizes` take the place of the problem's whole numbers."""
    seen = _Seen()
    with torch_stands_in(seen.load_inline):
        given = _module(problem, sizes)
        tried = _module(candidate, {})
        init = _called(given, "get_init_inputs", problem)
        model, inputs = (
            _called(given, "Model", problem, *init),
            _called(given, "get_inputs", problem),
        )
        new = _called(tried, "ModelNew", candidate, *init)
        named = _named(model, inputs)
        _share(model, new)
        result = called_safely(lambda: new(*inputs), candidate)
    launch = _one(seen.launches, candidate)
    kernel = CudaKernel(without_host(seen.text), launch.kernel, arch, seconds).kernel
    results = list(result) if isinstance(result, tuple | list) else [result]
    listed, outputs = _arguments(launch, kernel, named, results, seen.made)
    reference = Reference(_reference(model, inputs, named, outputs, problem))
    shape = [",".join(map(str, each)) for each in (launch.grid, launch.block)]
    return Asked(kernel, reference, Shapes(listed, shape[0], shape[1], None, str(launch.shared)))


def _one(launches: Sequence[Launch], candidate: Path) -> Launch:
    if not launches:
        raise CheckError(f"'{candidate}' launches no kernel: PyTorch computes its result")
    if len(launches) > 1:
        names = ", ".join(each.kernel for each in launches[:4])
        raise CheckError(
            f"'{candidate}' launches {len(launches)} kernels ({names}); one is judged", advice=_ONE
        )
    return launches[0]


# -- the problem -----------------------------------------------------------------------------------


def _module(path: Path, sizes: Mapping[str, int]) -> dict[str, Any]:
    """What a file defines; whole numbers of its own are replaced by `sizes`."""
    try:
        text = path.read_text()
        tree = ast.parse(text, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ParseError(
            f"cannot read '{path}': {getattr(error, 'strerror', None) or error}"
        ) from None
    except SyntaxError as error:
        place = Span(Source(str(path), text), error.lineno or 1, error.offset or 1)
        raise ParseError(f"this is no Python: {error.msg}", place) from None
    left = set(sizes)
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int())) if (
                name in left
            ):
                node.value = ast.copy_location(ast.Constant(sizes[name]), node.value)
                left.discard(name)
    if left:
        raise ParseError(f"'{path}' has no whole number called {', '.join(sorted(left))}")
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    called_safely(lambda: exec(compile(tree, str(path), "exec"), names), path)
    return names


def _called(names: Mapping[str, Any], name: str, path: Path, *given: Any) -> Any:
    if name not in names:
        raise CheckError(f"'{path}' has no {name}", advice="KernelBench's form needs it")
    return called_safely(lambda: names[name](*given), path)


def called_safely(action: Callable[[], Any], path: Path) -> Any:
    """What somebody's code raises is an error of theirs, with its line."""
    try:
        return action()
    except (WarploomError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001  # whatever somebody's file raises
        said_ = f"{type(error).__name__}: {str(error)[:300]}"
        raise CheckError(f"'{path.name}' raised {said_}", raising_line(error, str(path))) from None


def _named(model: Module, inputs: Sequence[Any]) -> dict[str, Tensor]:
    """The tensors that a candidate may be given: inputs as `forward` calls them, and parameters."""
    names = list(inspect.signature(type(model).forward).parameters)[1:]  # type: ignore[attr-defined]
    pairs = [(n, each) for n, each in zip(names, inputs, strict=False) if isinstance(each, Tensor)]
    return {**dict(pairs), **dict(model.named_parameters())}


def _share(model: Module, new: Module) -> None:
    """The candidate has the parameters of the problem, by name."""
    own = dict(model.named_parameters())
    for name, each in new.named_parameters():
        if name not in own or own[name].shape != each.shape:
            raise CheckError(f"ModelNew has a parameter '{name}' that Model has not")
        each.array = own[name].array


def _reference(
    model: Module, inputs: Sequence[Any], named: Mapping[str, Tensor], outputs: Sequence[str],
    problem: Path,
) -> Callable[..., Any]:  # fmt: skip
    """`Model.forward` as a function of arrays by name."""
    parameters = dict(model.named_parameters())

    def reference(**given: Any) -> Any:
        before = {name: each.array for name, each in parameters.items()}
        by_tensor = {id(each): given.get(name, each.array) for name, each in named.items()}
        try:
            for name, each in parameters.items():
                each.array = given.get(name, each.array)
            passed = [Tensor(by_tensor[id(x)]) if id(x) in by_tensor else x for x in inputs]
            made = model(*passed)
        finally:
            for name, each in parameters.items():
                each.array = before[name]
        listed = list(made) if isinstance(made, tuple | list) else [made]
        if len(listed) != len(outputs):
            raise CheckError(f"Model gives {len(listed)} results, ModelNew {len(outputs)}")
        return {name: each.array for name, each in zip(outputs, listed, strict=True)}

    kind = inspect.Parameter.KEYWORD_ONLY
    floats = [name for name, each in named.items() if str(each.dtype) in _FLOATS]
    names = [inspect.Parameter(name, kind, default=None) for name in floats]
    reference.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    reference.__name__ = f"{problem.stem}.Model"
    return reference


# -- the launch ------------------------------------------------------------------------------------


def _arguments(
    launch: Launch, kernel: Kernel, named: Mapping[str, Tensor], results: Sequence[Any],
    made: Sequence[tuple[Tensor, str]],
) -> tuple[list[Said], list[str]]:  # fmt: skip
    """What each argument of the kernel is, and the names of the results."""
    outputs = [_name_of(each, made, named) for each in results]
    kinds = [each.type for each in kernel.function.parameters]
    if len(kinds) != len(launch.args):
        what = f"'{launch.kernel}' has {len(kinds)} parameters and is given {len(launch.args)}"
        raise CheckError(what)
    listed, used = [], set()
    for number, (value, kind) in enumerate(zip(launch.args, kinds, strict=True)):
        if not isinstance(value, Tensor):
            listed.append(said(f"number{number}", f"{_NUMBERS[kind.lstrip('.')]}={value}"))
            continue
        name = _name_of(value, made, named)
        if name in used:
            raise CheckError(f"'{launch.kernel}' is given '{name}' twice", advice=_ONE)
        used.add(name)
        if name not in outputs and name not in named:
            raise CheckError(
                f"'{launch.kernel}' writes a tensor that is not among what ModelNew returns",
                advice=_ONE,
            )
        listed.append(_said(name, value, outputs, results, made, named))
    missing = [name for name in outputs if name not in used]
    if missing:
        raise CheckError(f"the kernel is not given what ModelNew returns: {', '.join(missing)}")
    return listed, outputs


def _said(
    name: str, value: Tensor, outputs: Sequence[str], results: Sequence[Any],
    made: Sequence[tuple[Tensor, str]], named: Mapping[str, Tensor],
) -> Said:  # fmt: skip
    kind = _FLOATS.get(str(value.dtype))
    if kind is None:  # whole numbers are the same in all runs
        return said(name, value.array)
    shape = results[outputs.index(name)].shape if name in outputs else value.shape
    text = f"{kind}[{','.join(map(str, shape))}]"
    if name in named:
        return said(name, f"{text}=inout" if name in outputs else text)
    how = next(how for each, how in made if _is_same(each, value))
    return said(name, f"{text}=out" + (":zeros" if how == "zeros" else ""))


def _name_of(value: Any, made: Sequence[tuple[Tensor, str]], named: Mapping[str, Tensor]) -> str:
    for name, each in named.items():
        if isinstance(value, Tensor) and _is_same(each, value):
            return name
    for number, (each, _) in enumerate(made):
        if isinstance(value, Tensor) and _is_same(each, value):
            return f"out{number}"
    raise CheckError("ModelNew computes with PyTorch beside its kernel", advice=_ONE)


def _is_same(a: Tensor, b: Tensor) -> bool:
    """Whether both are all of one memory, in its order."""
    one = a.array is b.array or bool(np.shares_memory(a.array, b.array))
    return one and a.numel() == b.numel() and bool(b.array.flags.c_contiguous)
