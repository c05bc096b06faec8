"""The texts as a person reads them; `pytest --update-golden` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from bench.common.kernel import kernels

from warploom.emit.c import c
from warploom.emit.cuda import cuda
from warploom.emit.opencl import opencl
from warploom.kernel.ir import Kernel

Golden = Callable[[str, str], None]


KERNELS: dict[str, Callable[[], Kernel]] = {
    "transpose": kernels.transpose,
    "stencil": kernels.stencil,
    "aos3": kernels.aos_to_soa,
    "convolution": kernels.convolution,
}
LANGUAGES: dict[str, Callable[[Kernel], str]] = {
    "cu": cuda,
    "cl": opencl,
    "subgroup.cl": partial(opencl, subgroups=True),
    "c": c,
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("ending", LANGUAGES)
def test_text(name: str, ending: str, golden: Golden) -> None:
    golden(f"{name}.{ending}", LANGUAGES[ending](KERNELS[name]()))
