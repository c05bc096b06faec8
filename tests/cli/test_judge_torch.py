"""`warploom judge --reference`: a file that imports PyTorch, which is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Cli
from tests.cli.test_judge import CALL, SMALL

FILE = """
import torch
import torch.nn.functional as F

@torch.no_grad()
def right(x: torch.Tensor):
    top = x.float().max(dim=-1, keepdim=True).values
    e = torch.exp(x - top)
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)

def same(x):
    return F.softmax(x, dim=-1)

def wrong(x):
    return F.softmax(x, dim=-1) + torch.tensor([0.01])

def inside(x):
    import torch.nn.functional as inner
    return inner.softmax(x, dim=-1)

def unknown(x):
    return torch.erf(x)

def drawn(x):
    return x + torch.randn(33)
"""


@pytest.mark.parametrize(
    ("name", "status", "word"),
    [
        ("right", 0, "equal"), ("same", 0, "equal"), ("inside", 0, "equal"),
        ("wrong", 1, "different"), ("unknown", 2, "'torch.erf' is not among"),
        ("drawn", 2, "'torch.randn' is not among"),
    ],
)  # fmt: skip
def test_a_reference_in_torch_needs_no_torch(
    cli: Cli, name: str, status: int, word: str, tmp_path: Path
) -> None:
    (tmp_path / "refs.py").write_text(FILE)
    call = list(CALL)
    call[call.index("--reference") + 1] = f"{tmp_path / 'refs.py'}::{name}"
    ran = cli(*call, "--kernel", "softmax", *SMALL, "--others", "0")
    assert ran.status == status, ran.err
    assert word in ran.out + ran.err
