"""A kernel as HIP text for AMD's GPUs: CUDA's words, warps of up to 64 lanes, no masks.

hipcc includes the headers that it needs by itself. A kernel with warps of 64 lanes is for machines
whose record has `lanes = 64`; narrower warps lie side by side in one of the hardware's.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.emit.cuda import CudaPrinter, text_by, without_modulo
from warploom.emit.dialect import CUDA, C
from warploom.emit.parts import check_declared, header
from warploom.emit.simt import SimtPrinter
from warploom.emit.spell import spelled
from warploom.kernel.check import check
from warploom.kernel.ir import Barrier, Kernel, Load, Shuffle, Stmt, Store, TensorProduct
from warploom.kernel.warpgroup import Hopper
from warploom.machine.record import machine_named

HARDWARE_WARP = machine_named("gfx942").lanes
HIP = replace(
    CUDA,
    language="hip",
    warp_barrier='__builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront"); '
    "__builtin_amdgcn_wave_barrier();",
    functions=C.functions,  # extremes as kernels mean them are written out
    infinity="__builtin_inf()",
    nan='__builtin_nan("")',
    align="__attribute__((aligned({})))",
)
_SHUFFLE = {"idx": "__shfl", "up": "__shfl_up", "down": "__shfl_down", "xor": "__shfl_xor"}


def hip(kernel: Kernel) -> str:
    """The kernel as text: header comment, constant structures, helpers, the function."""
    check(kernel)
    check_declared(kernel, "HIP")
    kernel = spelled(kernel, "hip")
    return header(kernel) + hip_text(kernel)


def hip_text(kernel: Kernel) -> str:
    """What follows the comment. The second number of CUDA's launch bounds means something else."""
    return text_by(HipPrinter(kernel), "const ", "")


class HipPrinter(CudaPrinter):
    """CUDA's text without PTX, hints of caching and masks."""

    def __init__(self, kernel: Kernel, owner: str = "") -> None:
        super().__init__(kernel, HIP, owner)

    def statements(self, body: tuple[Stmt, ...]) -> None:
        SimtPrinter.statements(self, body)

    def extra_variables(self) -> set[str]:
        return set()

    def barrier(self, stmt: Barrier) -> None:
        SimtPrinter.barrier(self, stmt)

    def hopper(self, stmt: Hopper) -> None:
        SimtPrinter.hopper(self, stmt)

    def shuffle(self, stmt: Shuffle) -> None:
        width = self.kernel.warp_size
        lane = self.index(without_modulo(stmt.lane, width) if stmt.mode == "idx" else stmt.lane)
        call = f"{_SHUFFLE[stmt.mode]}({self.value(stmt.value)}, {lane}, {width})"
        self.lines.add(f"{self.cell(stmt.target)} = {call};")

    def tensor(self, stmt: TensorProduct) -> None:
        SimtPrinter.tensor(self, stmt)

    def load(self, stmt: Load) -> None:
        super().load(replace(stmt, streaming=False))

    def store(self, stmt: Store) -> None:
        super().store(replace(stmt, streaming=False))
