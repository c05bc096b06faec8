"""Rows of `permute_device` that are no plain permutation: conversions, frames, parts, rows by
number.

Each is one call of the package, PyTorch's words for the same, and the bytes that have to be moved:
those that are read and those that are written, once each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import warploom
from warploom import moves
from warploom.errors import DeviceError


@dataclass(frozen=True)
class Both:
    """Two calls on the same tensors, and the bytes read and written."""

    ours: Callable[[], Any]
    torch: Callable[[], Any]
    bytes: int
    exact: bool = True  # whether results have equal bits: factors may be added in another way


def made(torch: Any, shape: tuple[int, ...], kind: str = "float32") -> Any:
    return torch.randint(0, 100, shape, device="cuda").to(getattr(torch, kind))


def _whole(*tensors: Any) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def both(torch: Any, name: str) -> Both:
    """A row by its name."""
    return MOVES[name](torch)


def _converted(
    shape: tuple[int, ...], source: str, axes: tuple[int, ...], target: str
) -> Callable[[Any], Both]:
    def make(torch: Any) -> Both:
        x, kind = made(torch, shape, source), getattr(torch, target)
        wanted = x.permute(axes).to(kind).contiguous()
        return Both(
            lambda: warploom.permute(x, axes, dtype=kind),
            lambda: x.permute(axes).to(kind).contiguous(),
            _whole(x, wanted),
        )

    return make


def _normalized(torch: Any, shape: tuple[int, ...] = (16, 1080, 1920, 3)) -> Both:
    """Frames of bytes as planes with mean 0 and deviation 1."""
    x = made(torch, shape, "uint8")
    mean, deviation = (torch.tensor(each) for each in ([120.0, 115, 105], [58.0, 57, 57.5]))
    scale, shift = tuple((1 / deviation).tolist()), tuple((-mean / deviation).tolist())
    by, plus = (torch.tensor(each, device="cuda") for each in (scale, shift))
    return Both(
        lambda: warploom.permute(
            x, (0, 3, 1, 2), dtype="float16", scale=scale, shift=shift, along=3
        ),
        lambda: (x * by + plus).half().permute(0, 3, 1, 2).contiguous(),
        3 * _whole(x), exact=False,
    )  # fmt: skip


def _padded(shape: tuple[int, ...], widths: Any, kind: str) -> Callable[[Any], Both]:
    def make(torch: Any) -> Both:
        x, pad = made(torch, shape, kind), torch.nn.functional.pad
        flat = [each for pair in widths[::-1] for each in pair]
        size = _whole(x, pad(x, flat))
        return Both(lambda: moves.pad(x, widths), lambda: pad(x, flat), size)

    return make


def _joined(shapes: list[tuple[int, ...]], axis: int, kind: str) -> Callable[[Any], Both]:
    def make(torch: Any) -> Both:
        parts = [made(torch, shape, kind) for shape in shapes]
        return Both(
            lambda: moves.concatenate(parts, axis), lambda: torch.cat(parts, axis),
            2 * _whole(*parts),
        )  # fmt: skip

    return make


def _cropped(torch: Any) -> Both:
    x = made(torch, (8192, 8192))
    part = x[100:8001, 57:8003]
    return Both(lambda: moves.crop(x, [(100, 8001), (57, 8003)]), part.clone, 2 * part.numel() * 4)


def _split(torch: Any) -> Both:
    x = made(torch, (4096, 3, 2730))
    return Both(
        lambda: moves.split(x, [1365, 1365], 2),
        lambda: [each.contiguous() for each in x.split([1365, 1365], 2)], 2 * _whole(x),
    )  # fmt: skip


def _interleaved(torch: Any) -> Both:
    parts = made(torch, (2, 4096, 4096))
    return Both(
        lambda: moves.interleave(parts, 1),
        lambda: parts.permute(1, 2, 0).reshape(4096, 8192), 2 * _whole(parts),
    )  # fmt: skip


def _rows(torch: Any, row: int = 1000, kind: str = "float16") -> Both:
    x = made(torch, (65536, row), kind)
    order = torch.randperm(65536, device="cuda")
    return Both(lambda: moves.take(x, order, 0), lambda: x.index_select(0, order), 2 * _whole(x))


def _columns(
    torch: Any, shape: tuple[int, ...] = (32, 64, 56, 56), kernel: int = 3, step: int = 1
) -> Both:
    x, around = made(torch, shape), kernel // 2
    unfold = torch.nn.functional.unfold
    size = _whole(x, unfold(x, kernel, 1, around, step))
    return Both(
        lambda: moves.im2col(x, kernel, step, around),
        lambda: unfold(x, kernel, 1, around, step), size,
    )  # fmt: skip


MOVES: dict[str, Callable[[Any], Both]] = {
    "convert/nchw/float32-bfloat16":
        _converted((64, 256, 56, 56), "float32", (0, 2, 3, 1), "bfloat16"),
    "convert/square/float32-float16": _converted((8192, 8192), "float32", (1, 0), "float16"),
    "convert/square/bfloat16-float32": _converted((8192, 8192), "bfloat16", (1, 0), "float32"),
    "convert/same/float32-bfloat16": _converted((8192, 8192), "float32", (0, 1), "bfloat16"),
    "convert/odd/float32-float16": _converted((10007, 7777), "float32", (1, 0), "float16"),
    "convert/frames/uint8-float16": _normalized,
    "pad/images/float32":
        _padded((32, 64, 112, 112), ((0, 0), (0, 0), (1, 1), (1, 1)), "float32"),
    "pad/matrix/float16": _padded((8192, 8190), ((3, 5), (1, 1)), "float16"),
    "pad/frames/uint8":
        _padded((32, 1080, 1920, 3), ((0, 0), (4, 4), (0, 0), (0, 0)), "uint8"),
    "crop/matrix/float32": _cropped,
    "concatenate/columns/float32": _joined([(8192, 4096), (8192, 4096)], 1, "float32"),
    "concatenate/channels/float16":
        _joined([(32, 96, 56, 56), (32, 160, 56, 56), (32, 64, 56, 56)], 1, "float16"),
    "concatenate/odd/float32": _joined([(8191, 1001), (8191, 2003)], 1, "float32"),
    "concatenate/rows/float32": _joined([(4001, 5003), (2003, 5003)], 0, "float32"),
    "split/odd/float32": _split,
    "interleave/float32": _interleaved,
    "take/rows/float16": _rows,
    "im2col/float32": _columns,
    # Of these none was known when settings were chosen.
    "moves-aside/frames/uint8-float16": lambda torch: _normalized(torch, (15, 1079, 1921, 3)),
    "moves-aside/planes/float32-uint8":
        _converted((12, 3, 1000, 1500), "float32", (0, 2, 3, 1), "uint8"),
    "moves-aside/fields/float16-float32":
        _converted((40, 300, 700, 5), "float16", (0, 3, 1, 2), "float32"),
    "moves-aside/matrix/int16-float32": _converted((6001, 9003), "int16", (1, 0), "float32"),
    "moves-aside/pad/float16":
        _padded((70, 60, 111, 109), ((0, 0), (0, 0), (2, 2), (3, 3)), "float16"),
    "moves-aside/pad/uint8": _padded((9001, 9003), ((1, 1), (1, 1)), "uint8"),
    "moves-aside/pad/float32": _padded((31, 400, 3001), ((0, 1), (0, 0), (5, 0)), "float32"),
    "moves-aside/concatenate/float16":
        _joined([(9001, n) for n in (777, 1234, 2100, 65)], 1, "float16"),
    "moves-aside/concatenate/float32":
        _joined([(50, n, 700) for n in (100, 201, 303, 50, 99, 11, 70, 80, 90)], 1, "float32"),
    "moves-aside/take/float32": lambda torch: _rows(torch, 333, "float32"),
    "moves-aside/im2col/float32": lambda torch: _columns(torch, (16, 24, 90, 90), 5, 1),
    "moves-aside/im2col-2/float32": lambda torch: _columns(torch, (64, 32, 112, 112), 3, 2),
}  # fmt: skip


# -- what is right beside results ------------------------------------------------------------------


def rights(torch: Any) -> dict[str, bool]:
    """Gradients, operators, what is refused."""
    from warploom.catalogue.operators import operators

    ops, double = operators(), torch.float64
    x = torch.rand(2, 3, 6, 5, dtype=double, device="cuda", requires_grad=True)
    calls = {
        "permute": lambda t: warploom.permute(t, (1, 0, 3, 2)),
        "scaled": lambda t: warploom.permute(t, (1, 0, 3, 2), scale=[1, 2, 3], along=1),
        "pad": lambda t: moves.pad(t, ((0, 0), (1, 0), (2, 1), (0, 3))),
        "take": lambda t: moves.take(t, [2, 0, 2], 1),
        "concatenate": lambda t: moves.concatenate([t, t * 2], 2),
        "im2col": lambda t: moves.im2col(t, (3, 2), (1, 2), (1, 0), (2, 1)),
        "operator": lambda t: ops.permute(t, [2, 0, 1, 3]),
    }
    found = {
        f"gradient of {name}": bool(torch.autograd.gradcheck(call, (x,), nondet_tol=1e-12))
        for name, call in calls.items()
    }
    checks = {
        "permute": (x, [2, 0, 1, 3]),
        "permute_to": (x.float(), [2, 0, 1, 3], torch.bfloat16, 0.5, 1.0),
        "pad": (x, [0, 1, 2, 0, 1, 1, 0, 0], 3.0),
        "take": (x, torch.tensor([2, 0, 2], device="cuda"), 1),
    }
    for name, given in checks.items():
        said = torch.library.opcheck(getattr(ops, name).default, given)
        found[f"opcheck of {name}"] = set(said.values()) == {"SUCCESS"}
    compiled = torch.compile(
        lambda t: ops.permute(t * 2, [2, 0, 1, 3]) + 1, fullgraph=True, backend="aot_eager"
    )
    found["torch.compile"] = torch.equal(compiled(x), (x * 2).permute(2, 0, 1, 3) + 1)
    square = torch.rand(64, 64, device="cuda")
    try:
        warploom.permute(square, (1, 0), square)
        found["overlapping refused"] = False
    except DeviceError:
        found["overlapping refused"] = True
    return found
