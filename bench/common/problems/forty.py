"""Forty problem files in KernelBench's form, each with three candidates: right, wrong in one place,
and made to pass a harness. The kernels are those of tests/verdict; what is new is the problems,
and the host code that candidates have around a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench.common.verdict.computations import COMPUTATIONS, ROOT, Computation
from bench.common.verdict.more_computations import MORE

KINDS = {"": "right", "_wrong": "wrong", "_gamed": "gamed"}
_ALL = {**COMPUTATIONS, **MORE}
_HALF = {"f16": ", dtype=torch.float16"}


class Problem(NamedTuple):
    """`body` is that of `Model.forward`; `kernel` names the computation whose kernels candidates
    launch; `init` and `held` are for arguments that the model holds as parameters."""

    body: str
    kernel: str
    level: int = 1
    init: str = ""
    held: tuple[str, ...] = ()


def _of(body: str, level: int = 1) -> tuple[str, int]:
    return body, level


_BODIES: dict[str, tuple[str, int]] = {
    "saxpy": _of("return a * x + y"),
    "relu": _of("return torch.relu(x)"),
    "silu": _of("return F.silu(x)"),
    "sigmoid": _of("return torch.sigmoid(x)"),
    "row_sum": _of("return torch.sum(x, dim=1)"),
    "dot": _of("return torch.dot(x, y).reshape(1)"),
    "row_max": _of("return torch.max(x, dim=1)[0]"),
    "softmax": _of("return torch.softmax(x, dim=1)"),
    "layer_norm": _of("return F.layer_norm(x, (x.size(1),))"),
    "rms_norm": _of("return x * torch.rsqrt(torch.mean(x * x) + 1e-6)"),
    "matmul": _of("return torch.matmul(a, b)"),
    "transpose": _of("return x.t()"),
    "convolve": _of(
        "wide = torch.cat([torch.zeros(2), x, torch.zeros(2)])\n"
        "return sum(w[k] * wide[k : k + x.size(0)] for k in range(5))"
    ),
    "heat": _of(
        "near = x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]\n"
        "inner = x[1:-1, 1:-1] + 0.125 * (near - 4 * x[1:-1, 1:-1])\n"
        "rows = torch.cat([x[1:-1, :1], inner, x[1:-1, -1:]], dim=1)\n"
        "return torch.cat([x[:1], rows, x[-1:]])", 2,
    ),
    "scan": _of("return torch.cumsum(x, dim=0)"),
    "gather": _of("return x[at]"),
    "attention": _of("return torch.softmax((q @ k.t()) / 32**0.5, dim=1) @ v", 2),
    "log_sum_exp": _of("return torch.logsumexp(x, dim=1)"),
    "gelu": _of("return x / (1 + torch.exp(-2 * (0.79788456 * (x + 0.044715 * x * x * x))))"),
    "softplus": _of("return F.softplus(x)"),
    "rope": _of(
        "n = c.size(0)\na, b = x[:, :n], x[:, n:]\n"
        "return torch.cat([a * c - b * s, a * s + b * c], dim=1)", 2,
    ),
    "entropy": _of("return torch.logsumexp(x, dim=1) - x[[0, 1, 2], at]", 2),
    "batch_norm": _of("return (x - m) / torch.sqrt(v + 1e-5) * w + b"),
    "unit": _of("return x / torch.sqrt(torch.sum(x * x, dim=1, keepdim=True))"),
    "outer": _of("return torch.outer(a, b)"),
    "matvec": _of("return torch.mv(a, x)"),
    "tiled": _of("return torch.mm(a, b.t())"),
    "batched": _of("return torch.bmm(a, b)"),
    "taps": _of(
        "rows, n = x.shape\n"
        "near = [(p, q) for p in range(3) for q in range(3)]\n"
        "return sum(w[p, q] * x[p : rows - 2 + p, q : n - 2 + q] for p, q in near)"
    ),
    "mean_pool": _of("return x.reshape(x.size(0) // 2, 2, x.size(1) // 2, 2).mean(dim=(1, 3))"),
    "max_pool": _of("return x.reshape(x.size(0) // 2, 2, x.size(1) // 2, 2).amax(dim=(1, 3))"),
    "embed": _of("return table[at] * 5.6568542", 2),
    "block_scan": _of("return torch.cumsum(x, dim=0)"),
    "columns": _of("return torch.sum(x, dim=0)"),
    "swiglu": _of("return F.silu(x) * z", 2),
    "causal": _of(
        "n = x.size(0)\n"
        "rows = [torch.softmax(x[row, : row + 1], dim=0) for row in range(n)]\n"
        "return torch.stack([torch.cat([r, torch.zeros(n - len(r))]) for r in rows])", 2,
    ),
    "adam": _of(
        "m, v = 0.875 * m + 0.125 * g, 0.96875 * v + 0.03125 * g * g\n"
        "return p - 0.0009765625 * m / (torch.sqrt(v) + 1e-8), m, v", 2,
    ),
    "half_axpy": _of("return a * x + y"),
}  # fmt: skip
PROBLEMS = {name: Problem(body, name, level) for name, (body, level) in _BODIES.items()}
PROBLEMS |= {
    "linear": Problem(
        "return self.layer(a)", "tiled", 2, "self.layer = nn.Linear(depth, n, bias=False)",
        ("b=layer.weight",),
    ),
    "scaled": Problem(
        "return (x - m) / torch.sqrt(v + 1e-5) * self.w + self.b", "batch_norm", 2,
        "self.w = nn.Parameter(torch.ones(n))\nself.b = nn.Parameter(torch.ones(n))",
        ("w=w", "b=b"),
    ),
}  # fmt: skip


def write(folder: Path, name: str) -> tuple[Path, dict[str, Path]]:
    """The files of one problem: its own, and of each kind of candidate."""
    folder.mkdir(parents=True, exist_ok=True)
    problem = folder / f"{name}.py"
    problem.write_text(_problem(PROBLEMS[name]))
    found = {}
    for ending, kind in KINDS.items():
        found[kind] = folder / f"{name}_{kind}_candidate.py"
        found[kind].write_text(_candidate(name, PROBLEMS[name], ending))
    return problem, found


def _computation(problem: Problem) -> Computation:
    return _ALL[problem.kernel]


def _held(problem: Problem) -> dict[str, str]:
    return dict(each.split("=") for each in problem.held)


def _inputs(problem: Problem) -> Iterator[tuple[str, Any]]:
    """What the model is called with, of the kernel's arguments."""
    for name, text in _computation(problem).args.items():
        whole = isinstance(text, str) and ("=out" in text or re.match(r"i32=", text))
        if not whole and name not in _held(problem):
            yield name, text


