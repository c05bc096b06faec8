"""Ways of a conversion measured on a GPU: the one tuner chooses, the store keeps it.

What is timed is `looped_text`: the conversion again and again, registers in and registers out. Each
way gives the right result there before it is timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from warploom.catalogue.conversion import loop_parts, looped_text
from warploom.errors import CheckError, DeviceError, UnsupportedError, WarploomError
from warploom.layout.conversion.convert import Conversion
from warploom.layout.conversion.fragment import Fragment
from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE
from warploom.runtime.compile import compile_cuda
from warploom.runtime.driver import Launch, open_driver
from warploom.runtime.gpu import Loaded, machine_of
from warploom.runtime.rig import Bench, GpuRig, on_gpu, on_host
from warploom.search.outcome import Found, Outcome
from warploom.search.storage.store import digest
from warploom.search.storage.tune import Task, Tuned, TuneOptions, tune

Bytes: TypeAlias = npt.NDArray[np.uint8]

ITERATIONS = 1001  # odd, so that the numbers do not cancel
WARPS = 8  # on each multiprocessor: enough to hide some of a latency, as in a kernel that computes
MULTIPROCESSORS = 132  # where it is not known how many there are


def ways_of(conversion: Conversion) -> dict[str, tuple[str, Conversion]]:
    """Every way by its name, the one of the rule first: the word for it, and the conversion that
    does it so. Matrices may be stored or loaded as such, where both cost the same."""
    names = [conversion.chosen]
    if conversion.renames is None:
        names += [name for name in conversion.costs if name != conversion.chosen]
    found = {name: (name, conversion) for name in names}
    for other in conversion.other_matrices:
        name = f"matrices: {other.store.name} + {other.load.name}"
        found[name] = "matrices", replace(conversion, matrices=other)
    return found


def with_way(conversion: Conversion, name: str) -> tuple[str, Conversion]:
    """What `ways_of` has under a name."""
    return ways_of(conversion)[name]


# -- what is right ---------------------------------------------------------------------------------


def loop_input(conversion: Conversion, blocks: int, seed: int = 0) -> tuple[Bytes, Bytes]:
    """Bytes of every element, [block, element, byte], and of the words that threads hold."""
    shape = blocks, conversion.source.size, conversion.unit_bytes
    values = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return values, _words(conversion, conversion.source, values)


def loop_result(conversion: Conversion, values: Bytes, iterations: int) -> tuple[Bytes, Numbers]:
    """Bytes of the words that threads have in the end, and which of them are wanted at all."""
    changes = np.bitwise_xor.accumulate(np.arange(iterations) % 256)
    last = np.uint8(np.bitwise_xor.reduce(changes))
    wanted = _words(conversion, conversion.target, (values * np.uint8(iterations % 2)) ^ last)
    known = np.broadcast_to(np.uint8(1), values.shape)
    return wanted, _words(conversion, conversion.target, known).astype(np.int64)


def _words(conversion: Conversion, fragment: Fragment, values: Bytes) -> Bytes:
    parts = loop_parts(conversion)
    held = np.where((fragment.elements == IDLE)[..., None], 0, values[:, fragment.elements])
    blocks, warps, lanes, registers, size = held.shape
    words = held.reshape(blocks, warps, lanes, registers // parts, parts * size)
    return np.ascontiguousarray(words.transpose(0, 3, 1, 2, 4).astype(np.uint8)).ravel()


# -- on a device -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadyWay:
    name: str
    code: bytes


class GpuWayBench(GpuRig[ReadyWay]):
    """A GPU by its number: seconds of one conversion of all its blocks. A way that gives something
    else than is wanted is an error."""

    def __init__(self, conversion: Conversion, gpu: int = 0, warps: int = WARPS) -> None:
        super().__init__(gpu)
        self.conversion = conversion
        beside = max(1, warps // conversion.source.warps)
        self.blocks = beside * (machine_of(gpu).multiprocessors or MULTIPROCESSORS)
        self.values, held = loop_input(conversion, self.blocks)
        self.x = on_gpu(held, gpu)

    def launches(self, prepared: ReadyWay) -> list[Launch]:
        return [self.launch(prepared)]

    def timed(self, launches: Sequence[Launch], samples: int) -> Sequence[float]:
        return [each / ITERATIONS for each in super().timed(launches, samples)]

    def launch(self, ready: ReadyWay) -> Launch:
        """What converts once more, after it gave the right result."""
        wanted, known = loop_result(self.conversion, self.values, ITERATIONS)
        y = on_gpu(np.full_like(wanted, 0xA5), self.gpu)
        function = Loaded(open_driver().load(ready.code, "convert", self.gpu))
        arguments = [np.int32(self.blocks), np.int32(ITERATIONS), address(self.x), address(y)]
        threads = self.conversion.source.lanes * self.conversion.source.warps
        launch = function.bind((self.blocks, 1, 1), (threads, 1, 1), arguments)
        launch()
        if ((on_host(y) != wanted) & (known != 0)).any():
            raise DeviceError(f"the way '{ready.name}' gives a wrong result on this GPU")

        def again() -> None:
            launch()
            assert y is not None  # its memory must not be given to others meanwhile

        return again


def address(array: Any) -> int:
    """Where an array of PyTorch or CuPy begins."""
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.data.ptr)


def compiled_way(texts: dict[str, str], arch: str, name: str) -> ReadyWay:
    """Run in processes of their own."""
    return ReadyWay(name, compile_cuda(texts[name], arch, kind="cubin").code)


def looped_texts(conversion: Conversion) -> dict[str, str]:
    """What is timed of each way; ways that need more than a block has are left out."""
    texts, refused = dict[str, str](), list[WarploomError]()
    for name, (way, one) in ways_of(conversion).items():
        try:
            texts[name] = looped_text(one, way)
        except (CheckError, UnsupportedError) as error:
            refused.append(error)
    if not texts:
        raise refused[0]
    return texts


def way_task(conversion: Conversion, device: str, arch: str) -> Task[str, ReadyWay]:
    """What is tuned, all but the measuring."""
    texts = looped_texts(conversion)

    def unmeasured(_: ReadyWay, __: int) -> Sequence[float]:
        raise DeviceError("nothing is measured here")

    return Task(
        "conversion",
        {"texts": digest(texts), "iterations": ITERATIONS, "warps": WARPS},
        device,
        list(texts),
        str,
        partial(compiled_way, texts, arch),
        unmeasured,
    )


def tune_way(
    conversion: Conversion, bench: Bench[ReadyWay], **how: Unpack[TuneOptions]
) -> Outcome[Tuned[str]]:
    """The fastest way on a bench, by name: see `ways_of`."""
    task = replace(way_task(conversion, bench.device, bench.arch), measure=bench.measure)
    return tune(task, **how)


def best_way(found: Outcome[Tuned[str]], conversion: Conversion) -> str:
    """What was measured to be best, or the rule's choice where nothing was measured."""
    return found.answer.best.candidate if isinstance(found, Found) else conversion.chosen
