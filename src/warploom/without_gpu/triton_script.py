"""Triton's launches of a whole script on the emulator: what WARPLOOM_EMULATE=1 asks for.

    WARPLOOM_EMULATE=1 python script.py                    a script that imports warploom
    WARPLOOM_EMULATE=1 warploom sanitize script.py --run   any script

Every launch of a `triton.jit` function is emulated, with all checks. Nothing is timed: a function
under `triton.autotune` runs with its first configuration. Where PyTorch is installed, "cuda" as a
device is read as the CPU, so tensors are memory of the host. Launches of other packages, streams,
events and graphs are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from warploom.without_gpu.front import DEFAULT_ARCH, Emulated, emulate

_CAPABILITY = (9, 0)
_emulated: dict[int, tuple[Any, Emulated]] = {}  # by identity of the function, which is kept


def emulate_scripts() -> None:
    """From now on launches of Triton run here; without Triton there is nothing to do."""
    if find_spec("triton") is None:
        return
    jit = import_module("triton.runtime.jit")
    if getattr(jit.JITFunction.run, "__module__", "") == __name__:
        return  # it was asked for before
    jit.JITFunction.run = _run
    import_module("triton.runtime.autotuner").Autotuner.run = _run_first
    torch = import_module("torch") if find_spec("torch") is not None else None
    import_module("triton.runtime").driver.set_active(_Driver(torch))
    if torch is not None:
        _read_cuda_as_cpu(torch)


def _run(function: Any, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> Any:
    """In place of `JITFunction.run`: a launch, or nothing where a kernel is only compiled."""
    if warmup:
        return None
    kept = _emulated.get(id(function))
    if kept is None:
        kept = _emulated[id(function)] = function, emulate(function, arch=DEFAULT_ARCH)
    return kept[1][grid](*args, **named)


def _run_first(tuned: Any, *args: Any, **named: Any) -> Any:
    """In place of `Autotuner.run`, which times all configurations: the first one."""
    return _run(tuned, *args, **named, config=0)


class _Driver:
    """As much of Triton's driver of a GPU as a script asks for."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def is_active(self) -> bool:
        return True

    def get_current_target(self) -> Any:
        capability = 10 * _CAPABILITY[0] + _CAPABILITY[1]
        return import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _: int) -> None:
        return

    def get_current_stream(self, _: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        return None if self.torch is None else self.torch.device("cpu")


# -- PyTorch --------------------------------------------------------------------------------------


def _read_cuda_as_cpu(torch: Any) -> None:
    """Has every function of PyTorch take the device "cuda" for the CPU, until the process ends."""
    mode = import_module("torch.overrides").TorchFunctionMode

    class OnTheHost(mode):  # type: ignore[misc, valid-type]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            if function is torch.Tensor.cuda:
                return args[0]
            given = {name: _on_the_host(each, torch) for name, each in (kwargs or {}).items()}
            return function(*(_on_the_host(each, torch) for each in args), **given)

    OnTheHost().__enter__()
    said = {
        "is_available": True, "device_count": 1, "current_device": 0, "set_device": None,
        "get_device_capability": _CAPABILITY, "synchronize": None,
    }  # fmt: skip
    for name, value in said.items():
        setattr(torch.cuda, name, partial(_always, value))


def _always(value: Any, *_: Any, **_named: Any) -> Any:
    """A function of the one GPU that there seems to be."""
    return value


def _on_the_host(value: Any, torch: Any) -> Any:
    """An argument, with the CPU in place of a GPU."""
    if isinstance(value, str):
        return "cpu" if value.partition(":")[0] == "cuda" else value
    is_gpu = isinstance(value, torch.device) and value.type == "cuda"
    return torch.device("cpu") if is_gpu else value