def _problem(problem: Problem) -> str:
    c = _computation(problem)
    names = [name for name, _ in _inputs(problem)]
    sizes = "".join(f"{key} = {value}\n" for key, value in c.shape.items())
    return _PROBLEM.format(
        init=_indented(problem.init or "pass"), names=", ".join(names),
        body=_indented(problem.body), sizes=sizes,
        inputs=", ".join(_input(text) for _, text in _inputs(problem)),
    )  # fmt: skip


def _input(text: Any) -> str:
    if isinstance(text, np.ndarray):
        return f"torch.tensor({text.tolist()}, dtype=torch.int32)"
    kind, _, rest = text.removesuffix("=inout").partition("[")
    if not rest:
        return "0.75"
    return f"torch.randn({rest.removesuffix(']')}{_HALF.get(kind, '')})"


def _candidate(name: str, problem: Problem, ending: str) -> str:
    names = [each for each, _ in _inputs(problem)]
    held = _held(problem)
    passed = [f"self.{held[each]}" if each in held else each for each in _given(problem)]
    return _CANDIDATE.format(
        source=f"{_kernel(problem.kernel)}\n{_host(name, problem, ending)}", name=name,
        init=_indented(_with_sizes(problem)), names=", ".join(names), passed=", ".join(passed),
    )  # fmt: skip


def _with_sizes(problem: Problem) -> str:
    """A layer of the candidate needs the sizes of the problem's."""
    text = problem.init or "pass"
    for key, value in _computation(problem).shape.items():
        text = re.sub(rf"\b{key}\b", str(value), text)
    return text


