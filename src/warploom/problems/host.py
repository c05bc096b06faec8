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

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.errors import ParseError, Source, Span
from warploom.problems.tensors import Tensor

_FUNCTION = re.compile(
    r"^[ \t]*(?:std::vector<)?(?:torch|at)::Tensor>?\s+(?P<name>\w+)\s*\((?P<takes>[^)]*)\)\s*\{",
    re.MULTILINE,
)
_INCLUDE = re.compile(
    r"^[ \t]*#include\s*[<\"](?:torch|ATen|c10|cuda_runtime|vector|pybind11)[^\n]*", re.MULTILINE
)
_LAUNCH = re.compile(
    r"(?P<name>\w+)\s*(?:<[\w:, ]*>)?\s*<<<(?P<shape>.*)>>>\s*\((?P<args>.*)\)", re.DOTALL
)
_DECLARED = re.compile(
    r"(?:const\s+|constexpr\s+|static\s+)*"
    r"(?:auto|int|long|int64_t|size_t|unsigned int|unsigned|float|double|torch::Tensor|at::Tensor)"
    r"\s*[&*]?\s+(?P<rest>\w+\s*=.*)",
    re.DOTALL,
)
_DIM3 = re.compile(
    r"(?:const\s+)?dim3\s+(?P<name>\w+)\s*(?:\((?P<args>.*)\)|=\s*dim3\((?P<more>.*)\))"
)
_POINTER = re.compile(
    r"(?:\([\w ]+\*\)\s*)?(?P<name>\w+)\.(?:mutable_|const_)?data_ptr(?:<[\w:]+>)?\(\)"
)
_MADE = re.compile(
    r"torch::(?P<how>empty|zeros|ones)(?P<like>_like)?\s*\((?P<args>.*)\)", re.DOTALL
)
_SAME = re.compile(r"(?P<name>\w+)(?:\.contiguous\(\))?")
# What says nothing of a launch: checks, streams, errors asked for.
_QUIET = re.compile(
    r"(?:TORCH_CHECK|CHECK_\w+|AT_ASSERT\w*|C10_CUDA\w+|cudaDeviceSynchronize|cudaGetLastError"
    r"|assert|c10::cuda::CUDAGuard\s+\w+|at::cuda::OptionalCUDAGuard\s+\w+)\s*\(.*",
    re.DOTALL,
)
_CASTS = re.compile(
    r"\((?:int|long|int64_t|size_t|unsigned|unsigned int|float|double)\)|static_cast<\w+>"
)
_MAX_THREADS = 1 << 31


