"""Configurations of autotune by name or number, and the switch under which scripts are emulated.

Triton and PyTorch are stood in for by as little of them as is asked for; `test_live.py` has Triton.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from warploom.errors import DeviceError
from warploom.options import emulates_scripts, from_environment
from warploom.without_gpu import triton_script
from warploom.without_gpu.triton_settings import settled


class Config:
    def __init__(self, **settings: Any) -> None:
        self.settings, self.pre_hook = settings, None

    def all_kwargs(self) -> dict[str, Any]:
        return self.settings


def tuned(*names: str) -> Any:
    """A function under autotune with two configurations."""
    function = SimpleNamespace(params=[], arg_names=["x", *names], __name__="k")
    configs = [Config(BLOCK=64, num_warps=2), Config(BLOCK=128, num_warps=4)]
    return SimpleNamespace(fn=function, base_fn=function, configs=configs, arg_names=["x", *names])


@pytest.mark.parametrize(
    ("config", "block"),
    [(0, 64), (1, 128), ({"BLOCK": 128}, 128), ({"num_warps": 2}, 64),
     ({"BLOCK": 64, "num_warps": 2}, 64)],
)  # fmt: skip
def test_a_configuration_by_number_or_by_settings(config: Any, block: int) -> None:
    found = settled(tuned(), (None,), {"config": config})
    assert found == {"BLOCK": block, "num_warps": block // 32}


@pytest.mark.parametrize(
    ("config", "said"),
    [(2, "has 2 configurations"), (-1, "has 2 configurations"), (True, "has 2 configurations"),
     ("BLOCK", "has 2 configurations"), ({"BLOCK": 32}, "no configuration of 'k' has BLOCK=32"),
     ({"BLOK": 64}, "no configuration of 'k' has BLOK=64"), ({}, "would time the fastest")],
)  # fmt: skip
def test_no_such_configuration(config: Any, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        settled(tuned(), (None,), {"config": config})


def test_an_argument_called_config_is_an_argument() -> None:
    found = settled(tuned("config"), (None,), {"config": 5, "BLOCK": 64})
    assert found == {"config": 5, "BLOCK": 64, "num_warps": 2}


@pytest.mark.parametrize(
    ("value", "on"), [("1", True), ("true", True), ("0", False), ("", False), (None, False)]
)
def test_the_switch(value: str | None, on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPLOOM_EMULATE", raising=False)
    if value is not None:
        monkeypatch.setenv("WARPLOOM_EMULATE", value)
    assert emulates_scripts() == on
    assert from_environment().emulate == on


class Device:
    def __init__(self, name: str) -> None:
        self.type = name.partition(":")[0]


class TorchFunctionMode:
    """As PyTorch's: what is entered sees every function that is called."""

    entered: ClassVar[list[Any]] = []

    def __enter__(self) -> None:
        self.entered.append(self)


def module(name: str, monkeypatch: pytest.MonkeyPatch, **content: Any) -> ModuleType:
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None)
    made.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, made)
    return made


class Bracket:
    def __init__(self, bracket: Any) -> None:
        self.bracket = bracket

    def __getitem__(self, grid: Any) -> Any:
        return self.bracket(grid)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What a script has of both packages, once the switch is on."""
    launches: list[Any] = []

    class JITFunction:
        def __getitem__(self, grid: Any) -> Any:
            return lambda *args, **named: self.run(*args, grid=grid, warmup=False, **named)

        def run(self, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
            raise AssertionError("a GPU is asked for")

    class Autotuner(JITFunction):
        pass

    def emulated(function: Any, arch: str) -> Any:
        def bracket(grid: Any) -> Any:
            return lambda *args, **named: launches.append((function, grid, args, named))

        assert arch == "sm_90a"
        return Bracket(bracket)

    monkeypatch.setattr(triton_script, "emulate", emulated)
    monkeypatch.setattr(triton_script, "_emulated", {})
    monkeypatch.setattr(TorchFunctionMode, "entered", [])
    drivers: list[Any] = []
    module("triton", monkeypatch)
    module("triton.runtime", monkeypatch, driver=SimpleNamespace(set_active=drivers.append))
    jit = module("triton.runtime.jit", monkeypatch, JITFunction=JITFunction)
    module("triton.runtime.autotuner", monkeypatch, Autotuner=Autotuner)
    tensor = type("Tensor", (), {"cuda": lambda self: "on a GPU"})
    torch = module("torch", monkeypatch, Tensor=tensor, device=Device, cuda=SimpleNamespace())
    module("torch.overrides", monkeypatch, TorchFunctionMode=TorchFunctionMode)
    triton_script.emulate_scripts()
    return SimpleNamespace(
        jit=jit, tuner=Autotuner, launches=launches, drivers=drivers, torch=torch
    )


def test_launches_of_a_script_are_emulated(script: SimpleNamespace) -> None:
    kernel, other = script.jit.JITFunction(), script.tuner()
    x = np.zeros(4)
    kernel[(2,)](x, 4, BLOCK=8)
    other[(3,)](x, n=4)
    assert kernel.run(x, grid=(1,), warmup=True) is None  # is compiled, and not launched
    assert script.launches == [
        (kernel, (2,), (x, 4), {"BLOCK": 8}), (other, (3,), (x,), {"n": 4, "config": 0})
    ]  # fmt: skip


def test_a_script_is_told_of_an_h200(script: SimpleNamespace) -> None:
    (driver,) = script.drivers
    assert driver.get_active_torch_device().type == "cpu"
    assert driver.get_current_device() == driver.get_current_stream(0) == 0
    assert driver.is_active()
    assert script.torch.cuda.is_available()
    assert script.torch.cuda.get_device_capability() == (9, 0)


def test_cuda_is_read_as_the_cpu(script: SimpleNamespace) -> None:
    (mode,) = TorchFunctionMode.entered

    def given(*args: Any, **named: Any) -> Any:
        return args, named

    gpu = Device("cuda:1")
    (first, second, number), named = mode.__torch_function__(
        given, (), ("cuda:0", gpu, 3), {"device": "cuda", "name": "cudagraph"}
    )
    assert (first, second.type, number) == ("cpu", "cpu", 3)
    assert named == {"device": "cpu", "name": "cudagraph"}
    tensor = script.torch.Tensor()
    assert mode.__torch_function__(script.torch.Tensor.cuda, (), (tensor,)) is tensor


def test_the_switch_is_turned_once(script: SimpleNamespace) -> None:
    triton_script.emulate_scripts()
    assert len(script.drivers) == len(TorchFunctionMode.entered) == 1


def test_without_triton_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_script, "find_spec", lambda name: None)
    triton_script.emulate_scripts()