def _given(problem: Problem) -> list[str]:
    """What the host function is given: all that the kernel is, but sizes and new outputs."""
    args = _computation(problem).args.items()
    return [n for n, t in args if not isinstance(t, str) or not re.search(r"=out|^i32=", t)]


def _kernel(name: str) -> str:
    """The paragraph of a kernel, with what stands before all."""
    for file in ("kernels.cu", "more.cu"):
        paragraphs = (ROOT / "tests" / "verdict" / file).read_text().split("\n\n")
        found = [
            e for e in paragraphs if re.search(rf"^K {name}\(|^THREE\({name},", e, re.MULTILINE)
        ]
        if found:
            text = "\n\n".join([*paragraphs[:1], _SUMS, *found])
            if "half" not in found[0]:
                text = text.replace("#include <cuda_fp16.h>\n", "")
            return re.sub(r"#include <(?:cuda_bf16|mma).h>\n", "", text)
    raise ValueError(f"no kernel '{name}'")


_SUMS = """__device__ float total(float s) {
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(ALL, s, o);
    return s;
}
__device__ float top(float s) {
    for (int o = 16; o; o >>= 1) s = fmaxf(s, __shfl_xor_sync(ALL, s, o));
    return s;
}"""


def _host(name: str, problem: Problem, ending: str) -> str:
    """The C++ around a launch, as candidates have it."""
    c = _computation(problem)
    args = {each: text for each, text in c.args.items() if isinstance(text, str)}
    takes = ", ".join(
        f"float {each}" if args.get(each) == "f32" else f"torch::Tensor {each}"
        for each in _given(problem)
    )
    lines = [f"const int {key} = {_size(key, args)};" for key in c.shape]
    outputs = [each for each, text in args.items() if "=out" in text]
    options = next(each for each in _given(problem) if "[" in args.get(each, ""))
    for each in outputs:
        shape = args[each].partition("[")[2].partition("]")[0].replace("//", "/")
        how = "zeros" if args[each].endswith("zeros") else "empty"
        lines.append(f"auto {each} = torch::{how}({{{shape}}}, {options}.options());")
    grid, block = c.grid.replace("//", "/"), c.block.replace("//", "/")
    passed = ", ".join(_passed(each, text) for each, text in c.args.items())
    shared = f", {c.shared}" if c.shared else ""
    lines += [f"const dim3 grid({grid});", f"const dim3 block({block});"]
    lines.append(f"{problem.kernel}{ending}<<<grid, block{shared}>>>({passed});")
    changed = [each for each, text in args.items() if "=inout" in text]
    results = ", ".join([*changed, *outputs])
    several = len(changed) + len(outputs) > 1
    kind = "std::vector<torch::Tensor>" if several else "torch::Tensor"
    lines.append(f"return {{{results}}};" if several else f"return {results};")
    body = "\n".join(f"    {line}" for line in lines)
    return f"{kind} {name}_cuda({takes}) {{\n{body}\n}}"


def _size(key: str, args: dict[str, str]) -> str:
    """A size from the shape of an input that has it."""
    for name, text in args.items():
        if "[" in text and "=out" not in text:
            for place, each in enumerate(text.partition("[")[2].partition("]")[0].split(",")):
                if each == key:
                    return f"{name}.size({place})"
                if each == f"2*{key}":
                    return f"{name}.size({place}) / 2"
    raise ValueError(f"no input has the size '{key}'")


def _passed(name: str, text: Any) -> str:
    if isinstance(text, np.ndarray):
        return f"{name}.data_ptr<int>()"
    if text.startswith("i32="):
        return text.removeprefix("i32=").replace("//", "/")
    if "[" not in text:
        return name
    if text.startswith("f16"):
        return f"reinterpret_cast<__half*>({name}.data_ptr<at::Half>())"
    return f"{name}.data_ptr<float>()"


def _indented(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.split("\n"))


_PROBLEM = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {names}):
{body}


{sizes}

def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
_CANDIDATE = '''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
{source}
"""
extension = load_inline(
    name="{name}", cpp_sources="", cuda_sources=source, functions=["{name}_cuda"], verbose=False
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {names}):
        return extension.{name}_cuda({passed})
'''
