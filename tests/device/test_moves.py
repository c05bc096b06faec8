"""Conversions and `warploom.moves` on a GPU, beside PyTorch: results, gradients, operators."""

from __future__ import annotations

from typing import Any

import pytest

import warploom
from warploom import moves

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

pytestmark = pytest.mark.device


def made(shape: tuple[int, ...], kind: str = "float32") -> Any:
    return torch.randint(0, 100, shape, device="cuda").to(getattr(torch, kind))


@pytest.mark.parametrize("source", ["uint8", "float16", "bfloat16", "float32", "int32", "float64"])
@pytest.mark.parametrize("target", ["uint8", "float16", "bfloat16", "float32", "int64"])
def test_conversions(source: str, target: str) -> None:
    kind = getattr(torch, target)
    for shape, axes in (((1027, 771), (1, 0)), ((64, 3, 96, 128), (0, 2, 3, 1)),
                        ((33, 300, 3), (2, 0, 1)), ((5, 1000), (0, 1))):  # fmt: skip
        x = made(shape, source)
        found = warploom.permute(x, axes, dtype=kind)
        assert torch.equal(found, x.to(kind).permute(axes))
        scaled = warploom.permute(x, axes, dtype=target, scale=2, shift=1)
        assert torch.equal(scaled, (x.double() * 2 + 1).to(kind).permute(axes))
    scale = [1.0, 2.0, 0.5]
    found = warploom.permute(
        made((33, 300, 3), source), (2, 0, 1), dtype=kind, scale=scale, along=2
    )
    assert found.dtype is kind


def test_each_step_has_its_factor() -> None:
    for shape, axes, along in (((40, 50, 3), (2, 0, 1), 2), ((4, 3, 64, 64), (0, 2, 3, 1), 1),
                               ((100, 200), (1, 0), 0), ((100, 200), (1, 0), 1)):  # fmt: skip
        x = made(shape)
        factors = torch.arange(1.0, shape[along] + 1)
        across = [-1 if axis == along else 1 for axis in range(len(shape))]
        found = warploom.permute(x, axes, scale=factors, shift=factors, along=along)
        each = factors.cuda().view(across)
        assert torch.equal(found, (x * each + each).permute(axes))


@pytest.mark.parametrize("kind", ["uint8", "bool", "bfloat16", "float32", "float64", "complex128"])
def test_frames(kind: str) -> None:
    for shape, widths in (((64, 3, 30, 41), ((0, 0), (0, 0), (1, 2), (3, 0))),
                          ((1000, 1024), ((1, 1), (0, 0))), ((70001,), ((5, 6),))):  # fmt: skip
        x = made(shape, kind)
        flat = [each for pair in widths[::-1] for each in pair]
        wanted = torch.nn.functional.pad(x, flat, value=1)
        assert torch.equal(moves.pad(x, widths, 1), wanted)
        assert torch.equal(moves.pad(x[..., ::2], widths, 0),
                           torch.nn.functional.pad(x[..., ::2], flat))  # fmt: skip


@pytest.mark.parametrize("kind", ["uint8", "bfloat16", "float32", "complex128"])
def test_rows(kind: str) -> None:
    x = made((40, 50, 24), kind)
    for axis in range(3):
        order = torch.randperm(x.shape[axis], device="cuda")
        for numbers in (order, order.int(), order[:7], order.cpu(), order[:7].tolist()):
            index = torch.as_tensor(numbers, device="cuda").long()
            assert torch.equal(moves.take(x, numbers, axis), x.index_select(axis, index))
    outside = torch.tensor([3, 99, -1], device="cuda")
    found = moves.take(x, outside)
    assert torch.equal(found[[0, 2]], x[[3, -1]])
    assert not found[1].any()


