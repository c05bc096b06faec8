"""`warploom.load("attention")(q, k, v, causal=True)`: attention on tensors, as they lie.

What a call is but for addresses (shapes, strides, types, device, options) is a key; its plan has
the kernels, compiled when they first run. Later calls of the same kind only launch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from warploom.catalogue.attention.asked import AttentionCall, Options, asked
from warploom.catalogue.attention.chosen import tilings
from warploom.catalogue.attention.gradient import gradients
from warploom.catalogue.attention.plan import Plan, plan_of
from warploom.catalogue.attention.tuned import AttentionRig, tuned
from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.errors import CheckError, DeviceError, located
from warploom.kernel.ir import Kernel
from warploom.loopnest.attention.tiling import AttentionTiling
from warploom.machine.record import H200, Machine
from warploom.pictured import PublicResult
from warploom.runtime.callable import Device, check_device
from warploom.runtime.gpu import machine_of
from warploom.runtime.library import READERS, library, reader_of
from warploom.runtime.view import View, view

REMEMBERED = 256
DEVICES = ("auto", "cuda", "ptx", "simulator")


@dataclass(eq=False, repr=False)
class Attending(PublicResult):
    """Attention with options that calls may change."""

    options: Options
    device: Device = "auto"
    seconds: float = 0.0  # of measuring, where a call of its kind comes first
    store: Any = None
    tiling: AttentionTiling | None = None
    _plans: dict[Hashable, Plan] = field(default_factory=dict)
    _known: dict[Hashable, Plan] = field(default_factory=dict)  # by what is read fast
    _said: dict[Hashable, tuple[Options, tuple[Any, ...]]] = field(default_factory=dict)
    _last: Plan | None = None

    def __repr__(self) -> str:
        plain = asdict(Options())
        said = [f"{k}={v!r}" for k, v in asdict(self.options).items() if v != plain[k]]
        return f"<warploom attention({', '.join(said)}) on {self.device}>"

    @located
    def __call__(
        self, q: Any, k: Any, v: Any, bias: Any = None, *, stream: Any = None, **given: Any
    ) -> Any:
        """softmax(q·kᵀ·scale + bias)·v; with `lse` also the logarithms of the sums."""
        options = self._options(given)
        arrays = {"q": q, "k": k, "v": v} | ({} if bias is None else {"bias": bias})
        known = _read(options, arrays)
        plan = None if known is None else self._known.get(known)
        if plan is not None:
            self._last = plan
            made = plan(arrays, stream)
            return made if options.lse else made[0]
        views = {name: view(each, name) for name, each in arrays.items()}
        wanted = [name for name, each in views.items() if each.tracked]
        if wanted and library(q).wants_gradients():
            return self._recorded(arrays, views, options, stream, wanted)
        result = self._launched(arrays, views, options, stream)
        if known is not None and not wanted:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            assert self._last is not None
            self._known[known] = self._last
        return result

    def _options(self, given: Mapping[str, Any]) -> Options:
        """Those of a call, which were met before more often than not."""
        if not given:
            return self.options
        try:
            said = tuple(given.items())
            found = self._said.get(said)
        except TypeError:  # nothing that is hashed, and no option
            return self.options.with_given(given)
        if found is None or any(type(a) is not type(b) for (_, a), b in
                                zip(said, found[1], strict=True)):  # fmt: skip
            found = self._said[said] = self.options.with_given(given), tuple(given.values())
        return found[0]

    @located
    def prepare(
        self, q: Any, k: Any, v: Any, bias: Any = None, *, stream: Any = None, **given: Any
    ) -> tuple[Any, Any]:
        """The result of a call, and what computes it again and again from the same arrays: on the
        given stream, or on the one that is current at each launch."""
        options = self._options(given)
        arrays = {"q": q, "k": k, "v": v} | ({} if bias is None else {"bias": bias})
        views = {name: view(each, name) for name, each in arrays.items()}
        made, run = self.plan(arrays, views, options).prepare(arrays, stream)
        return (made if options.lse else made[0]), run

    def _launched(
        self, arrays: Mapping[str, Any], views: Mapping[str, View], options: Options, stream: Any
    ) -> Any:
        made = self.plan(arrays, views, options)(arrays, stream)
        return made if options.lse else made[0]

    def _recorded(
        self, arrays: Mapping[str, Any], views: Mapping[str, View], options: Options, stream: Any,
        wanted: Sequence[str],
    ) -> Any:  # fmt: skip
        """A call that PyTorch records: logarithms of sums are kept for its gradient."""
        if "bias" in wanted:
            raise DeviceError("'bias' wants a gradient, which it does not have here",
                              advice="give bias.detach()")  # fmt: skip
        kept: list[Any] = []

        def run(*given: Any) -> Any:
            own = {**arrays, **dict(zip("qkv", given, strict=True))}
            untracked = {name: replace(each, tracked=False) for name, each in views.items()}
            plain = {name: _detached(each) for name, each in own.items()}
            result, logarithms = self._launched(
                plain, untracked, replace(options, lse=True), stream
            )
            kept[:] = [plain, _detached(result), logarithms]  # nothing that holds this record
            return result

        def back(gradient: Any) -> Any:
            plain, result, logarithms = kept
            return gradients(gradient, plain, result, logarithms, options)

        result = library(arrays["q"]).recorded(run, back, *(arrays[name] for name in "qkv"))
        return (result, kept[2]) if options.lse else result

    # -- plans

    def plan(self, arrays: Mapping[str, Any], views: Mapping[str, View], options: Options) -> Plan:
        known = options, tuple((name, each.key) for name, each in views.items())
        found = self._plans.get(known)
        if found is None:
            if len(self._plans) >= REMEMBERED:
                self._plans.clear()
            found = self._plans[known] = self._planned(arrays, views, options)
        self._last = found
        return found

    def _planned(
        self, arrays: Mapping[str, Any], views: Mapping[str, View], options: Options
    ) -> Plan:
        made = asked(options, views)
        machine = self._machine(views)
        if self.tiling is not None:
            return plan_of(made, self.tiling, machine, self.device)
        usable = [each for each in tilings(made.attention, machine) if _follows(made, each)]
        if not usable:
            raise DeviceError(
                "rows of 'q' of heads that share keys are not evenly apart", advice="give a copy"
            )
        if not self.seconds:
            return plan_of(made, usable[0], machine, self.device)
        if views["q"].where != "gpu":
            raise DeviceError(
                "'attention' is tuned on a GPU, but these arrays are in host memory",
                advice="move them to a GPU, or load it without tune",
            )
        rig = AttentionRig(made, options, machine, arrays, views["q"].device)
        return plan_of(made, tuned(rig, usable, self.seconds, self.store), machine, self.device)

    def _machine(self, views: Mapping[str, View]) -> Machine:
        where = {each.where for each in views.values()}
        if len(where) > 1:
            raise DeviceError("arrays are on the host and on a GPU", advice="move some of them")
        if where == {"host"}:
            return H200  # as the emulator is one
        machine = machine_of(views["q"].device)
        if not (machine.warp_group_products and machine.tensor_copies):
            raise DeviceError(
                "'attention' needs a GPU with products by warp groups and tensor copies (sm_90a)"
            )
        return machine if "rates" in vars(machine) else H200

    # -- what is shown

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Those of the last call."""
        if self._last is None:
            raise DeviceError("attention was not called yet", advice="kernels follow from sizes")
        return self._last.kernels

    @property
    def kernel(self) -> Kernel:
        return self.kernels[0]

    @property
    def said(self) -> str:
        """How the last call was cut up."""
        return "" if self._last is None else self._last.tiling.name

    @located
    def text(self, language: Language = "cuda", name: str | None = None) -> str:
        if name is not None:
            raise CheckError("kernels of attention have their own names", advice="leave it out")
        return "\n".join(emit(each, language) for each in self.kernels)

    def record(self) -> dict[str, Any]:
        return {"name": "attention", "settings": asdict(self.options), "tiling": self.said}


