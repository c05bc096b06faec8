"""Host code of a candidate, read: which kernel its function launches, on what.

Comes in: C++ as candidates write it around a kernel,

    torch::Tensor softmax(torch::Tensor x) {
        auto out = torch::empty_like(x);
        const int rows = x.size(0), n = x.size(1);
        softmax_kernel<<<rows, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
        return out;
    }

and the tensors it is called with. Goes out: one launch, and what is returned. Nothing is compiled
or run; a statement of any other kind is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.errors import ParseError, Source, Span
from warploom.problems.arithmetic import NotReadError, Number, as_whole
from warploom.ptx.launch import Kernel
from warploom.verdict.tensor_types import BFLOAT16, FLOATS, WHOLE
from warploom.verdict.tensors import Tensor

_FUNCTION = re.compile(
    r"^[ \t]*(?:(?:std::vector<)?(?:torch|at)::Tensor>?|void(?=[^()]*\([^()]*(?:torch|at)::Tensor))"
    r"\s+(?P<name>\w+)\s*\((?P<takes>[^)]*)\)\s*\{",
    re.MULTILINE,
)
# Numbers beside functions, which these may use.
_GLOBAL = re.compile(
    r"^[ \t]*(?:#define[ \t]+(?P<macro>\w+)[ \t]+(?P<text>[^\n]+)"
    r"|(?:(?:static|constexpr|const|__constant__)\s+)+(?P<kind>int|long|size_t|unsigned|float|double)"
    r"\s+(?P<name>\w+)\s*=\s*(?P<value>[^;\n]+);)",
    re.MULTILINE,
)
_INCLUDE = re.compile(
    r"^[ \t]*#include\s*[<\"](?:torch|ATen|c10|cuda_runtime|vector|pybind11)[^\n]*", re.MULTILINE
)
_LAUNCH = re.compile(r"(?P<name>\w+)\s*<<<(?P<shape>.*)>>>\s*\((?P<args>.*)\)", re.DOTALL)
_DECLARED = re.compile(
    r"(?:const\s+|constexpr\s+|static\s+)*"
    r"(?P<kind>auto|int|long|int64_t|size_t|unsigned int|unsigned|float|double|torch::Tensor"
    r"|at::Tensor|torch::TensorOptions)"
    r"\s*[&*]?\s+(?P<rest>\w+\s*=.*)",
    re.DOTALL,
)
_PLAIN = re.compile(r"\(.*\)|[\w.]+")
_DIM3 = re.compile(
    r"(?:const\s+)?dim3\s+(?P<name>\w+)\s*(?:\((?P<args>.*)\)|=\s*dim3\((?P<more>.*)\))"
)
_POINTER = re.compile(
    r"(?:\([\w ]+\*\)\s*)?(?P<name>\w+)\.(?:mutable_|const_)?data_ptr(?:<(?P<kind>[\w:]+)>)?\(\)"
)
_MADE = re.compile(
    r"torch::(?P<how>empty|zeros|ones)(?P<like>_like)?\s*\((?P<args>.*)\)", re.DOTALL
)
_OPTIONS = re.compile(
    r"(?:(?P<of>\w+)\.options\(\)|torch::TensorOptions\(\)|torch::dtype\((?:torch|at)::k(?P<only>\w+)\))"
    r"(?:\.(?:device\([^()]*(?:\(\))?\)|dtype\((?:torch|at)::k(?P<dtype>\w+)\)|requires_grad\(false\)))*"
)
_NAMED = {
    "Float": "float32", "Float32": "float32", "Half": "float16", "Float16": "float16",
    "BFloat16": "bfloat16", "Double": "float64", "Float64": "float64", "Int": "int32",
    "Int32": "int32", "Long": "int64", "Int64": "int64",
}  # fmt: skip
_POINTED = {
    "float": "float32", "double": "float64", "at::Half": "float16", "c10::Half": "float16",
    "__half": "float16", "half": "float16", "at::BFloat16": "bfloat16", "int": "int32",
    "c10::BFloat16": "bfloat16", "__nv_bfloat16": "bfloat16", "int32_t": "int32",
    "long": "int64", "int64_t": "int64",
}  # fmt: skip
_SAME = re.compile(r"(?P<name>\w+)(?:\.contiguous\(\))?")
# What says nothing of a launch: checks, streams, errors asked for.
_QUIET = re.compile(
    r"(?:TORCH_CHECK|CHECK_\w+|AT_ASSERT\w*|C10_CUDA\w+|cudaDeviceSynchronize|cudaGetLastError"
    r"|assert|c10::cuda::CUDAGuard\s+\w+|at::cuda::OptionalCUDAGuard\s+\w+|cudaFuncSetAttribute"
    r"|(?:auto|cudaStream_t)\s+\w+\s*=\s*(?:at|c10)::cuda::getCurrentCUDAStream)\s*\(.*",
    re.DOTALL,
)
_MAX_THREADS = 1 << 31


@dataclass(frozen=True, slots=True)
class Launch:
    """What is launched, of which text: arguments are tensors and numbers. `ready` is a kernel that
    was compiled already."""

    text: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    args: tuple[Any, ...]
    cluster: tuple[int, ...] | None = None
    ready: Kernel | None = None


@dataclass(slots=True)
class Function:
    """One function of a host text."""

    name: str
    takes: list[tuple[str, str]]  # type and name
    body: str
    start: int
    source: Source
    numbers: dict[str, Any]  # of the text

    def call(self, given: list[Any]) -> _Call:
        """Reads its statements for these tensors and numbers."""
        if len(given) != len(self.takes):
            what = f"'{self.name}' takes {len(self.takes)} arguments and is given {len(given)}"
            raise ParseError(what, self._span(0))
        named = {name: value for (_, name), value in zip(self.takes, given, strict=True)}
        call = _Call({**self.numbers, **named}, self.source.text)
        for at, statement in _statements(self.body):
            try:
                call.take(statement)
            except NotReadError as error:
                raise ParseError(
                    f"the host code says {error}, which is not read",
                    self._span(at),
                    advice="judge the kernel by itself, as a CUDA file",
                ) from None
        return call

    def _span(self, at: int) -> Span:
        before = self.source.text[: self.start + at]
        return Span(self.source, before.count("\n") + 1, len(before) - before.rfind("\n"))


@dataclass(slots=True)
class _Call:
    """A function while its statements are read."""

    names: dict[str, Any]
    text: str
    launches: list[Launch] = field(default_factory=list)
    made: list[Tensor] = field(default_factory=list)
    returned: list[Any] = field(default_factory=list)

    def take(self, text: str) -> None:
        if not text or _QUIET.fullmatch(text):
            return
        launch, declared = _LAUNCH.fullmatch(text), _DECLARED.fullmatch(text)
        if launch is not None:
            self.launches.append(self._launch(launch))
        elif text.startswith("return"):
            inner = text.removeprefix("return").strip().removeprefix("{").removesuffix("}")
            self.returned = [self._value(each) for each in _split(inner)]
        elif (shape := _DIM3.fullmatch(text)) is not None:
            self.names[shape["name"]] = self._three(shape["args"] or shape["more"])
        elif declared is not None:
            for each in _split(declared["rest"]):
                name, equals, value = each.partition("=")
                if not equals:
                    raise NotReadError(f"'{each[:60]}'")
                self.names[name.strip()] = self._declared(declared["kind"], value.strip())
        else:
            raise NotReadError(f"'{' '.join(text.split())[:60]}'")

    def _launch(self, found: re.Match[str]) -> Launch:
        shape = _split(found["shape"])
        if not 2 <= len(shape) <= 4:
            raise NotReadError("a launch without grid and block")
        grid, block = self._three(shape[0]), self._three(shape[1])
        shared = self._whole(shape[2]) if len(shape) > 2 else 0
        args = tuple(self._argument(each) for each in _split(found["args"]))
        return Launch(self.text, found["name"], grid, block, shared, args)

    def _argument(self, text: str) -> Any:
        pointer = _POINTER.fullmatch(text) or _POINTER.fullmatch(_reinterpreted(text))
        if pointer is None:
            return self._value(text)
        tensor = self.names.get(pointer["name"])
        if not isinstance(tensor, Tensor):
            raise NotReadError(f"the pointer '{text[:60]}'")
        kind = pointer["kind"]
        if kind is not None and _POINTED.get(kind) != str(tensor.dtype):
            raise NotReadError(f"that '{pointer['name']}', of {tensor.dtype}, holds {kind}")
        return tensor

    def _declared(self, kind: str, text: str) -> Any:
        """A value as its type has it."""
        value = self._value(text)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if kind in ("auto", "torch::Tensor", "at::Tensor", "torch::TensorOptions"):
            return value
        if not is_number:
            raise NotReadError(f"'{text[:60]}' where a number is needed")
        return float(value) if kind in ("float", "double") else as_whole(value)

    def _three(self, text: str) -> tuple[int, ...]:
        text = text.strip()
        if isinstance(self.names.get(text), tuple):
            return tuple(self.names[text])
        inner = re.fullmatch(r"dim3\((.*)\)", text)
        sizes = tuple(self._whole(each) for each in _split(inner[1] if inner else text))
        if not 1 <= len(sizes) <= 3:
            raise NotReadError(f"'{text[:60]}'")
        return sizes

    def _whole(self, text: str) -> int:
        value = self._value(text)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_THREADS:
            raise NotReadError(f"'{text[:60]}' where a whole number is needed")
        return value

    def _value(self, text: str) -> Any:
        text = text.strip()
        same, made = _SAME.fullmatch(text), _MADE.fullmatch(text)
        if made is not None:
            return self._tensor(made)
        if _OPTIONS.fullmatch(text):
            return Options(self._options(text))
        if same is not None and isinstance(self.names.get(same["name"]), Tensor):
            return self.names[same["name"]]
        return Number(self.names).of(text)

    def _tensor(self, found: re.Match[str]) -> Tensor:
        """A tensor that the function makes; what it holds is the judge's to say."""
        args = _split(found["args"])
        if not args or found["how"] == "ones":
            raise NotReadError(f"'{found[0][:60]}'")
        like = self.names.get(args[0].removesuffix(".sizes()"))
        if isinstance(like, Tensor) and (found["like"] or args[0].endswith(".sizes()")):
            shape, dtype = like.shape, like.dtype
        elif found["like"]:
            raise NotReadError(f"'{args[0][:60]}'")
        else:
            inner = _split(args[0].strip().removeprefix("{").removesuffix("}"))
            shape, dtype = tuple(self._whole(each) for each in inner), None
        if len(args) == 2:
            dtype = self._options(args[1])
        if dtype is None or len(args) > 2:
            raise NotReadError(f"a tensor without options: '{found[0][:60]}'")
        array = np.zeros(shape, np.float32 if dtype is BFLOAT16 else dtype)
        kind = BFLOAT16 if dtype is BFLOAT16 else None
        self.made.append(Tensor(array, kind, found["how"]))
        return self.made[-1]

    def _options(self, text: str) -> Any:
        """The type that options say."""
        text = text.strip()
        known = self.names.get(text)
        if isinstance(known, Options):
            return known.dtype
        found = _OPTIONS.fullmatch(text)
        if found is None:
            raise NotReadError(f"the options '{text[:60]}'")
        named = found["dtype"] or found["only"]
        if named is not None:
            if named not in _NAMED:
                raise NotReadError(f"the type k{named}")
            return {**FLOATS, **WHOLE}[_NAMED[named]]
        like = self.names.get(found["of"] or "")
        return like.dtype if isinstance(like, Tensor) else np.float32


