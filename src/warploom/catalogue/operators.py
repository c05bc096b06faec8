"""Kernels of the catalogue as operators of PyTorch: `torch.ops.warploom.aos_to_soa(x)`.

`operators()` registers them once. They work under `torch.compile` (each says which shape its result
has), and have gradients where they are linear: that of a transposition is the inverse one. On a GPU
they run our kernels, on the current stream; on the CPU the plain expression, which is also what
tests compare with. Everything that a kernel must know is read off its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from warploom.catalogue import find, formula
from warploom.catalogue.attention import operator as attention
from warploom.catalogue.entry import Parameter
from warploom.catalogue.loaded import Loaded
from warploom.catalogue.permute.call import permute
from warploom.catalogue.permute.frame_call import pad
from warploom.catalogue.permute.take_call import take
from warploom.errors import DeviceError, missing_extra
from warploom.pictured import PublicResult
from warploom.runtime.plan import Given, Named, Plan, Planner
from warploom.runtime.view import View

NAMESPACE = "warploom"

Tensor = Any
Settings = dict[str, Parameter]


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator. `settings` reads the kernel's parameters off shapes and options; `shape` gives
    that of the result; `plain` is the expression in PyTorch's own words. `gradients` has, for each
    tensor, what `(ops, gradient, *arguments)` makes of the result's gradient; tensors are kept for
    it only if it is `bilinear`, otherwise it gets their shapes."""

    kernel: str
    arguments: str  # of the schema
    settings: Callable[..., Settings]
    shape: Callable[..., Sequence[int]]
    plain: Callable[..., Tensor]
    gradients: tuple[Callable[..., Tensor], ...] = ()
    together: Callable[..., Sequence[Tensor]] | None = None  # all gradients at once, if `bilinear`
    bilinear: bool = False
    axes: int = 2  # that the first tensor has at least
    run: Callable[..., Tensor] | None = None  # where no kernel of the catalogue is named so
    dtype: Callable[..., Any] | None = None  # of the result, if not that of the first tensor

    @property
    def name(self) -> str:
        return self.kernel.replace("-", "_")

    @property
    def schema(self) -> str:
        return f"{self.name}({self.arguments}) -> Tensor"

    @property
    def tensors(self) -> int:
        """How many of the arguments are tensors; they come first."""
        return self.arguments.count("Tensor ")

    def check(self, shape: Sequence[int]) -> None:
        """Refuses what a kernel would read as several of something, and PyTorch as one."""
        if len(shape) < self.axes:
            raise DeviceError(
                f"'{self.name}' takes tensors of at least {self.axes} axes, not of the shape"
                f" {tuple(shape)}",
                advice="give x[None]" if self.axes == len(shape) + 1 else "",
            )


def _inverse(axes: Sequence[int]) -> list[int]:
    """The order of axes that undoes another."""
    order = [axis % len(axes) for axis in axes]
    return [order.index(axis) for axis in range(len(order))]


def _moved(tensor: Tensor) -> Tensor:
    """The tensor as it lies; whether a gradient is wanted is decided before."""
    return tensor.detach().resolve_conj().resolve_neg()


def _product(kernel: str) -> Operator:
    return Operator(
        kernel,
        "Tensor a, Tensor b",
        settings=lambda a, _: {"degree": a.shape[-1]},
        shape=lambda a, _: (*a.shape[:-1], 2 * a.shape[-1]),
        plain=formula.product,
    )


