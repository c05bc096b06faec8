"""Programs of rows as operators of PyTorch: `torch.ops.warploom.softmax(x)`, with gradients.

`warploom.catalogue.operators.operators()` registers them beside those of the catalogue. Gradients
are operators, too; those of what all rows share are sums over rows.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from warploom.catalogue.operators import Operator, Tensor
from warploom.pipeline.rows.function import RowFunction
from warploom.pipeline.rows.stated import STATED


@lru_cache(maxsize=256)
def _function(name: str, options: tuple[tuple[str, Any], ...] = ()) -> RowFunction:
    return RowFunction(STATED[name], dict(options))


def _run(name: str, *tensors: Tensor, **options: Any) -> Tensor:
    """A program on tensors; whether a gradient is wanted is decided before."""
    return _function(name, tuple(options.items()))(*(each.detach() for each in tensors))


def _torch() -> Any:
    return import_module("torch")


def _single(x: Tensor) -> Tensor:
    return x.to(_torch().float32)


# -- what each computes, in PyTorch's own words ----------------------------------------------------


def _softmax(x: Tensor) -> Tensor:
    return _torch().softmax(_single(x), -1).to(x.dtype)


def _log_softmax(x: Tensor) -> Tensor:
    return _torch().log_softmax(_single(x), -1).to(x.dtype)


def _softmax_gradient(g: Tensor, x: Tensor) -> Tensor:
    y, wide = _torch().softmax(_single(x), -1), _single(g)
    return (y * (wide - (y * wide).sum(-1, keepdim=True))).to(x.dtype)


def _log_softmax_gradient(g: Tensor, x: Tensor) -> Tensor:
    y, wide = _torch().softmax(_single(x), -1), _single(g)
    return (wide - y * wide.sum(-1, keepdim=True)).to(x.dtype)


def _named(x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """Labels that name a class, and which do."""
    there = (label >= 0) & (label < x.shape[-1])
    return label.clamp(0, x.shape[-1] - 1).to(_torch().int64).unsqueeze(-1), there


def _cross_entropy(x: Tensor, label: Tensor) -> Tensor:
    named, there = _named(x, label)
    loss = -_torch().log_softmax(_single(x), -1).gather(-1, named).squeeze(-1)
    return loss * there


def _cross_entropy_gradient(g: Tensor, x: Tensor, label: Tensor) -> Tensor:
    named, there = _named(x, label)
    y = _torch().softmax(_single(x), -1)
    y = y.scatter_add(-1, named, -_torch().ones_like(named, dtype=y.dtype))
    return (y * (_single(g) * there).unsqueeze(-1)).to(x.dtype)


def _normed(x: Tensor, epsilon: float, mean: bool) -> tuple[Tensor, Tensor]:
    """A norm without its factors, and one over each row's deviation."""
    away = _single(x)
    if mean:
        away = away - away.mean(-1, keepdim=True)
    by = ((away * away).mean(-1, keepdim=True) + epsilon).rsqrt()
    return away * by, by


def _layer_norm(x: Tensor, scale: Tensor, shift: Tensor, epsilon: float = 1e-5) -> Tensor:
    return (_normed(x, epsilon, True)[0] * _single(scale) + _single(shift)).to(x.dtype)


def _rms_norm(x: Tensor, scale: Tensor, epsilon: float = 1e-5) -> Tensor:
    return (_normed(x, epsilon, False)[0] * _single(scale)).to(x.dtype)


def _norm_gradient(g: Tensor, x: Tensor, scale: Tensor, epsilon: float, mean: bool) -> Tensor:
    away, by = _normed(x, epsilon, mean)
    scaled = _single(g) * _single(scale)
    less = away * (scaled * away).mean(-1, keepdim=True)
    if mean:
        less = less + scaled.mean(-1, keepdim=True)
    return ((scaled - less) * by).to(x.dtype)


def _over_rows(given: Tensor) -> Tensor:
    return given.reshape(-1, given.shape[-1]).sum(0)


def _scale_gradient(g: Tensor, x: Tensor, epsilon: float, mean: bool) -> Tensor:
    return _over_rows(_single(g) * _normed(x, epsilon, mean)[0])


# -- our kernels -----------------------------------------------------------------------------------


def _run_scale(g: Tensor, x: Tensor, epsilon: float = 1e-5, mean: bool = True) -> Tensor:
    known = _run("norm-statistics", x, epsilon=epsilon, mean=mean)
    several = known if isinstance(known, tuple) else (known,)
    return _run("scale-gradient", g, x, *several, mean=mean)


