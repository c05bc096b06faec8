"""Which programs of rows there are by name: what each takes, what it makes, and its loop nest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from warploom.errors import CheckError, one_of
from warploom.kernel.dtype import DType, f32, i32, i64, u8
from warploom.loopnest.build import LoopNest
from warploom.loopnest.rows import backward, forward
from warploom.loopnest.rows.forward import Norm

# How an array lies: an element for each place, for each place of a row, or for each row.
Along: TypeAlias = Literal["whole", "column", "each"]
Types: TypeAlias = Mapping[str, DType]
Options: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stated:
    """A program of rows. `inputs` and `outputs` say by name how arrays lie, for given options;
    `nest` states it for m rows of n elements of these types. `rows`: each row is by itself."""

    name: str
    doc: str
    inputs: Callable[[Options], dict[str, Along]]
    outputs: Callable[[Options], dict[str, Along]]
    nest: Callable[[int, int, Types, Options], LoopNest]
    options: Mapping[str, Any]
    scalars: Callable[[Options], tuple[str, ...]] = lambda _: ()
    rows: bool = True

    def given(self, options: Options) -> dict[str, Any]:
        """Options, with what is usual for those that are not said."""
        for name, value in options.items():
            if name not in self.options:
                raise CheckError(
                    f"'{self.name}' has no option '{name}'",
                    advice=one_of(name, list(self.options)) if self.options else "leave it out",
                )
            usual = self.options[name]
            if isinstance(usual, bool) and not isinstance(value, bool):
                raise CheckError(f"{name} is True or False, not {value!r:.40}")
            if isinstance(usual, float) and not _is_small(value):
                raise CheckError(f"{name} is a number from 0 to 1, not {value!r:.40}")
        return {**self.options, **options}


def _is_small(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _norm(options: Options, types: Types) -> Norm:
    weights = next((types[name] for name in ("scale", "shift") if name in types), f32)
    return Norm(
        options["scale"], options.get("shift", False), options["residual"], options["mask"],
        weights, options["epsilon"],
    )  # fmt: skip


def _is_beside(options: Options) -> bool:
    """Whether something is done before the norm, so that what is normed is stored."""
    return bool(options["residual"] or options["mask"])


def _norm_inputs(options: Options) -> dict[str, Along]:
    found: dict[str, Along] = {"x": "whole"}
    found |= {name: "whole" for name in ("mask", "residual") if options[name]}
    return found | {name: "column" for name in ("scale", "shift") if options.get(name)}


def _norm_outputs(options: Options) -> dict[str, Along]:
    return {"y": "whole", **({"sum": "whole"} if _is_beside(options) else {})}


def _gradient_inputs(options: Options) -> dict[str, Along]:
    found: dict[str, Along] = {"g": "whole", "x": "whole"}
    found |= {"scale": "column"} if options["scale"] else {}
    found |= {"dsum": "whole"} if _is_beside(options) else {}
    return found | ({"mask": "whole"} if options["mask"] else {})


def _gradient_outputs(options: Options) -> dict[str, Along]:
    both = options["mask"] and options["residual"]
    return {"dx": "whole", **({"dresidual": "whole"} if both else {})}


def _dropped(options: Options) -> tuple[str, ...]:
    return ("factor",) if options["mask"] else ()


def _plain(name: str, doc: str, nest: Callable[[int, int, DType], LoopNest]) -> Stated:
    return Stated(
        name, doc, lambda _: {"x": "whole"}, lambda _: {"y": "whole"},
        lambda m, n, types, _: nest(m, n, types["x"]), {},
    )  # fmt: skip


def _gradient(name: str, doc: str, nest: Callable[[int, int, DType], LoopNest]) -> Stated:
    return Stated(
        name, doc, lambda _: {"g": "whole", "x": "whole"}, lambda _: {"dx": "whole"},
        lambda m, n, types, _: nest(m, n, types["x"]), {},
    )  # fmt: skip


NORM = {"scale": True, "residual": False, "mask": False, "epsilon": forward.EPSILON}
LAYER_NORM = {"scale": True, "shift": True, **NORM}
SHARED = {"epsilon": forward.EPSILON, "mean": True}

STATED = {
    each.name: each
    for each in (
        _plain("softmax", "e^x of each row, divided by their sum", forward.softmax),
        _plain("log-softmax", "the logarithm of each row's softmax", forward.log_softmax),
        Stated(
            "layer-norm",
            "each row less its mean, divided by its deviation, times scale and plus shift",
            _norm_inputs,
            _norm_outputs,
            lambda m, n, types, o: forward.layer_norm(m, n, types["x"], _norm(o, types)),
            LAYER_NORM,
            _dropped,
        ),
        Stated(
            "rms-norm",
            "each row divided by its root mean square, times scale",
            _norm_inputs,
            _norm_outputs,
            lambda m, n, types, o: forward.rms_norm(m, n, types["x"], _norm(o, types)),
            NORM,
            _dropped,
        ),
        Stated(
            "cross-entropy",
            "of each row log Σ e^x less the element that its label names",
            lambda _: {"x": "whole", "label": "each"},
            lambda _: {"loss": "each"},
            lambda m, n, types, _: forward.cross_entropy(m, n, types["x"], types["label"]),
            {},
        ),
        _gradient("softmax-gradient", "of softmax, from its result's", backward.softmax),
        _gradient("log-softmax-gradient", "of log-softmax", backward.log_softmax),
        Stated(
            "layer-norm-gradient",
            "of what a layer norm is of, from its result's",
            _gradient_inputs,
            _gradient_outputs,
            lambda m, n, types, o: backward.layer_norm(m, n, types["x"], _norm(o, types)),
            NORM,
            _dropped,
        ),
        Stated(
            "rms-norm-gradient",
            "of what an RMS norm is of",
            _gradient_inputs,
            _gradient_outputs,
            lambda m, n, types, o: backward.rms_norm(m, n, types["x"], _norm(o, types)),
            NORM,
            _dropped,
        ),
        Stated(
            "cross-entropy-gradient",
            "of the elements, from that of each row's loss",
            lambda _: {"g": "each", "x": "whole", "label": "each"},
            lambda _: {"dx": "whole"},
            lambda m, n, types, _: backward.cross_entropy(m, n, types["x"], types["label"]),
            {},
        ),
        Stated(
            "norm-statistics",
            "the mean of each row, and one over its deviation",
            lambda _: {"x": "whole"},
            lambda o: {**({"mean": "each"} if o["mean"] else {}), "by": "each"},
            lambda m, n, types, o: forward.statistics(
                m, n, types["x"], Norm(epsilon=o["epsilon"]), o["mean"]
            ),
            SHARED,
        ),
        Stated(
            "scale-gradient",
            "of a norm's scale, from statistics of rows: a sum over them",
            lambda o: {
                "g": "whole",
                "x": "whole",
                **({"mean": "each"} if o["mean"] else {}),
                "by": "each",
            },
            lambda _: {"dscale": "column"},
            lambda m, n, types, o: backward.scale(
                m, n, types["x"], types.get("dscale", f32), o["mean"]
            ),
            {"mean": True},
            rows=False,
        ),
        Stated(
            "shift-gradient",
            "of a norm's shift: a sum over rows",
            lambda _: {"g": "whole"},
            lambda _: {"dshift": "column"},
            lambda m, n, types, _: backward.shift(m, n, types["g"], types.get("dshift", f32)),
            {},
            rows=False,
        ),
    )
}


def types_wanted(name: str) -> tuple[DType, ...] | None:
    """The types that an array may have, if not those of numbers."""
    return {"label": (i32, i64), "mask": (u8,), "mean": (f32,), "by": (f32,)}.get(name)
