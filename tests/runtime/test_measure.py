"""The arithmetic of timing, with a clock that is no clock; real timings are device tests."""

from __future__ import annotations

import pytest

from warploom.errors import DeviceError, UnsupportedError
from warploom.runtime import measure as measuring
from warploom.runtime.measure import Timing, measure, rotation


class FakeClock:
    """Every launch takes as long as it says."""

    def __init__(self) -> None:
        self.now = self.started = 0.0

    def start(self) -> None:
        self.started = self.now

    def stop(self) -> float:
        return self.now - self.started

    def wait(self) -> None:
        pass


def test_launches_are_rotated_and_averaged() -> None:
    clock, order = FakeClock(), []

    def launch(name: str, seconds: float) -> None:
        order.append(name)
        clock.now += seconds

    launches = [lambda: launch("a", 1e-3), lambda: launch("b", 3e-3)]
    timing = measure(launches, samples=5, warmup=2, timer=clock)
    assert timing.median == pytest.approx(2e-3)
    assert order == ["a", "b"] * (2 + 1 + 5)


def test_short_launches_are_repeated() -> None:
    clock, count = FakeClock(), [0]

    def launch() -> None:
        count[0] += 1
        clock.now += 1e-6

    timing = measure([launch], samples=3, timer=clock)
    assert timing.median == pytest.approx(1e-6)
    assert count[0] > 3 * 200


def test_figures() -> None:
    timing = Timing((1.0, 2.0, 3.0, 4.0, 100.0))
    assert timing.median == 3.0
    assert timing.rate(6.0) == 2.0
    assert timing.spread > 0
    assert Timing((1.0,)).spread == 0.0


def test_what_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="nothing to measure"):
        measure([], timer=FakeClock())
    with pytest.raises(DeviceError, match="moves nothing"):
        rotation(0)

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(measuring, "import_module", absent)
    with pytest.raises(UnsupportedError, match="PyTorch or CuPy"):
        measure([lambda: None])
