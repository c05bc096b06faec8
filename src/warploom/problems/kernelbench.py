"""A problem in KernelBench's form beside a candidate: judged for all inputs, without PyTorch or a
GPU.

Comes in: a file with `Model`, `get_inputs` and `get_init_inputs`, and one with `ModelNew`, whose
kernels are CUDA text given to `load_inline`, or Triton's. Goes out: a judgement. The candidate's
`forward` is called once, to see which kernels it launches on what; its result has to be what those
kernels write.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from warploom.errors import (
    CheckError,
    ParseError,
    Source,
    Span,
    WarploomError,
    missing_extra,
    raising_line,
)
from warploom.problems.host import Launch, functions, without_host
from warploom.problems.launches import FLOATS, InOrder, memories_of
from warploom.problems.triton_host import launches_of_triton
from warploom.ptx.launch import Kernel
from warploom.verdict.answer import Judgement
from warploom.verdict.judged import Cases, judged
from warploom.verdict.precision import Limits
from warploom.verdict.reference import Reference
from warploom.verdict.stand_in import Module, torch_stands_in
from warploom.verdict.tensors import Tensor
from warploom.without_gpu.cuda_kernel import CudaKernel

# What compilers are told beside a text, where it does not change what the text computes.
_FLAGS = re.compile(
    r"-(?:O\d|lineinfo|w|v|fPIC|Wno-.*|Xptxas.*|Xcompiler.*)|--?(?:use_fast_math|std=.*|arch=.*"
    r"|gencode.*|expt-[\w-]+|generate-(?:code.*|line-info)|ptxas-options.*|maxrregcount.*)|[^-].*"
)
_DEFINE = re.compile(r"-D(?P<name>\w+)(?:=(?P<value>.*))?")


@dataclass(slots=True)
class _Seen:
    """What a candidate did in its one call."""

    launches: list[Launch] = field(default_factory=list)
    made: list[Tensor] = field(default_factory=list)

    def load_inline(self, **how: Any) -> Any:
        """In the place of PyTorch's: the functions are read, and their launches noted."""
        parts = how.get("cuda_sources") or ""
        text = parts if isinstance(parts, str) else "\n".join(parts)
        text = _defined(how.get("extra_cuda_cflags") or []) + text
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
            self.made += read.made
            if not read.returned:
                return None
            return read.returned[0] if len(read.returned) == 1 else list(read.returned)

        return call


def _defined(flags: Sequence[str]) -> str:
    """Macros that a compiler is told, as text; its lines are those before, as compilers count."""
    out = ""
    for flag in flags:
        define = _DEFINE.fullmatch(flag)
        if define is not None:
            out += f"#define {define['name']} {define['value'] or 1}\n"
        elif not _FLAGS.fullmatch(flag):
            raise CheckError(f"the compiler is told '{flag[:60]}', which is not followed")
    return f"{out}#line 1\n" if out else ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A candidate, as a question for the judge."""

    kernel: Kernel
    reference: Reference
    shapes: Cases
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def judged(
        self, seconds: float, seed: int | None, limits: Limits | None = None, others: int = 0,
        general: bool = False, performance: bool = False,
    ) -> Judgement:  # fmt: skip
        return judged(
            self.kernel, self.reference, self.shapes, self.sizes, seconds, seed, limits, others,
            general, performance,
        )  # fmt: skip


def asked(
    problem: Path, candidate: Path, sizes: Mapping[str, int], arch: str, seconds: float
) -> Asked:
    """The question of one candidate; `sizes` take the place of the problem's whole numbers."""
    seen = _Seen()
    with (
        launches_of_triton(seen.launches, arch, candidate),
        torch_stands_in(seen.load_inline) as source,
    ):
        given = _module(problem, sizes)
        init = _called(given, "get_init_inputs", problem)
        model, inputs = (
            _called(given, "Model", problem, *init),
            _called(given, "get_inputs", problem),
        )
        named = _named(model, inputs, problem)
        source.made.clear()
        tried = _module(candidate, {})
        new = _called(tried, "ModelNew", candidate, *init)
        _share(model, new)
        result = called_safely(lambda: new(*inputs), candidate)
    if not seen.launches:
        raise CheckError(f"'{candidate}' launches no kernel: PyTorch computes its result")
    results = list(result) if isinstance(result, tuple | list) else [result]
    made = [*seen.made, *source.made]
    memories, outputs = memories_of(seen.launches, named, made, results)
    launches = [(each, _kernel(each, arch, seconds)) for each in seen.launches]
    reference = Reference(_reference(model, inputs, named, outputs, problem), on_tensors=True)
    return Asked(launches[-1][1], reference, InOrder(memories, launches))


def _kernel(launch: Launch, arch: str, seconds: float) -> Kernel:
    if launch.ready is not None:
        return launch.ready
    return _loaded(without_host(launch.text), launch.kernel, arch, seconds)


@lru_cache(maxsize=8)
def _loaded(text: str, name: str, arch: str, seconds: float) -> Kernel:
    return CudaKernel(text, name, arch, seconds).kernel


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
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("triton"):
            raise missing_extra("triton", "triton") from None
        said_ = f"{type(error).__name__}: {str(error)[:300]}"
        raise CheckError(f"'{path.name}' raised {said_}", raising_line(error, str(path))) from None


def _named(model: Module, inputs: Sequence[Any], problem: Path) -> dict[str, Tensor]:
    """The tensors that a candidate may be given: inputs as `forward` calls them, and parameters."""
    parameters = list(inspect.signature(type(model).forward).parameters.values())[1:]  # type: ignore[attr-defined]
    if len(inputs) > len(parameters) or any(
        each.kind is each.VAR_POSITIONAL for each in parameters
    ):
        raise CheckError(
            f"'{problem}': forward has no name for each of {len(inputs)} inputs",
            advice="give forward a parameter for each",
        )
    names = [each.name for each in parameters]
    pairs = [(n, each) for n, each in zip(names, inputs, strict=False) if isinstance(each, Tensor)]
    pairs += list(model.named_parameters())
    for number, (name, each) in enumerate(pairs):
        for other, one in pairs[:number]:
            if other == name or np.shares_memory(one.array, each.array):
                raise CheckError(
                    f"'{problem}': '{other}' and '{name}' have one name or one memory",
                    advice="make each input and each parameter a tensor of its own",
                )
    return dict(pairs)


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
    """`Model.forward` as a function of tensors by name."""
    parameters = dict(model.named_parameters())

    def reference(**given: Any) -> Any:
        before = {name: (each.array, each.kind) for name, each in parameters.items()}
        by_tensor = {id(each): given.get(name, each) for name, each in named.items()}
        try:
            for name, each in parameters.items():
                now = given.get(name, each)
                each.array, each.kind = now.array, now.kind
            made = model(*[by_tensor.get(id(x), x) for x in inputs])
        finally:
            for name, each in parameters.items():
                each.array, each.kind = before[name]
        listed = list(made) if isinstance(made, tuple | list) else [made]
        if len(listed) != len(outputs):
            raise CheckError(f"Model gives {len(listed)} results, ModelNew {len(outputs)}")
        return dict(zip(outputs, listed, strict=True))

    kind = inspect.Parameter.KEYWORD_ONLY
    floats = [name for name, each in named.items() if str(each.dtype) in FLOATS]
    names = [inspect.Parameter(name, kind, default=None) for name in floats]
    reference.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    reference.__name__ = f"{problem.stem}.Model"
    return reference