OPERATORS = (
    Operator(
        "aos-to-soa",
        "Tensor x",
        settings=lambda x: {"fields": x.shape[-1]},
        shape=lambda x: (x.shape[-1], *x.shape[:-1]),
        plain=lambda x: formula.copied(x.movedim(-1, 0)),
        gradients=(lambda ops, gradient, _: ops.soa_to_aos(gradient),),
    ),
    Operator(
        "soa-to-aos",
        "Tensor x",
        settings=lambda x: {"fields": x.shape[0]},
        shape=lambda x: (*x.shape[1:], x.shape[0]),
        plain=lambda x: formula.copied(x.movedim(0, -1)),
        gradients=(lambda ops, gradient, _: ops.aos_to_soa(gradient),),
    ),
    Operator(
        "aos-sum",
        "Tensor x",
        settings=lambda x: {"fields": x.shape[-1]},
        shape=lambda x: x.shape[:-1],
        plain=lambda x: x.sum(-1, dtype=x.dtype),  # PyTorch would make int64 of int32
        gradients=(lambda _, gradient, shape: gradient.unsqueeze(-1).expand(shape),),
    ),
    Operator(
        "transposition",
        "Tensor x",
        settings=lambda x: {"m": x.shape[-2], "n": x.shape[-1]},
        shape=lambda x: (*x.shape[:-2], x.shape[-1], x.shape[-2]),
        plain=lambda x: formula.copied(x.transpose(-1, -2)),
        gradients=(lambda ops, gradient, _: ops.transposition(gradient),),
    ),
    Operator(
        "permute",
        "Tensor x, int[] axes",
        settings=lambda *_: {},
        shape=lambda x, axes: tuple(x.shape[axis] for axis in axes),
        plain=lambda x, axes: formula.copied(x.permute(axes)),
        gradients=(lambda ops, gradient, _, axes: ops.permute(gradient, _inverse(axes)),),
        axes=0,
        run=lambda x, axes: permute(_moved(x), tuple(axes)),
    ),
    Operator(
        "stencil-1d",
        "Tensor x, int taps=3",
        settings=lambda _, taps=3: {"taps": taps},
        shape=lambda x, taps=3: (x.shape[0] - taps + 1,),
        plain=lambda x, taps=3: x.unfold(0, taps, 1).mean(-1),
        gradients=(lambda ops, g, _, taps=3: ops.stencil_1d(formula.padded(g, taps - 1), taps),),
        axes=1,
    ),
    Operator(
        "convolution-1d",
        "Tensor x, Tensor w",
        settings=lambda _, w: {"taps": w.size, "weights": "value" if w.device < 0 else "array"},
        shape=lambda x, w: (x.shape[0] - w.numel() + 1,),
        plain=formula.line,
        gradients=(formula.line_gradient, formula.line_weights),
        bilinear=True,
        axes=1,
    ),
    Operator(
        "convolution-2d",
        "Tensor image, Tensor w",
        settings=lambda _, w: {"taps": formula.side(w.size)},
        shape=lambda image, _: image.shape,
        plain=formula.image_windows,
        gradients=(formula.image_gradient, formula.image_weights),
        bilinear=True,
    ),
    _product("product-registers"),
    _product("product-shared"),
    _product("product-pieces"),
)


# Movements that no kernel of the catalogue is named after.
MOVES = (
    Operator(
        "permute-to",
        "Tensor x, int[] axes, ScalarType dtype, float scale=1.0, float shift=0.0",
        settings=lambda *_: {},
        shape=lambda x, axes, *_: tuple(x.shape[axis] for axis in axes),
        plain=formula.converted,
        gradients=(
            lambda ops, gradient, _, axes, dtype, scale=1.0, *__: ops.permute_to(
                gradient, _inverse(axes), dtype, scale
            ),
        ),
        axes=0,
        run=lambda x, axes, dtype, scale=1.0, shift=0.0: permute(
            _moved(x), tuple(axes), dtype=dtype, scale=scale, shift=shift
        ),
        dtype=lambda *given: given[2],
    ),
    Operator(
        "pad",
        "Tensor x, int[] widths, float value=0.0",
        settings=lambda *_: {},
        shape=lambda x, widths, *_: formula.framed(x.shape, widths),
        plain=formula.in_frame,
        gradients=(formula.frame_gradient,),
        axes=0,
        run=lambda x, widths, value=0.0: pad(_moved(x), formula.pairs(widths), value),
    ),
    Operator(
        "take",
        "Tensor x, Tensor index, int axis=0",
        settings=lambda *_: {},
        shape=lambda x, index, axis=0: formula.with_rows(x.shape, index.shape[0], axis),
        plain=formula.rows,
        gradients=(formula.rows_gradient, lambda *_: None),
        bilinear=True,
        axes=1,
        run=lambda x, index, axis=0: take(_moved(x), index.detach(), axis),
    ),
)


