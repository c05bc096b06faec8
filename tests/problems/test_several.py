"""Candidates that launch several kernels, in CUDA and in Triton, and numbers of their host code."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.tools import require

from warploom import ptx
from warploom.errors import AbsentError, WarploomError
from warploom.problems import triton_host
from warploom.problems.kernelbench import Asked, asked
from warploom.verdict.answer import Judgement
from warploom.without_gpu.prepared import Prepared

KEPT = Path(__file__).resolve().parents[1] / "without_gpu" / "kept"
PROBLEM = """
import torch
import torch.nn as nn

rows = 2
n = 9

class Model(nn.Module):
    def forward(self, x, alpha):
        return x / torch.sum(x, dim=1, keepdim=True) * alpha

def get_inputs():
    return [torch.rand(rows, n), torch.rand(1)]

def get_init_inputs():
    return []
"""
CANDIDATE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

sums = load_inline(name="a", cpp_sources="", functions=["sums"], cuda_sources="""
#define WIDE 16
__global__ void k(const float* x, float* s, int n) {
    float t = 0;
    for (int i = 0; i < n; i++) t += x[blockIdx.x * n + i];
    if (threadIdx.x == 0) s[blockIdx.x] = t;
}
void sums(torch::Tensor x, torch::Tensor s) {
    k<<<x.size(0), WIDE>>>(x.data_ptr<float>(), s.data_ptr<float>(), x.size(1));
}
""")
scale = load_inline(
    name="b", cpp_sources="", functions=["scale"], extra_cuda_cflags=["-O3", "-DSTEP=32"],
    cuda_sources="""