@dataclass(frozen=True, slots=True)
class Options:
    """Options of tensors under a name."""

    dtype: Any


def without_host(text: str) -> str:
    """The device code alone, its lines where they were: what a compiler of kernels can take."""
    clean = _without_comments(text)
    kept = list(text)
    spans = [(m.start(), _closing(clean, m.end() - 1) + 1) for m in _FUNCTION.finditer(clean)]
    spans += [m.span() for m in _INCLUDE.finditer(clean)]
    for start, end in spans:
        kept[start:end] = ["\n" if letter == "\n" else " " for letter in text[start:end]]
    return "".join(kept)


def functions(text: str, name: str) -> dict[str, Function]:
    """The functions of a text that give tensors, by name."""
    source = Source(name, text)
    clean = _without_comments(text)
    numbers, found = _globals(clean), {}
    for each in _FUNCTION.finditer(clean):
        end = _closing(clean, each.end() - 1)
        takes = [_parameter(word) for word in _split(each["takes"])]
        found[each["name"]] = Function(
            each["name"], takes, clean[each.end() : end], each.end(), source, numbers
        )
    return found


def _globals(text: str) -> dict[str, Any]:
    """Numbers that a text names; a name that it gives several times, or not to a number, is none
    that is known."""
    found: dict[str, Any] = {}
    twice = set()
    for each in _GLOBAL.finditer(text):
        name = each["macro"] or each["name"]
        try:
            if each["macro"] and not _PLAIN.fullmatch(each["text"].strip()):
                raise NotReadError("what a macro becomes where it stands")
            value = Number(found).of(each["text"] or each["value"])
            kind = each["kind"]
            if kind is not None:
                value = float(value) if kind in ("float", "double") else as_whole(value)
        except NotReadError:
            value = None
        twice |= {name} & found.keys()
        found[name] = value
    return {k: v for k, v in found.items() if k not in twice and v is not None}


def _parameter(text: str) -> tuple[str, str]:
    words = re.findall(r"[\w:]+", text)
    return (" ".join(words[:-1]), words[-1]) if words else ("", "")


def _without_comments(text: str) -> str:
    """Spaces in their place, so that lines and columns stay."""
    return re.sub(
        r"//[^\n]*|/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL
    )


def _closing(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return place
    return len(text)


def _statements(body: str) -> Iterator[tuple[int, str]]:
    """Each statement with where it begins."""
    at = 0
    for part in body.split(";"):
        inner = part.strip()
        yield at + len(part) - len(part.lstrip()), inner
        at += len(part) + 1


def _split(text: str) -> list[str]:
    """At commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [each.strip() for each in parts if each.strip()]


def _reinterpreted(text: str) -> str:
    found = re.fullmatch(r"reinterpret_cast<[\w:* ]+>\s*\((.*)\)", text)
    return found[1] if found else text
