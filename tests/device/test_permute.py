"""`warploom.permute` on a GPU, beside PyTorch: results, gradients, operators, graphs, streams."""

from __future__ import annotations

from typing import Any

import pytest

import warploom
from warploom.errors import DeviceError

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

pytestmark = pytest.mark.device

CASES = [
    ((1027, 771), (1, 0)),
    ((3, 5, 7, 11, 13), (4, 2, 0, 3, 1)),
    ((64, 3, 96, 128), (0, 2, 3, 1)),
    ((5000, 3), (1, 0)),
    ((4, 33, 300, 3), (2, 1, 3, 0)),
    ((1, 17, 1), (2, 1, 0)),
    ((3, 0, 4), (2, 0, 1)),
    ((512, 512), (1, 0)),
    ((70000, 5), (1, 0)),
]
TYPES = ["uint8", "bool", "float16", "bfloat16", "float32", "int64", "complex64", "complex128"]


def made(shape: tuple[int, ...], kind: str = "float32") -> Any:
    bytes = torch.randint(0, 100, shape, device="cuda")
    return (bytes > 50) if kind == "bool" else bytes.to(getattr(torch, kind))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_are_those_of_pytorch(case: Any, kind: str) -> None:
    shape, axes = case
    x = made(shape, kind)
    found = warploom.permute(x, axes)
    assert found.is_contiguous()
    assert torch.equal(found, x.permute(axes))
    out = torch.empty_like(found)
    assert warploom.permute(x, list(axes), out) is out
    assert torch.equal(out, found)


def test_views_are_taken_as_they_lie() -> None:
    x = made((64, 130, 66))
    for view in (x[1:, 3:77, ::2], x.transpose(0, 2)[5:], x[:1].expand(9, 130, 66), x[:, 1]):
        axes = tuple(range(view.dim()))[::-1]
        assert torch.equal(warploom.permute(view, axes), view.permute(axes))
    out = torch.zeros(200, 200, device="cuda")
    warploom.permute(x[0], (1, 0), out[3:69, 1:131])
    assert torch.equal(out[3:69, 1:131], x[0].T)
    assert float(out.sum()) == float(x[0].sum())


def test_what_shares_memory_is_refused() -> None:
    x = made((64, 64))
    with pytest.raises(DeviceError, match="share memory"):
        warploom.permute(x, (1, 0), x)


def test_gradients_and_operators() -> None:
    ops = warploom_operators()
    x = torch.rand(5, 6, 7, dtype=torch.float64, device="cuda", requires_grad=True)
    for call in (lambda t: warploom.permute(t, (2, 0, 1)), lambda t: ops.permute(t, [2, 0, 1])):
        assert torch.equal(call(x), x.permute(2, 0, 1))
        assert torch.autograd.gradcheck(call, (x,), nondet_tol=0.0)
    result = torch.library.opcheck(ops.permute.default, (x, [2, 0, 1]))
    assert set(result.values()) == {"SUCCESS"}
    compiled = torch.compile(lambda t: ops.permute(t * 2, [2, 0, 1]) + 1, fullgraph=True,
                             backend="aot_eager")  # fmt: skip
    assert torch.equal(compiled(x), (x * 2).permute(2, 0, 1) + 1)


def warploom_operators() -> Any:
    from warploom.catalogue.operators import operators

    return operators()


def test_graphs_and_streams() -> None:
    x = made((300, 500))
    warploom.permute(x, (1, 0))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = warploom.permute(x, (1, 0))
    x.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, x.T)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        z = warploom.permute(x, (1, 0))
    stream.synchronize()
    assert torch.equal(z, x.T)


def test_tuned_calls_give_the_same(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_STORE", str(tmp_path / "store.db"))
    x = made((1030, 515))
    for how in ({}, {"dtype": torch.float16, "scale": 0.5}):
        wanted = warploom.permute(x, (1, 0), **how)
        assert torch.equal(warploom.permute(x, (1, 0), tune=60, **how), wanted)
        out = torch.empty_like(wanted)
        assert torch.equal(warploom.permute(x[:, 1:], (1, 0), out[1:], tune=60, **how), wanted[1:])


def test_arrays_of_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(3 * 40 * 50, dtype=cupy.float32).reshape(3, 40, 50)
    assert bool((warploom.permute(x, (2, 0, 1)) == x.transpose(2, 0, 1)).all())
    assert bool((warploom.permute(x[:, ::2], "transposed") == x[:, ::2].transpose(0, 2, 1)).all())