def _detached(array: Any) -> Any:
    return array.detach() if hasattr(array, "detach") else array


def _read(options: Options, arrays: Mapping[str, Any]) -> Hashable | None:
    """What a call is but for addresses; None where some array is looked at each time."""
    keys: list[Hashable] = [options]
    for each in arrays.values():
        reader = READERS.get(each.__class__) or reader_of(each)
        if reader is None:
            return None
        try:
            keys.append(reader(each)[0])
        except RuntimeError:  # a tensor without memory, or without strides
            return None
    return tuple(keys)


def _follows(made: AttentionCall, tiling: AttentionTiling) -> bool:
    """Whether rows of heads that share keys are evenly apart, where they are one tile."""
    if not tiling.packed or "q" not in made.steps or made.attention.queries == 1:
        return True
    _, head, row = made.steps["q"]
    return head == made.attention.queries * row or made.attention.groups == 1


def attending(
    given: Mapping[str, Any], device: Device, seconds: float = 0.0, store: Any = None
) -> Attending:
    """What `warploom.load("attention", …)` gives."""
    check_device(device)
    if device not in DEVICES:
        raise DeviceError(
            f"'attention' does not run on '{device}'", advice="use one of " + ", ".join(DEVICES)
        )
    return Attending(Options().with_given(given), device, seconds, store)