def test_parts_and_windows() -> None:
    x = made((6, 10, 33))
    parts = [x, x[:, :3] + 1, x[:, ::2]]
    for _ in range(3):  # later calls have the plan of the first
        parts = [each + 1 for each in parts]
        assert torch.equal(moves.concatenate(parts, 1), torch.cat(parts, 1))
    truths = [each > 50 for each in parts]
    assert all(torch.equal(moves.concatenate(truths, 1), torch.cat(truths, 1)) for _ in range(2))
    for one, other in zip(moves.split(x, [3, 30], 2), x.split([3, 30], 2), strict=True):
        assert torch.equal(one, other)
        assert one.is_contiguous()
    mixed = moves.interleave([x, -x], 1)
    assert torch.equal(mixed, torch.stack([x, -x], 2).reshape(6, 20, 33))
    assert torch.equal(moves.interleave(torch.stack([x, -x]), 1), mixed)
    assert torch.equal(moves.deinterleave(mixed, 2, 1), torch.stack([x, -x]))
    images = made((2, 3, 20, 31))
    functional = torch.nn.functional
    for options in ((3, 1, 1, 1), ((2, 5), (2, 3), 0, (3, 1))):
        kernel, stride, padding, dilation = options
        columns = functional.unfold(images, kernel, dilation, padding, stride)
        assert torch.equal(moves.im2col(images, *options), columns)
    columns = functional.unfold(images, 4, 1, 2, 5)
    assert torch.equal(moves.col2im(columns, (20, 31), 4, 5, 2),
                       functional.fold(columns, (20, 31), 4, 1, 2, 5))  # fmt: skip


def test_gradients() -> None:
    x = torch.rand(2, 3, 6, 5, dtype=torch.float64, device="cuda", requires_grad=True)
    calls = [
        lambda t: warploom.permute(t, (1, 0, 3, 2), scale=0.5, shift=2.0),
        lambda t: warploom.permute(t, (1, 0, 3, 2), scale=[1, 2, 3], along=1),
        lambda t: moves.pad(t, ((0, 0), (1, 0), (2, 1), (0, 3))),
        lambda t: moves.take(t, [2, 0, 2], 1),
        lambda t: moves.crop(t, [None, None, (1, 4), (0, 2)]),
        lambda t: moves.concatenate([t, t * 2], 2),
        lambda t: moves.split(t, 2, 2)[1],
        lambda t: moves.interleave([t, t + 1], 3),
        lambda t: moves.interleave(t, 1),
        lambda t: moves.deinterleave(t, 3, 2),
        lambda t: moves.im2col(t, 3, 1, 1),
        lambda t: moves.col2im(t.reshape(2, 3 * 2, 15), (6, 10), (1, 2), (2, 2)),
        lambda t: moves.windows(t, (2, 2), 2),
    ]  # fmt: skip
    for call in calls:
        assert torch.autograd.gradcheck(call, (x,), nondet_tol=1e-12)


def test_operators() -> None:
    from warploom.catalogue.operators import operators

    ops = operators()
    for where in ("cuda", "cpu"):
        x = torch.rand(5, 6, 7, device=where, requires_grad=True)
        index = torch.tensor([3, 0, 3, -1], device=where)
        calls = {
            ops.permute_to.default: (x, [2, 0, 1], torch.bfloat16, 0.5, 1.0),
            ops.pad.default: (x, [0, 1, 2, 0, 1, 1], 3.0),
            ops.take.default: (x, index, 1),
        }
        for operator, given in calls.items():
            assert set(torch.library.opcheck(operator, given).values()) == {"SUCCESS"}
    x = torch.rand(4, 5, device="cuda")
    compiled = torch.compile(
        lambda t: ops.pad(ops.take(t, torch.tensor([1, 1], device="cuda"), 0), [1, 1, 0, 2]) * 2,
        fullgraph=True, backend="aot_eager",
    )  # fmt: skip
    assert torch.equal(compiled(x), torch.nn.functional.pad(x[[1, 1]], (0, 2, 1, 1)) * 2)
