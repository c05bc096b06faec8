"""Functions as headers: CUDA C++, HIP, OpenCL C and C text to include in a kernel of one's own.

In CUDA and HIP a function is called by the lanes of a warp, each with its own registers; in CUDA
one that only moves values is a template over what it moves (`item.py`). In OpenCL, without
sub-groups, lanes exchange through local memory that the caller gives. In C the function does all
lanes of a warp: a register is an array with an element for each.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.emit.c import CPrinter, preamble
from warploom.emit.cuda import HARDWARE_WARP, CudaPrinter
from warploom.emit.dialect import OPENCL, C, Dialect
from warploom.emit.hip import HARDWARE_WARP as HIP_WARP
from warploom.emit.hip import HipPrinter
from warploom.emit.item import (
    LANE_FUNCTION,
    LANE_TEXT,
    WHOLE_TEXT,
    item_function,
    without_idle,
)
from warploom.emit.opencl import LocalPrinter, pragmas
from warploom.emit.parts import (
    exchange_buffer,
    parameters,
    with_all_named,
)
from warploom.emit.simt import SimtPrinter
from warploom.errors import EmitError
from warploom.kernel import ir
from warploom.kernel.dtype import DType
from warploom.kernel.function import WHOLE, DeviceFunction


def guarded_helpers(body: str, printer: SimtPrinter) -> str:
    """Helper functions, each once though functions of one name may come in several headers."""
    return "".join(
        f"#ifndef WARPLOOM_HELPER_{name.upper()}\n#define WARPLOOM_HELPER_{name.upper()}\n"
        f"{text}#endif\n\n"
        for name, text in printer.helper_texts(body).items()
    )


def exchanged(function: DeviceFunction) -> list[DType]:
    shuffles = (each for each in ir.walk(function.body) if isinstance(each, ir.Shuffle))
    return list(dict.fromkeys(ir.dtype_of(each.value) for each in shuffles))


# -- CUDA ------------------------------------------------------------------------------------------


def cuda_function(function: DeviceFunction) -> str:
    if function.is_template:
        return item_function(function, guarded_helpers)
    printer = CudaPrinter(replace(function.kernel, body=function.body), owner=function.name)
    return LANE_FUNCTION + _by_lanes(function, printer, HARDWARE_WARP)


def hip_function(function: DeviceFunction) -> str:
    """As CUDA's, for the lanes of a warp that lies in one of the hardware's."""
    if function.is_template:
        raise EmitError(
            f"'{function.name}' moves items of any type, and has no text in hip",
            advice="use cuda, opencl or c",
        )
    printer = HipPrinter(replace(function.kernel, body=function.body), owner=function.name)
    return HIP_LANE_FUNCTION + _by_lanes(function, printer, HIP_WARP)


HIP_LANE_FUNCTION = """\
#ifndef WARPLOOM_HELPER_LANE
#define WARPLOOM_HELPER_LANE
__device__ __forceinline__ int warploom_lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}
#endif