__global__ void k(const float* x, const float* s, const float* alpha, float* y, int n) {
    for (int i = threadIdx.x; i < n; i += STEP)
        y[blockIdx.x * n + i] = x[blockIdx.x * n + i] / s[blockIdx.x] * alpha[0];
}
torch::Tensor scale(torch::Tensor x, torch::Tensor s, torch::Tensor alpha) {
    auto options = torch::TensorOptions().dtype(torch::kFloat32).device(x.device());
    auto y = torch::empty({x.size(0), x.size(1)}, options);
    int threads = (int)(x.size(1) * 0.5f) * 0x8;
    k<<<x.size(0), threads>>>(
        x.data_ptr<float>(), s.data_ptr<float>(), alpha.data_ptr<float>(), y.data_ptr<float>(),
        x.size(1));
    return y;
}
""")

class ModelNew(nn.Module):
    def forward(self, x, alpha):
        s = torch.empty(x.size(0))
        sums.sums(x, s)
        return scale.scale(x, s, alpha)
'''


def question(folder: Path, candidate: str, problem: str = PROBLEM, **sizes: int) -> Asked:
    (folder / "problem.py").write_text(problem)
    (folder / "candidate.py").write_text(candidate)
    return asked(folder / "problem.py", folder / "candidate.py", sizes, "sm_90a", 60.0)


def judged(folder: Path, candidate: str, problem: str = PROBLEM, **sizes: int) -> Judgement:
    return question(folder, candidate, problem, **sizes).judged(60.0, 7)


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def test_kernels_in_order_are_one_function(tmp_path: Path) -> None:
    """Two texts, each with a kernel of the same name, and memory between them."""
    require("ptx")
    found = judged(tmp_path, CANDIDATE)
    assert found.verdict == "equal", found
    assert found.kernel == "k"
    case = question(tmp_path, CANDIDATE).shapes.at({}, 7)
    assert [each.block for each in case.launches] == [(16,), (32,)]
    assert case.launches[0].kernel is not case.launches[1].kernel


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("t += x[blockIdx.x * n + i]", "if (i) t += x[blockIdx.x * n + i]", ""),
        ("* alpha[0]", "", ""),  # another input than all others
        ("if (threadIdx.x == 0) s", "if (blockIdx.x == 0) s", "never written"),
        ("const float* x, float* s", "float* x, float* s", ""),
        ("if (threadIdx.x == 0) s[blockIdx.x] = t", "if (threadIdx.x == 0) s[blockIdx.x + 1] = t",
         "out-of-bounds"),
        ("sums.sums(x, s)", "", "never written"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_one_of_them(old: str, new: str, what: str, tmp_path: Path) -> None:
    require("ptx")
    text = changed(CANDIDATE, (old, new))
    if old.startswith("const"):
        text = changed(text, ("if (threadIdx.x == 0) s", "x[0] = 1; if (threadIdx.x == 0) s"))
        what = "writes to its input x"
    found = judged(tmp_path, text)
    assert found.verdict == "different", found
    if what:
        assert any(what in each.message for each in found.shapes[0].reasons), found
    else:
        assert found.counterexample is not None


def test_a_variable_between_kernels_is_not_taken_for_known(tmp_path: Path) -> None:
    """The second kernel reads what the first left in a variable, and takes it back."""
    require("ptx")
    source = changed(
        CANDIDATE,
        ("#define WIDE 16", "#define WIDE 16\n__device__ int mark;"),
        ("s[blockIdx.x] = t;", "{ s[blockIdx.x] = t; mark = 1; }"),
        ('functions=["sums"]', 'functions=["sums", "again"]'),
        ("void sums", "__global__ void wipe(float* s) {\n"
         "    if (threadIdx.x == 0) { s[0] *= 1 + mark; mark = 0; }\n}\n"
         "void again(torch::Tensor s) { wipe<<<1, 1>>>(s.data_ptr<float>()); }\nvoid sums"),
        ("sums.sums(x, s)", "sums.sums(x, s)\n        sums.again(s)"),
    )  # fmt: skip
    found = judged(tmp_path, source)
    assert found.verdict != "equal", found
    assert any("variable" in each.message for each in found.shapes[0].reasons), found


def test_a_value_that_was_drawn_is_no_constant(tmp_path: Path) -> None:
    """An input that no kernel is given stands for any value, too."""
    require("ptx")
    text = changed(
        CANDIDATE, ("return scale.scale(x, s, alpha)", "return scale.scale(x, s, ones)"),
        ("s = torch.empty(x.size(0))", "s, ones = torch.empty(x.size(0)), torch.zeros(1)"),
        ("* alpha[0]", "* (alpha[0] + 0.5f)"),
    )  # fmt: skip
    problem = changed(PROBLEM, ("torch.rand(1)]", "torch.ones(1) * 0.5]"))
    found = judged(tmp_path, text, problem)
    assert found.verdict == "different", found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("class Model(nn.Module):", "class Model(nn.Module):\n    def __init__(self):\n"
         "        self.alpha = nn.Parameter(torch.ones(1))\n", "have one name or one memory"),
        ("[torch.rand(rows, n), torch.rand(1)]", "[torch.rand(rows, n)] * 2", "one memory"),
        ("def forward(self, x, alpha)", "def forward(self, *x)", "has no name for each"),
    ],
)  # fmt: skip
def test_inputs_that_cannot_be_told_apart(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(WarploomError, match=said):
        judged(tmp_path, CANDIDATE, changed(PROBLEM, (old, new)))


def test_bfloat16(tmp_path: Path) -> None:
    require("ptx")
    problem = changed(
        PROBLEM, ("x / torch.sum(x, dim=1, keepdim=True) * alpha", "(x.float() * alpha.float())"
                  ".to(torch.bfloat16)"),
        ("torch.rand(rows, n), torch.rand(1)",
         "torch.rand(rows, n, dtype=torch.bfloat16), torch.rand(1, dtype=torch.bfloat16)"),
    )  # fmt: skip
    text = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

it = load_inline(name="a", cpp_sources="", functions=["f"], cuda_sources="""
#include <cuda_bf16.h>
__global__ void k(const __nv_bfloat16* x, const __nv_bfloat16* a, __nv_bfloat16* y, int n) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * __bfloat162float(a[0]));
}
torch::Tensor f(torch::Tensor x, torch::Tensor a) {
    auto y = torch::empty_like(x);
    k<<<(x.numel() + 31) / 32, 32>>>(
        reinterpret_cast<__nv_bfloat16*>(x.data_ptr<at::BFloat16>()),
        reinterpret_cast<__nv_bfloat16*>(a.data_ptr<at::BFloat16>()),
        reinterpret_cast<__nv_bfloat16*>(y.data_ptr<at::BFloat16>()), x.numel());
    return y;
}
""")

class ModelNew(nn.Module):
    def forward(self, x, alpha):
        return it.f(x, alpha)
'''
    found = judged(tmp_path, text, problem)
    assert found.verdict == "equal", found
    assert found.shapes[0].precision[0].roundings == 2
    wrong = changed(text, ("* __bfloat162float(a[0])", "+ __bfloat162float(a[0])"))
    assert judged(tmp_path, wrong, problem).verdict == "different"
    with pytest.raises(WarploomError, match="with PyTorch beside"):
        judged(tmp_path, changed(text, ("it.f(x,", "it.f(x.float().to(torch.bfloat16),")), problem)


# -- Triton ----------------------------------------------------------------------------------------

SOFTMAX = """
import torch
import torch.nn as nn