@dataclass(frozen=True, slots=True)
class Launch:
    """What is launched: arguments are tensors and numbers; `made` are tensors that the function
    has made, with how their memory begins."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    args: tuple[Any, ...]


@dataclass(slots=True)
class Function:
    """One function of a host text."""

    name: str
    takes: list[tuple[str, str]]  # type and name
    body: str
    start: int
    source: Source

    def call(self, given: list[Any]) -> _Call:
        """Reads its statements for these tensors and numbers."""
        if len(given) != len(self.takes):
            what = f"'{self.name}' takes {len(self.takes)} arguments and is given {len(given)}"
            raise ParseError(what, self._span(0))
        names = {name: value for (_, name), value in zip(self.takes, given, strict=True)}
        call = _Call(names)
        for at, statement in _statements(self.body):
            try:
                call.take(statement)
            except _NotReadError as error:
                raise ParseError(
                    f"the host code says {error}, which is not read",
                    self._span(at),
                    advice="judge the kernel by itself, as a CUDA file",
                ) from None
        return call

    def _span(self, at: int) -> Span:
        before = self.source.text[: self.start + at]
        return Span(self.source, before.count("\n") + 1, len(before) - before.rfind("\n"))


class _NotReadError(Exception):
    pass


@dataclass(slots=True)
class _Call:
    """A function while its statements are read."""

    names: dict[str, Any]
    launches: list[Launch] = field(default_factory=list)
    made: dict[int, str] = field(default_factory=dict)  # by identity: empty or zeros
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
                    raise _NotReadError(f"'{each[:60]}'")
                self.names[name.strip()] = self._value(value.strip())
        else:
            raise _NotReadError(f"'{' '.join(text.split())[:60]}'")

    def _launch(self, found: re.Match[str]) -> Launch:
        shape = _split(found["shape"])
        if not 2 <= len(shape) <= 4:
            raise _NotReadError("a launch without grid and block")
        grid, block = self._three(shape[0]), self._three(shape[1])
        shared = self._whole(shape[2]) if len(shape) > 2 else 0
        args = tuple(self._argument(each) for each in _split(found["args"]))
        return Launch(found["name"], grid, block, shared, args)

    def _argument(self, text: str) -> Any:
        pointer = _POINTER.fullmatch(text) or _POINTER.fullmatch(_reinterpreted(text))
        if pointer is None:
            return self._value(text)
        tensor = self.names.get(pointer["name"])
        if not isinstance(tensor, Tensor):
            raise _NotReadError(f"the pointer '{text[:60]}'")
        return tensor

    def _three(self, text: str) -> tuple[int, ...]:
        text = text.strip()
        if isinstance(self.names.get(text), tuple):
            return tuple(self.names[text])
        inner = re.fullmatch(r"dim3\((.*)\)", text)
        sizes = tuple(self._whole(each) for each in _split(inner[1] if inner else text))
        if not 1 <= len(sizes) <= 3:
            raise _NotReadError(f"'{text[:60]}'")
        return sizes

    def _whole(self, text: str) -> int:
        value = self._value(text)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_THREADS:
            raise _NotReadError(f"'{text[:60]}' where a whole number is needed")
        return value

    def _value(self, text: str) -> Any:
        text = text.strip()
        same, made = _SAME.fullmatch(text), _MADE.fullmatch(text)
        if made is not None:
            return self._tensor(made)
        if same is not None and isinstance(self.names.get(same["name"]), Tensor):
            return self.names[same["name"]]
        return _Number(self.names).of(text)

    def _tensor(self, found: re.Match[str]) -> Tensor:
        """A tensor that the function makes; what it holds is the judge's to say."""
        args = _split(found["args"])
        if found["like"]:
            like = self.names.get(args[0])
            if not isinstance(like, Tensor):
                raise _NotReadError(f"'{args[0][:60]}'")
            made = Tensor(np.zeros(like.shape, like.dtype))
        else:
            shape = args[0].strip().removeprefix("{").removesuffix("}")
            like = next((v for v in self.names.values() if isinstance(v, Tensor)), None)
            named = re.search(r"(\w+)\.options\(\)", found["args"])
            like = self.names.get(named[1], like) if named else like
            if not isinstance(like, Tensor) or not (named and "dtype" not in found["args"]):
                raise _NotReadError(f"a tensor without .options() of another: '{found[0][:60]}'")
            made = Tensor(np.zeros([self._whole(each) for each in _split(shape)], like.dtype))
        if found["how"] == "ones":
            raise _NotReadError("'torch::ones'")
        self.made[id(made)] = found["how"]
        return made


class _Number:
    """Arithmetic on whole numbers and floats as C has it, of names that have values."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def of(self, text: str) -> Any:
        plain = re.sub(r"(?<=[\d.])(?:f|F|u|U|l|L|ll|LL|ul|UL)\b", "", _CASTS.sub("", text))
        plain = plain.replace("std::", "").replace("&&", " and ").replace("||", " or ")
        try:
            return self._of(ast.parse(plain.strip(), mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, OverflowError):
            raise _NotReadError(f"'{text[:60]}'") from None

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.Name(id=name) if isinstance(self.names.get(name), int | float):
                return self.names[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._of(inner)
            case ast.BinOp(left=left, op=op, right=right):
                return self._joined(op, self._of(left), self._of(right))
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[first, second]):
                return {"min": min, "max": max}[name](self._of(first), self._of(second))
            case ast.Call(func=ast.Name(id="sizeof"), args=[ast.Name(id=kind)]):
                return {"float": 4, "int": 4, "double": 8, "half": 2}[kind]
            case ast.Call(func=ast.Name(id="sqrtf" | "sqrt"), args=[inner]):
                return float(np.sqrt(self._of(inner)))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr), args=args):
                tensor = self.names.get(name)
                if isinstance(tensor, Tensor) and attr in ("size", "numel", "dim"):
                    return int(getattr(tensor, attr)(*map(self._of, args)))
        raise ValueError(ast.unparse(node))

    def _joined(self, op: ast.operator, a: Any, b: Any) -> Any:
        whole = isinstance(a, int) and isinstance(b, int)
        match op:
            case ast.Add():
                return a + b
            case ast.Sub():
                return a - b
            case ast.Mult():
                return a * b
            case ast.Div() if whole:
                return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
            case ast.Div():
                return a / b
            case ast.Mod() if whole and a >= 0 and b > 0:
                return a % b
            case ast.LShift() if whole and 0 <= b < 63:
                return a << b
            case ast.RShift() if whole and 0 <= b < 63:
                return a >> b
        raise ValueError


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
    found = {}
    for each in _FUNCTION.finditer(clean):
        end = _closing(clean, each.end() - 1)
        takes = [_parameter(word) for word in _split(each["takes"])]
        found[each["name"]] = Function(
            each["name"], takes, clean[each.end() : end], each.end(), source
        )
    return found


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
