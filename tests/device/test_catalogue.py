"""Every kernel of the catalogue on a GPU: what the specification says, on all its sizes."""

from __future__ import annotations

from typing import Any

import pytest

from warploom import runtime
from warploom.catalogue import Entry, entries
from warploom.catalogue.timing import arguments_on_gpu
from warploom.errors import WarploomError
from warploom.runtime.measure import gpu_library
from warploom.runtime.rig import on_host

pytestmark = pytest.mark.device
CASES = [(entry, variant) for entry in entries().values() for variant in entry.variants]
IDS = [f"{entry.name}-{variant}" for entry, variant in CASES]


@pytest.fixture(scope="module")
def library() -> tuple[str, Any]:
    try:
        return gpu_library()
    except WarploomError as error:
        pytest.skip(error.message)


@pytest.mark.parametrize(("entry", "variant"), CASES, ids=IDS)
def test_a_gpu_agrees_on_every_size(
    entry: Entry, variant: dict[str, Any], library: tuple[str, Any]
) -> None:
    kernel = entry.kernel(**variant)
    function = runtime.load(kernel, "cuda")
    for seed, size in enumerate(entry.sizes(**entry.settings(variant))):
        case = entry.case(kernel, size, seed, **variant)
        arguments = arguments_on_gpu(kernel, case)
        function(*arguments)
        assert entry.agrees(kernel, case, [on_host(each) for each in arguments]), size