rows = 3
n = 37

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.rand(rows, n)]

def get_init_inputs():
    return []
"""
TRITON = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    pass

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[lambda meta: (x.shape[0],)](x, y, x.size(1), BLOCK=64)
        return y
"""


def test_without_triton_the_error_names_it(tmp_path: Path) -> None:
    try:
        import triton  # noqa: F401
    except ModuleNotFoundError:
        pass
    else:
        pytest.skip("Triton is installed")
    with pytest.raises(AbsentError, match="triton") as raised:
        judged(tmp_path, TRITON, SOFTMAX)
    assert "[triton]" in raised.value.advice


class PretendedJit:
    """As much of a `triton.jit` function as a candidate calls."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __getitem__(self, grid: Any) -> Any:
        return lambda *args, **named: self.run(*args, grid=grid, warmup=False, **named)

    def run(self, *args: Any, **named: Any) -> None:
        raise AssertionError("a launch on a GPU")


class Compiled:
    """In place of the compiler: what Triton made of the kernel is kept as text."""

    def __init__(self, function: Any, arch: str) -> None:
        if type(function).__name__ == "Autotuner":
            self.is_tuned, function = True, function.function
        assert (function.function.__name__, arch) == ("softmax", "sm_90a")

    def prepare(self, grid: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Prepared:
        text = (KEPT / "triton_softmax_float32_sm_90.ptx").read_text()
        kernel = ptx.load(text, "softmax").kernel()
        x, y, columns = args
        assert named == {"BLOCK": 64, **({"config": 0} if hasattr(self, "is_tuned") else {})}
        given = [x.raw, y.raw, columns]
        more = len(kernel.function.parameters) - len(given)
        assert (x.kind, x.aligned) == ("float32", True)
        return Prepared(kernel, grid(named), 128, [*given, *[None] * more], 16)


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> type[PretendedJit]:
    names = ("triton", "triton.language", "triton.runtime", "triton.runtime.jit",
             "triton.runtime.autotuner")  # fmt: skip
    made = {name: ModuleType(name) for name in names}
    for name, module in made.items():
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    jit = type("JITFunction", (PretendedJit,), {})
    made["triton"].__dict__.update(jit=jit, language=made["triton.language"])
    made["triton.language"].__dict__["constexpr"] = int
    made["triton.runtime.jit"].__dict__["JITFunction"] = jit
    tuner = type("Autotuner", (PretendedJit,), {})
    made["triton.runtime.autotuner"].__dict__["Autotuner"] = made["triton"].__dict__["tune"] = tuner
    monkeypatch.setattr(triton_host, "TritonKernel", Compiled)
    return jit


def test_a_kernel_of_triton(pretended: type[PretendedJit], tmp_path: Path) -> None:
    run = pretended.run
    found = judged(tmp_path, TRITON, SOFTMAX)
    assert found.verdict == "equal", found
    assert pretended.run is run  # as it was
    tuned = changed(TRITON, ("@triton.jit", "@triton.tune\n@triton.jit"))
    assert judged(tmp_path, tuned, SOFTMAX).verdict == "equal"
    wrong = changed(SOFTMAX, ("torch.softmax(x, dim=1)", "torch.softmax(x, dim=1) * 2"))
    assert judged(tmp_path, TRITON, wrong).verdict == "different"
    strange = changed(TRITON, ("(x, y, x", "(x.t(), y, x"))
    with pytest.raises(WarploomError, match="does not lie in order"):
        judged(tmp_path, strange, SOFTMAX)
