"""More shared memory than a kernel may declare is asked for at its launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.runtime.fakes import Cuda

from warploom.emit.cuda import cuda
from warploom.emit.hip import hip
from warploom.emit.opencl import opencl
from warploom.errors import CheckError, EmitError
from warploom.index.ir import Const, Var
from warploom.kernel import ir
from warploom.kernel.check import check
from warploom.kernel.dtype import f32
from warploom.kernel.evaluate import run
from warploom.machine.record import H200
from warploom.runtime.compile import can_compile
from warploom.runtime.driver import Configurations, Driver
from warploom.runtime.emulated import EmulatedFunction

CELLS = 20_000


def reversing(most: int = H200.shared_bytes_most) -> ir.Kernel:
    """y = x from back to front, by way of the end of a large array."""
    thread, held = Var("thread"), ir.Cell("r", None, f32)
    body = (
        ir.Shared("s", f32, CELLS),
        ir.Registers("r", f32),
        ir.Load(held, "x", thread),
        ir.Store("s", Const(CELLS - 1) - thread, held),
        ir.Barrier("block"),
        ir.Load(held, "s", Const(CELLS - 32) + thread),
        ir.Store("y", thread, held),
    )
    params = (ir.ArrayParam("x", f32, Const(32), const=True), ir.ArrayParam("y", f32, Const(32)))
    grid = (Const(1), Const(1), Const(1))
    return ir.Kernel("reversing", params, (32, 1, 1), grid, body, shared_most=most)


def test_a_kernel_is_allowed_what_its_machine_has() -> None:
    check(reversing())
    with pytest.raises(CheckError, match="80000 bytes of shared memory") as error:
        check(reversing(49152))
    assert "may declare at most 49152" in str(error.value)
    with pytest.raises(CheckError, match="80000 bytes") as error:
        check(reversing(65536))
    assert "may ask for at most 65536" in str(error.value)


def test_the_text_says_what_a_launch_asks_for() -> None:
    text = cuda(reversing())
    assert "extern __shared__ __align__(16) unsigned char pool[];" in text
    assert 'extern "C" __constant__ unsigned reversing_shared_bytes = 80000;' in text
    assert "float* const s = (float*)(pool + 0);" in text


@pytest.mark.parametrize("language", [hip, opencl])
def test_other_languages_refuse_it(language: Any) -> None:
    with pytest.raises(EmitError, match="80000 bytes of shared memory, given at a launch of CUDA"):
        language(reversing())


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
def test_compiled_it_does_the_same() -> None:
    x, y, again = np.arange(32, dtype=np.float32), np.zeros(32, "f4"), np.zeros(32, "f4")
    EmulatedFunction(reversing())([x, y], (1, 1, 1))
    run(reversing(), [x, again])
    assert y.tolist() == again.tolist() == x[::-1].tolist()


def test_a_loaded_function_is_allowed_it_and_launched_with_it() -> None:
    library = Cuda({"reversing": reversing(), "other": reversing()}, asked={"reversing": 80_000})
    driver = Driver(library)
    function = driver.load(b"", "reversing", 0)
    assert library.allowed == [(8, 80_000)]
    config = Configurations((1, 1, 1), (32, 1, 1), function.shared_bytes).reference(0)
    assert config._obj.shared_bytes == 80_000
    assert driver.load(b"", "other", 0).shared_bytes == 0