"""


def _by_lanes(function: DeviceFunction, printer: CudaPrinter, warp: int) -> str:
    """The function for a lane, of warps that have `warp` lanes in hardware."""
    printer.constants = set()  # what the kernel has as a structure is given as a pointer
    dialect, lanes = printer.dialect, printer.kernel.warp_size
    if lanes < warp:
        printer.lines.add("const int thread = warploom_lane();")
        printer.lines.add(f"const int lane = thread % {lanes};")
    else:
        printer.lines.add(LANE_TEXT)
    if WHOLE in function.numbers:
        printer.lines.add(WHOLE_TEXT)
    printer.statements(function.body)
    body = without_idle(printer.lines.text())
    texts = {each.name: _array(each, dialect, "") for each in function.arrays}
    texts |= {name: f"const int {name}" for name in function.numbers if name != WHOLE}
    texts |= {each.name: f"{dialect.types[each.dtype]}* {each.name}" for each in function.shared}
    texts |= {each.name: _reference(each, function, dialect) for each in function.registers}
    called = guarded_helpers(body, printer)
    head = f"__device__ __forceinline__ void {function.name}({parameters(texts)}) {{\n"
    return f"{called}{head}{with_all_named(body, texts)}}}\n"


def _reference(registers: ir.Registers, function: DeviceFunction, dialect: Dialect) -> str:
    const = "" if registers.name in function.written else "const "
    kind = dialect.types[registers.dtype]
    size = "" if registers.size is None else f"[{registers.size}]"
    name = f"(&{registers.name}){size}" if size else f"&{registers.name}"
    return f"{const}{kind} {name}"


def _array(array: ir.ArrayParam, dialect: Dialect, space: str) -> str:
    if array.space == "constant":
        where = "__constant " if space else "const "
        return f"{where}{dialect.types[array.dtype]}* {array.name}"
    const = "const " if array.const else ""
    return f"{space}{const}{dialect.types[array.dtype]}*{dialect.restrict} {array.name}"


# -- OpenCL ----------------------------------------------------------------------------------------


class _LocalFunctionPrinter(LocalPrinter):
    """Lanes exchange through room that the caller gives, an element for each lane of the warp."""

    def prologue(self) -> None:
        linear = "get_local_id(0) + get_local_size(0) * (get_local_id(1)"
        linear += " + get_local_size(1) * get_local_id(2))"
        self.lines.add(f"const int lane = (int)(({linear}) % {self.kernel.warp_size});")
        if self.exchanged:
            self.lines.add("const int thread = lane;")


def opencl_function(function: DeviceFunction) -> str:
    kernel = replace(function.kernel, body=function.body)
    printer = _LocalFunctionPrinter(kernel, function.name)
    body = without_idle(printer.body())
    texts = {each.name: _array(each, OPENCL, "__global ") for each in function.arrays}
    texts |= {name: f"const int {name}" for name in function.numbers}
    for each in function.shared:
        texts[each.name] = f"__local {OPENCL.types[each.dtype]}* {each.name}"
    for dtype in exchanged(function):
        name = exchange_buffer(dtype)
        texts[name] = f"__local {OPENCL.types[dtype]}* {name}"
    for registers in function.registers:
        const = "" if registers.name in function.written else "const "
        texts[registers.name] = f"{const}{OPENCL.types[registers.dtype]}* {registers.name}"
    called = guarded_helpers(body, printer)
    head = f"static void {function.name}({parameters(texts)}) {{\n"
    return f"{pragmas(kernel, False, False)}{called}{head}{with_all_named(body, texts)}}}\n"


# -- C ---------------------------------------------------------------------------------------------


class _CFunctionPrinter(CPrinter):
    """Registers that are given lie in arrays with an element for each lane."""

    def __init__(self, function: DeviceFunction) -> None:
        super().__init__(replace(function.kernel, body=function.body), owner=function.name)
        self.function = function

    def body(self) -> str:
        self.memory()
        self.crossing |= {each.name: each for each in self.function.registers}
        self.parts(self.kernel.body, {})
        return self.lines.text()


def c_function(function: DeviceFunction) -> str:
    printer = _CFunctionPrinter(function)
    body = printer.body()
    texts = {each.name: _array(each, C, "") for each in function.arrays}
    texts |= {name: f"const int {name}" for name in function.numbers}
    texts |= {each.name: f"{C.types[each.dtype]}* {each.name}" for each in function.shared}
    lanes = function.kernel.threads
    for registers in function.registers:
        size = "" if registers.size is None else f"[{registers.size}]"
        texts[registers.name] = f"{C.types[registers.dtype]} {registers.name}{size}[{lanes}]"
    called = guarded_helpers(body, printer)
    head = f"static inline void {function.name}({parameters(texts)}) {{\n"
    return (
        f"{preamble(called + body, printer.kernel)}{called}{head}{with_all_named(body, texts)}}}\n"
    )
