"""A kernel as OpenCL C text; lanes exchange by sub-group shuffles or through local memory."""

from __future__ import annotations

from warploom.emit.dialect import OPENCL
from warploom.emit.parts import (
    check_declared,
    computes_floats,
    dtypes_of,
    exchange_buffer,
    header,
    parameters,
    source_lane,
)
from warploom.emit.simt import SimtPrinter
from warploom.emit.spell import spelled
from warploom.index.ir import Var
from warploom.index.laws import simplify
from warploom.kernel.check import check
from warploom.kernel.dtype import DType
from warploom.kernel.ir import (
    ArrayParam,
    Barrier,
    Kernel,
    Param,
    ScalarParam,
    Shuffle,
    dtype_of,
)
from warploom.kernel.ir import walk as walk_stmts
from warploom.kernel.predicate import predicate_exchanges


def opencl(kernel: Kernel, subgroups: bool = False, contract: bool = False) -> str:
    """The text of the kernel.

    With `subgroups` lanes exchange by `sub_group_shuffle`; the device must then have sub-groups of
    the kernel's warp size. Otherwise they meet at barriers and exchange through local memory. With
    `contract` the compiler may make one rounding of a product and a sum.
    """
    check(kernel)
    check_declared(kernel, "OpenCL")
    if not subgroups:
        # PoCL 3 loses threads at barriers in nested conditions, though the whole block agrees.
        kernel = predicate_exchanges(kernel, everywhere=True)
    kernel = spelled(kernel, "opencl")
    return header(kernel) + opencl_text(kernel, subgroups, contract)


def opencl_text(kernel: Kernel, subgroups: bool = False, contract: bool = False) -> str:
    """What follows the comment, of a kernel that was checked and has names that OpenCL can have."""
    printer = SubgroupPrinter(kernel) if subgroups else LocalPrinter(kernel)
    body = printer.body()
    x, y, z = kernel.block
    listed = parameters({each.name: _parameter(each) for each in kernel.params})
    size = f"__attribute__((reqd_work_group_size({x}, {y}, {z})))"
    head = f"__kernel {size}\nvoid {kernel.name}({listed}) {{\n"
    called = printer.helpers(body)
    return pragmas(kernel, subgroups, contract) + called + head + body + "}\n"


def pragmas(kernel: Kernel, subgroups: bool, contract: bool) -> str:
    lines = []
    types = set(dtypes_of(kernel))
    shuffles = [each for each in walk_stmts(kernel.body) if isinstance(each, Shuffle)]
    if subgroups and shuffles:
        lines.append("#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable")
    if DType.F64 in types:
        lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    if computes_floats(kernel):
        lines.append(f"#pragma OPENCL FP_CONTRACT {'ON' if contract else 'OFF'}")
    return "".join(f"{line}\n" for line in lines)


def _parameter(param: Param) -> str:
    match param:
        case ScalarParam(name, dtype):
            return f"const {OPENCL.types[dtype]} {name}"
        case ArrayParam(name, dtype) if param.space == "constant":
            return f"__constant {OPENCL.types[dtype]}* {name}"
        case ArrayParam(name, dtype):
            const = "const " if param.const else ""
            restrict = OPENCL.restrict if param.restrict else ""
            return f"__global {const}{OPENCL.types[dtype]}*{restrict} {name}"


class SubgroupPrinter(SimtPrinter):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, OPENCL)

    def shuffle(self, stmt: Shuffle) -> None:
        lane = self.index(simplify(source_lane(stmt, self.kernel.warp_size), self.bounds))
        call = f"sub_group_shuffle({self.value(stmt.value)}, {lane})"
        self.lines.add(f"{self.cell(stmt.target)} = {call};")

    def barrier(self, stmt: Barrier) -> None:
        if stmt.scope == "warp":
            self.lines.add("sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")
        else:
            super().barrier(stmt)


class LocalPrinter(SimtPrinter):
    """A shuffle is: everyone puts a value down, all meet, everyone picks one up, all meet."""

    def __init__(self, kernel: Kernel, owner: str = "") -> None:
        super().__init__(kernel, OPENCL, owner)
        self.exchanged = {
            dtype_of(each.value): None
            for each in walk_stmts(kernel.body)
            if isinstance(each, Shuffle)
        }

    def extra_variables(self) -> set[str]:
        return {"thread", "lane"} if self.exchanged else set()

    def prologue(self) -> None:
        for dtype in self.exchanged:
            self.lines.add(
                f"__local {self.type(dtype)} {exchange_buffer(dtype)}[{self.kernel.threads}];"
            )
        super().prologue()

    def shuffle(self, stmt: Shuffle) -> None:
        buffer = exchange_buffer(dtype_of(stmt.value))
        source = Var("thread") - Var("lane") + source_lane(stmt, self.kernel.warp_size)
        self.lines.add(f"{buffer}[thread] = {self.value(stmt.value)};")
        self.lines.add("barrier(CLK_LOCAL_MEM_FENCE);")
        self.lines.add(f"{self.cell(stmt.target)} = {buffer}[{self.index(source)}];")
        self.lines.add("barrier(CLK_LOCAL_MEM_FENCE);")