ATTENTION = Operator(
    "attention",
    attention.SCHEMA,
    settings=lambda *_: {},
    shape=lambda q, *_: q.shape,
    plain=attention.plain,
    together=attention.all_gradients,
    bilinear=True,
    axes=4,
    run=attention.run,
)


# -- a kernel for each kind of arguments -----------------------------------------------------------


class Inferred(Planner):
    """A kernel whose parameters follow from its arguments: tensors, then options."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self._operator = operator
        self._loaded: dict[tuple[tuple[str, Parameter], ...], Loaded] = {}

    def names(self, count: int) -> Sequence[str]:
        parts = [part.split()[1].partition("=")[0] for part in self._operator.arguments.split(", ")]
        if not self._operator.tensors <= count <= len(parts):
            raise DeviceError(f"'{self._operator.name}' takes ({self._operator.arguments})")
        return parts[:count]

    def first(self, arguments: Sequence[Any], named: Named) -> Plan:
        """Tensors that do not lie in memory as they are read are copied in each call."""
        if all(_as_read(each) for each in arguments[: self._operator.tensors]):
            return super().first(arguments, named)
        return lambda given, _, stream: self(*map(_whole, given), stream=stream)

    def plan(self, given: list[Given], named: Named) -> Plan:
        arrays = [each for each in given if isinstance(each, View)]
        options = [each for each in given if not isinstance(each, View)]
        if len(arrays) != self._operator.tensors:
            raise DeviceError(f"'{self._operator.name}' takes ({self._operator.arguments})")
        self._operator.check(arrays[0].shape)
        settings = self._operator.settings(*arrays, *options, **named)
        settings |= {"dtype": arrays[0].dtype.value}
        loaded = self._loaded.get(key := tuple(settings.items()))
        if loaded is None:
            entry = find(self._operator.kernel)
            known = {name: value for name, value in settings.items() if name in entry.parameters}
            loaded = self._loaded[key] = Loaded(entry, known)
        # Whether a gradient is wanted is decided before an operator gets here.
        return loaded.plan([replace(each, tracked=False) for each in arrays], {})


def _as_read(tensor: Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def _whole(argument: Any) -> Any:
    if not hasattr(argument, "resolve_neg"):
        return argument
    return argument.resolve_conj().resolve_neg().contiguous()


# -- registration ----------------------------------------------------------------------------------


def operators() -> Any:
    """The namespace `torch.ops.warploom`, an operator for each kernel of the catalogue in it."""
    return _registered()[1]


@lru_cache(maxsize=1)
def _registered() -> tuple[Any, Any]:
    try:
        torch = import_module("torch")
    except ImportError:
        raise missing_extra("torch", "torch") from None
    library = torch.library.Library(NAMESPACE, "DEF")
    ops = getattr(torch.ops, NAMESPACE)
    for each in (*OPERATORS, *MOVES, ATTENTION, *PublicResult.above("row_operators")()):
        _register(torch, library, ops, each)
    return library, ops


def _register(torch: Any, library: Any, ops: Any, operator: Operator) -> None:
    name = operator.name
    library.define(operator.schema, tags=(torch.Tag.pt2_compliant_tag,))
    run = _on_gpu(torch, operator)
    library.impl(name, run, "CUDA")

    def plain(*arguments: Any, **options: Any) -> Tensor:
        operator.check(arguments[0].shape)
        return operator.plain(*arguments, **options)

    library.impl(name, plain, "CPU")

    def fake(*arguments: Any, **options: Any) -> Tensor:
        operator.check(arguments[0].shape)
        shape = operator.shape(*arguments, **options)
        if operator.dtype is None:
            return arguments[0].new_empty(shape)
        return arguments[0].new_empty(shape, dtype=operator.dtype(*arguments, **options))

    torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
    if operator.gradients or operator.together is not None:
        below = _below(torch, getattr(ops, name).default)
        recorded = _recorded(torch, ops, operator, below).apply
        library.impl(name, _recording(torch, operator, recorded, below), "Autograd")
        quick = _recording(torch, operator, recorded, _direct(torch, operator, run, below))
        library.impl(name, quick, "AutogradCUDA")


def _on_gpu(torch: Any, operator: Operator) -> Callable[..., Tensor]:
    if operator.run is not None:
        return operator.run
    run = Inferred(operator).__call__
    if not operator.kernel.startswith("product"):
        return run

    def product(a: Tensor, b: Tensor) -> Tensor:
        """Polynomials are words without a sign, which PyTorch's users keep in those with one."""
        made = run(_whole(a).view(torch.uint32), _whole(b).view(torch.uint32))
        return made.view(a.dtype)

    return product


