"""Problems in KernelBench's form and candidates: verdicts, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from bench.common.problems.forty import PROBLEMS, write
from tests.tools import require

from warploom.errors import WarploomError
from warploom.problems.host import functions, without_host
from warploom.problems.kernelbench import asked
from warploom.verdict.tensors import Tensor


def verdict(problem: Path, candidate: Path, **sizes: int) -> str:
    return asked(problem, candidate, sizes, "sm_90a", 60.0).judged(60.0, 7).verdict


def test_there_are_forty_of_both_levels() -> None:
    assert len(PROBLEMS) == 40
    assert {each.level for each in PROBLEMS.values()} == {1, 2}


@pytest.mark.sampled(3, each="kind")
@pytest.mark.parametrize("name", list(PROBLEMS))
@pytest.mark.parametrize("kind", ["right", "wrong", "gamed"])
def test_verdicts(name: str, kind: str, tmp_path: Path) -> None:
    require("ptx")
    problem, candidates = write(tmp_path, name)
    expected = "equal" if kind == "right" else "different"
    assert verdict(problem, candidates[kind]) == expected


def test_torch_is_what_it_was_before(tmp_path: Path) -> None:
    require("ptx")
    before = {name: sys.modules.get(name) for name in ("torch", "torch.nn")}
    problem, candidates = write(tmp_path, "relu")
    asked(problem, candidates["right"], {"n": 5}, "sm_90a", 60.0)
    assert {name: sys.modules.get(name) for name in before} == before


CHANGED = {
    "no launch": ("relu<<<grid, block>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);", "",
                  "launches no kernel"),
    "a loop": ("    return y;", "    for (int k = 0; k < 3; k++) n;\n    return y;", "is not read"),
    "PyTorch beside it": ("extension.relu_cuda(x)", "extension.relu_cuda(x) * 1",
                          "computes with PyTorch"),
    "another module": ("import torch.nn as nn", "import torch.distributed as nn", "raised"),
    "an unknown function": ("return extension", "torch.einops(x)\n        return extension",
                            "'torch.einops' is not among"),
    "an input as another type": ("extension.relu_cuda(x)", "extension.relu_cuda(x.half())",
                                 "of float16, holds float"),
    "an option of the compiler": ("verbose=False", 'extra_cuda_cflags=["-include=x.h"]',
                                  "is told '-include=x.h'"),
    "a pointer of another type": ("x.data_ptr<float>()", "x.data_ptr<double>()", "holds double"),
    "one tensor twice": ("x.data_ptr<float>(), y", "y.data_ptr<float>(), y", "tensor twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CHANGED))
def test_what_is_not_judged(name: str, tmp_path: Path) -> None:
    require("ptx")
    old, new, said = CHANGED[name]
    problem, candidates = write(tmp_path, "relu")
    text = candidates["right"].read_text()
    assert old in text
    candidates["right"].write_text(text.replace(old, new))
    with pytest.raises(WarploomError, match=said):
        verdict(problem, candidates["right"])


def test_a_statement_that_is_not_read_has_its_line() -> None:
    text = (
        "torch::Tensor f(torch::Tensor x) {\n    auto y = torch::empty_like(x);\n    y.add_(x);\n}"
    )
    with pytest.raises(WarploomError) as raised:
        functions(text, "a.cu")["f"].call([Tensor(np.zeros(3, np.float32))])
    span = raised.value.span
    assert span is not None
    assert (span.line, span.column) == (3, 5)


def test_device_code_keeps_its_lines() -> None:
    text = "#include <torch/extension.h>\n__global__ void k() {}\n"
    text += "torch::Tensor f() {\n  { }\n}\nint g;\n"
    kept = without_host(text).split("\n")
    assert [line.strip() for line in kept] == [
        "",
        "__global__ void k() {}",
        "",
        "",
        "",
        "int g;",
        "",
    ]