def _gradient_of(name: str, arguments: str, plain: Any, options: bool = False) -> Operator:
    """The gradient of rows, an operator of its own."""
    kernel = f"{name}-gradient"

    def run(*given: Any) -> Tensor:
        if not options:
            return _run(kernel, *given)
        return _run(kernel, *given[:3], epsilon=given[3] if len(given) > 3 else 1e-5)

    return Operator(
        kernel,
        arguments,
        settings=lambda *_: {},
        shape=lambda _, x, *__: x.shape,
        plain=plain,
        run=run,
        axes=0,
        dtype=lambda _, x, *__: x.dtype,
    )


def _shared(name: str, arguments: str, plain: Any, run: Any) -> Operator:
    return Operator(
        name,
        arguments,
        settings=lambda *_: {},
        shape=lambda g, *_: g.shape[-1:],
        plain=plain,
        run=run,
        dtype=lambda *_: _torch().float32,
    )


OPERATORS = (
    Operator(
        "softmax",
        "Tensor x",
        settings=lambda *_: {},
        shape=lambda x: x.shape,
        plain=_softmax,
        gradients=(lambda ops, g, x: ops.softmax_gradient(g, x),),
        bilinear=True,
        axes=1,
        run=lambda x: _run("softmax", x),
    ),
    Operator(
        "log-softmax",
        "Tensor x",
        settings=lambda *_: {},
        shape=lambda x: x.shape,
        plain=_log_softmax,
        gradients=(lambda ops, g, x: ops.log_softmax_gradient(g, x),),
        bilinear=True,
        axes=1,
        run=lambda x: _run("log-softmax", x),
    ),
    Operator(
        "cross-entropy",
        "Tensor x, Tensor label",
        settings=lambda *_: {},
        shape=lambda x, _: x.shape[:-1],
        plain=_cross_entropy,
        gradients=(
            lambda ops, g, x, label: ops.cross_entropy_gradient(g, x, label),
            lambda *_: None,
        ),
        bilinear=True,
        axes=1,
        run=lambda x, label: _run("cross-entropy", x, label),
        dtype=lambda *_: _torch().float32,
    ),
    Operator(
        "layer-norm",
        "Tensor x, Tensor scale, Tensor shift, float epsilon=1e-5",
        settings=lambda *_: {},
        shape=lambda x, *_: x.shape,
        plain=_layer_norm,
        gradients=(
            lambda ops, g, x, s, _, e=1e-5: ops.layer_norm_gradient(g, x, s, e),
            lambda ops, g, x, s, _, e=1e-5: ops.scale_gradient(g, x, e, True).to(s.dtype),
            lambda ops, g, _, __, shift, *___: ops.shift_gradient(g).to(shift.dtype),
        ),
        bilinear=True,
        axes=1,
        run=lambda x, scale, shift, epsilon=1e-5: _run(
            "layer-norm", x, scale, shift, epsilon=epsilon
        ),
    ),
    Operator(
        "rms-norm",
        "Tensor x, Tensor scale, float epsilon=1e-5",
        settings=lambda *_: {},
        shape=lambda x, *_: x.shape,
        plain=_rms_norm,
        gradients=(
            lambda ops, g, x, s, e=1e-5: ops.rms_norm_gradient(g, x, s, e),
            lambda ops, g, x, s, e=1e-5: ops.scale_gradient(g, x, e, False).to(s.dtype),
        ),
        bilinear=True,
        axes=1,
        run=lambda x, scale, epsilon=1e-5: _run("rms-norm", x, scale, epsilon=epsilon),
    ),
    _gradient_of("softmax", "Tensor g, Tensor x", _softmax_gradient),
    _gradient_of("log-softmax", "Tensor g, Tensor x", _log_softmax_gradient),
    _gradient_of("cross-entropy", "Tensor g, Tensor x, Tensor label", _cross_entropy_gradient),
    _gradient_of(
        "layer-norm",
        "Tensor g, Tensor x, Tensor scale, float epsilon=1e-5",
        lambda g, x, scale, e=1e-5: _norm_gradient(g, x, scale, e, True),
        options=True,
    ),
    _gradient_of(
        "rms-norm",
        "Tensor g, Tensor x, Tensor scale, float epsilon=1e-5",
        lambda g, x, scale, e=1e-5: _norm_gradient(g, x, scale, e, False),
        options=True,
    ),
    _shared(
        "scale-gradient",
        "Tensor g, Tensor x, float epsilon=1e-5, bool mean=True",
        lambda g, x, e=1e-5, mean=True: _scale_gradient(g, x, e, mean),
        _run_scale,
    ),
    _shared(
        "shift-gradient",
        "Tensor g",
        lambda g: _over_rows(_single(g)),
        lambda g: _run("shift-gradient", g),
    ),
)