# Gradients. PyTorch's own way to register one, `register_autograd`, costs more in each call than a
# launch does; this one costs a few comparisons where nothing is recorded.


def _recording(
    torch: Any,
    operator: Operator,
    recorded: Callable[..., Tensor],
    otherwise: Callable[..., Tensor],
) -> Callable[..., Tensor]:
    """Records the call if PyTorch records now and some tensor wants its gradient."""
    enabled, tensors = torch.is_grad_enabled, operator.tensors

    def call(*arguments: Any) -> Tensor:
        if enabled():
            for each in arguments[:tensors]:
                if each.requires_grad:
                    return recorded(*arguments)
        return otherwise(*arguments)

    return call


def _below(torch: Any, operator: Any) -> Callable[..., Tensor]:
    """The operator as it is beneath the recording of gradients."""
    guard = torch._C._AutoDispatchBelowAutograd

    def call(*arguments: Any) -> Tensor:
        with guard():
            return operator(*arguments)

    return call


def _direct(
    torch: Any, operator: Operator, run: Callable[..., Tensor], below: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """The operator on tensors of a GPU, without a second PyTorch dispatch where that would reach
    our kernel anyway: plain tensors, no dispatch mode, no function transform."""
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    transformed = getattr(torch._C, "_are_functorch_transforms_active", None)
    if modes is None or transformed is None:
        return below
    plain, tensors = {torch.Tensor, torch.nn.Parameter}, operator.tensors

    def call(*arguments: Any) -> Tensor:
        if modes() or transformed():
            return below(*arguments)
        for each in arguments[:tensors]:
            if each.__class__ not in plain:
                return below(*arguments)
        return run(*arguments)

    return call


def _recorded(torch: Any, ops: Any, operator: Operator, below: Callable[..., Tensor]) -> Any:
    """The operator as a function with a gradient."""
    tensors = operator.tensors

    class Recorded(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(*arguments: Any) -> Tensor:
            return below(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            del output
            if operator.bilinear:
                ctx.save_for_backward(*inputs[:tensors])
            ctx.shapes = [each.shape for each in inputs[:tensors]]
            ctx.options = inputs[tensors:]

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            given = ctx.saved_tensors if operator.bilinear else ctx.shapes
            if operator.together is not None:
                every = operator.together(ops, gradient, *given, *ctx.options)
                return (*every, *([None] * len(ctx.options)))
            found = [
                each(ops, gradient, *given, *ctx.options) if wanted else None
                for each, wanted in zip(operator.gradients, ctx.needs_input_grad, strict=False)
            ]
            return (*found, *([None] * len(ctx.options)))

    return Recorded
