"""A kernel as CUDA C++ text that NVRTC and nvcc compile as it is."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.emit.async_helper import async_texts, map_text
from warploom.emit.dialect import CUDA, Dialect
from warploom.emit.helper import BF16_PAIR
from warploom.emit.join import constraint, join_text, joins
from warploom.emit.parts import header, parameters
from warploom.emit.pipeline import Pipeline
from warploom.emit.simt import SimtPrinter, plus, shifted
from warploom.emit.spell import spelled
from warploom.errors import EmitError
from warploom.index.ir import Binary, Const, Expr
from warploom.kernel import ir
from warploom.kernel.check import check
from warploom.kernel.direct_copy import passed
from warploom.kernel.dtype import DType
from warploom.kernel.names import Fresh, names_of
from warploom.kernel.pool import asked_name, launched_bytes
from warploom.kernel.tensor import widths
from warploom.kernel.warpgroup import Hopper
from warploom.machine.record import CUDA as MACHINE

_TENSOR_PRODUCT: dict[ir.TensorKind, str] = {
    "tf32": "m16n8k8.row.col.f32.tf32.tf32.f32",
    "bf16": "m16n8k16.row.col.f32.bf16.bf16.f32",
    "f16": "m16n8k16.row.col.f32.f16.f16.f32",
    "e4m3": "m16n8k32.row.col.f32.e4m3.e4m3.f32",
    "e5m2": "m16n8k32.row.col.f32.e5m2.e5m2.f32",
    "i8": "m16n8k32.row.col.s32.s8.s8.s32",
    "u8": "m16n8k32.row.col.s32.u8.u8.s32",
}
_FACTORS = "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
_VECTOR = {
    DType.F32: "float",
    DType.F64: "double",
    DType.I32: "int",
    DType.U32: "uint",
    DType.I64: "longlong",
    DType.U64: "ulonglong",
    DType.I16: "short",
    DType.U16: "ushort",
    DType.I8: "char",
    DType.U8: "uchar",
    DType.F16: "ushort",
    DType.BF16: "ushort",
    DType.E4M3: "uchar",
    DType.E5M2: "uchar",
}
_BITS = {8: "char", 16: "short"}
_SHUFFLE = {
    "idx": "__shfl_sync",
    "up": "__shfl_up_sync",
    "down": "__shfl_down_sync",
    "xor": "__shfl_xor_sync",
}
HARDWARE_WARP = MACHINE.lanes
FOUR, WORD = 4, 4  # elements of the widest vector type; bytes of a register


def cuda(kernel: ir.Kernel) -> str:
    """The kernel as text: header comment, constant structures, helpers, the function."""
    check(kernel)
    check_warp(kernel)
    kernel = spelled(kernel, "cuda")
    return header(kernel) + cuda_text(kernel)


def check_warp(kernel: ir.Kernel) -> None:
    if kernel.warp_size > HARDWARE_WARP:
        raise EmitError(
            f"CUDA has warps of {HARDWARE_WARP} lanes, the kernel has {kernel.warp_size}",
            advice=f"instantiate the kernel for {HARDWARE_WARP} lanes",
        )


def cuda_text(kernel: ir.Kernel) -> str:
    """What follows the comment, of a kernel that was checked and has names that CUDA can have."""
    bounds = f", {kernel.min_blocks}" if kernel.min_blocks else ""
    return text_by(CudaPrinter(kernel), "const __grid_constant__ ", bounds)


def text_by(printer: CudaPrinter, constant: str, bounds: str) -> str:
    """The text of a printer's kernel; `constant` stands before structures passed by value."""
    kernel, dialect, body = printer.kernel, printer.dialect, printer.body()
    fresh = Fresh(names_of(kernel))
    types = {
        each.name: fresh.name(f"{printer.prefix}{each.name}_values")
        for each in kernel.arrays
        if each.space == "constant"
    }
    structs = "".join(
        f"struct {types[each.name]} {{\n  {dialect.types[each.dtype]} at[{_size(each)}];\n}};\n\n"
        for each in kernel.arrays
        if each.name in types
    )
    given = {each.name: _parameter(each, types, dialect, constant) for each in kernel.params}
    given |= {each.name: f"{constant}{printer.prefix}map {each.name}" for each in kernel.maps}
    x, y, z = kernel.launched
    limit = f"__launch_bounds__({x * y * z}{bounds})"
    if kernel.cluster > 1:
        limit = f"__cluster_dims__({kernel.cluster}) {limit}"
    head = f'extern "C" __global__ void {limit}\n{kernel.name}({parameters(given)}) {{\n'
    return printer.helpers(body) + structs + printer.asked() + head + body + "}\n"


def _size(array: ir.ArrayParam) -> int:
    assert isinstance(array.size, Const)
    return array.size.value


def _parameter(param: ir.Param, types: Mapping[str, str], dialect: Dialect, constant: str) -> str:
    match param:
        case ir.ScalarParam(name, dtype):
            return f"const {dialect.types[dtype]} {name}"
        case ir.ArrayParam(name) if param.space == "constant":
            return f"{constant}{types[name]} {name}"
        case ir.ArrayParam(name, dtype):
            const = "const " if param.const else ""
            restrict = dialect.restrict if param.restrict else ""
            return f"{const}{dialect.types[dtype]}*{restrict} {name}"


class CudaPrinter(SimtPrinter):
    def __init__(self, kernel: ir.Kernel, dialect: Dialect = CUDA, owner: str = "") -> None:
        super().__init__(kernel, dialect, owner)
        self.launched = launched_bytes(kernel)
        self.pooled = self.pooled or bool(self.launched)
        self.joins = joins(kernel)
        self.passed = passed(kernel)
        self.passing: dict[str, ir.Load] = {}
        self.pipeline = Pipeline(self)

    def asked(self) -> str:
        """What a launch has to ask for, for people and for `runtime/driver.py`."""
        if not self.launched:
            return ""
        name = asked_name(self.kernel.name)
        text = "A launch asks for so many bytes of dynamic shared memory, allowed before by"
        attribute = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        constant = f'extern "C" __constant__ unsigned {name} = {self.launched};'
        return f"// {text}\n// {attribute}.\n{constant}\n\n"

    def prologue(self) -> None:
        super().prologue()
        self.pipeline.begin()

    def helper_texts(self, body: str) -> dict[str, str]:
        maps = {"": map_text(self.prefix)} if self.kernel.maps else {}
        return super().helper_texts(body) | maps | async_texts(self.prefix, body)

    def hopper(self, stmt: Hopper) -> None:
        self.pipeline.statement(stmt)

    def pool(self) -> None:
        """More than a kernel may declare is given at its launch."""
        if self.launched:
            align = self.dialect.align.format(max(each.align for each in self.shared))
            self.lines.add(f"extern {self.dialect.shared} {align} unsigned char pool[];")
        else:
            super().pool()

    def statements(self, body: tuple[ir.Stmt, ...]) -> None:
        """In order; of a kernel with roles, by those who have them."""
        if body is self.kernel.body and self.kernel.roles is not None:
            self.pipeline.roles(body)
        else:
            self.in_order(body)
        if body is self.kernel.body:
            self.pipeline.end()

    def in_order(self, body: tuple[ir.Stmt, ...]) -> None:
        """Rounds of a scan are one piece of PTX each."""
        at, since, already = 0, dict[str, int](), len(self.pipeline.under_way)
        while at < len(body):
            stmt, after = body[at], body[at + 1 : at + 2]
            self.pipeline.before(stmt)
            if not isinstance(stmt, ir.BulkStore):
                self.pipeline.met = False
            if self.pipeline.sent and self.pipeline.ordered(stmt, since):
                at += 1
                continue
            if isinstance(stmt, ir.Shuffle) and stmt.target.name in self.joins:
                total, text = self.value(stmt.value), join_text(stmt, after[0])
                kind = constraint(stmt.target.dtype)
                self.lines.add(f'asm volatile("{text}" : "+{kind}"({total}));')
                at += 2
                continue
            match stmt:
                case ir.Registers(name) if name in self.joins or name in self.passed:
                    pass
                case ir.Shared(name) if self.pipeline.by_address(name):
                    pass
                case ir.Load(target) if target.name in self.passed:
                    self.passing[target.name] = stmt
                case ir.Store(value=ir.Cell(name)) if name in self.passed:
                    self._copy(self.passing[name], stmt)
                case _:
                    self.statement(stmt)
            at += 1
        self.pipeline.ended(already)

    def _copy(self, load: ir.Load, store: ir.Store) -> None:
        """Where the load's condition is false no bytes are read, and zeros are stored."""
        size = load.width * load.target.dtype.bytes
        way = "cg" if size == MACHINE.access_bytes else "ca"  # the first only for whole accesses
        place, count = self.index(load.index), str(size)
        if load.predicate is not None:
            inside = self.values.condition(load.predicate)
            place, count = f"{inside} ? {place} : 0", f"{inside} ? {size} : 0"
        target = f"(unsigned)__cvta_generic_to_shared(&{store.array}[{self.index(store.index)}])"
        guard = "" if store.predicate is None else f"if ({self.index(store.predicate)}) "
        self.lines.add(
            f'{guard}asm volatile("cp.async.{way}.shared.global [%0], [%1], {size}, %2;"'
        )
        self.lines.add(
            f'  :: "r"({target}), "l"(&{load.array}[{place}]), "r"({count}) : "memory");'
        )

    def extra_variables(self) -> set[str]:
        # Warps narrower than the hardware's need a mask of their own lanes.
        narrow = self.kernel.warp_size < HARDWARE_WARP
        return {"thread"} if narrow and any(map(_meets, ir.walk(self.kernel.body))) else set()

    def mask(self) -> str:
        """The lanes of a thread's own warp."""
        width = self.kernel.warp_size
        if width == HARDWARE_WARP:
            return "0xffffffffu"
        first = f"(thread & {HARDWARE_WARP - 1 - (width - 1)})"
        return f"{hex((1 << width) - 1)}u << {first}"

    def barrier(self, stmt: ir.Barrier) -> None:
        if stmt.waits is not None and self.passed:
            wait = f"cp.async.commit_group; cp.async.wait_group {stmt.waits};"
            self.lines.add(f'asm volatile("{wait}" ::: "memory");')
        if stmt.scope == "block" and self.kernel.roles is not None:
            self.pipeline.meet()
        elif stmt.scope == "group":
            self.pipeline.meet("group")
        elif stmt.scope == "warp" and self.kernel.warp_size < HARDWARE_WARP:
            self.lines.add(f"__syncwarp({self.mask()});")
        else:
            super().barrier(stmt)

    def cell(self, cell: ir.Cell) -> str:
        text = super().cell(cell)
        return text.replace("[", ".at[", 1) if cell.name in self.constants else text

    def shuffle(self, stmt: ir.Shuffle) -> None:
        width = self.kernel.warp_size
        lane = self.index(without_modulo(stmt.lane, width) if stmt.mode == "idx" else stmt.lane)
        tail = f", {width}" if width < HARDWARE_WARP else ""
        call = f"{_SHUFFLE[stmt.mode]}({self.mask()}, {self.value(stmt.value)}, {lane}{tail})"
        self.lines.add(f"{self.cell(stmt.target)} = {call};")

    def tensor(self, stmt: ir.TensorProduct) -> None:
        cells = zip((stmt.target, stmt.a, stmt.b), widths(stmt.kind), strict=True)
        target, *factors = ([self.cell(shifted(c, k)) for k in range(w)] for c, w in cells)
        words = self._factor_words([each for own in factors for each in own], stmt)
        given = ", ".join(f'"r"({each})' for each in words)
        held = "f" if stmt.target.dtype.is_float else "r"
        kept = ", ".join(f'"+{held}"({each})' for each in target)
        self.lines.add(f'asm volatile("mma.sync.aligned.{_TENSOR_PRODUCT[stmt.kind]} {_FACTORS}"')
        self.lines.add(f"  : {kept}")
        self.lines.add(f"  : {given});")

    def neighbour(self, cell: ir.Cell, at: int) -> str:
        """The register so many places after an element of a register array."""
        return self.cell(shifted(cell, at))

    def words_of(self, cells: list[str], bits: int) -> list[str]:
        """Numbers of so many bits as words: the first lie in the lowest bits."""
        parts = [f"(unsigned int)(unsigned {_BITS[bits]}){each}" for each in cells]
        many = 32 // bits
        shifts = [f" << {bits * k}" if k else "" for k in range(many)]
        return [
            " | ".join(part + by for part, by in zip(parts[at:], shifts, strict=False))
            for at in range(0, len(parts), many)
        ]

    def _factor_words(self, factors: list[str], stmt: ir.TensorProduct) -> list[str]:
        """Factors as the words that an instruction takes."""
        if stmt.a.dtype is not DType.F32:
            return self.words_of(factors, 8 * stmt.a.dtype.bytes)
        if stmt.kind == "tf32":
            return [f"__float_as_uint({each})" for each in factors]
        pairs = zip(factors[::2], factors[1::2], strict=True)  # rounded
        return [self.values.call(BF16_PAIR, (low, high)) for low, high in pairs]

    def element(self, stmt: ir.Load, offset: int) -> str:
        text = super().element(stmt, offset)
        return f"__ldcs(&{text})" if stmt.streaming and self._is_global(stmt.array) else text

    def store_text(self, stmt: ir.Store, offset: int, value: str) -> str:
        if stmt.streaming and self._is_global(stmt.array):
            return f"__stcs(&{stmt.array}[{self.index(plus(stmt.index, offset))}], {value});"
        return super().store_text(stmt, offset, value)

    def _is_global(self, array: str) -> bool:
        return any(each.name == array for each in self.kernel.arrays)

    def load(self, stmt: ir.Load) -> None:
        if stmt.width == 1:
            super().load(stmt)
            return
        vector = _vector(stmt.target.dtype, stmt.width)
        cells = [self.cell(shifted(stmt.target, offset)) for offset in range(stmt.width)]
        pointer = f"reinterpret_cast<const {vector}*>(&{super().element(stmt, 0)})"
        fetched = f"__ldcs({pointer})" if stmt.streaming else f"*{pointer}"
        if stmt.predicate is None:
            self.lines.open("")
        else:
            self.lines.open(f"if ({self.index(stmt.predicate)})")
        self.lines.add(f"const {vector} part = {fetched};")
        kind = self.type(stmt.target.dtype)
        for cell, part in zip(cells, _parts(stmt.target.dtype, stmt.width, kind), strict=True):
            self.lines.add(f"{cell} = {part};")
        if stmt.predicate is not None:
            self.lines.close("} else {")
            self.lines.depth += 1
            other = self.other(stmt)
            if not isinstance(stmt.otherwise, ir.Number | None):  # it may read what is set here
                self.lines.add(f"const {self.type(stmt.target.dtype)} other = {other};")
                other = "other"
            for cell in cells:
                self.lines.add(f"{cell} = {other};")
        self.lines.close()

    def store(self, stmt: ir.Store) -> None:
        if stmt.width == 1:
            super().store(stmt)
            return
        assert isinstance(stmt.value, ir.Cell)
        vector = _vector(stmt.value.dtype, stmt.width)
        cells = [self.cell(shifted(stmt.value, i)) for i in range(stmt.width)]
        value = f"make_{vector}({', '.join(_packed(cells, stmt.value.dtype))})"
        pointer = f"reinterpret_cast<{vector}*>(&{stmt.array}[{self.index(stmt.index)}])"
        guard = "" if stmt.predicate is None else f"if ({self.index(stmt.predicate)}) "
        if stmt.streaming:
            self.lines.add(f"{guard}__stcs({pointer}, {value});")
        else:
            self.lines.add(f"{guard}*{pointer} = {value};")


def _meets(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Shuffle) or (isinstance(stmt, ir.Barrier) and stmt.scope == "warp")


def _vector(dtype: DType, width: int) -> str:
    most = MACHINE.access_bytes
    if dtype.bytes * width > most:
        raise EmitError(f"{width} elements of {dtype!r} are more than one access of {most} bytes")
    return f"{_VECTOR[dtype]}{width}" if width <= FOUR else f"uint{dtype.bytes * width // WORD}"


def _parts(dtype: DType, width: int, kind: str) -> list[str]:
    """The elements of what was loaded as one; more than four come in words."""
    if width <= FOUR:
        return [f"part.{axis}" for axis in "xyzw"[:width]]
    each, bits = WORD // dtype.bytes, 8 * dtype.bytes
    places = [("xyzw"[at // each], at % each * bits) for at in range(width)]
    return [f"({kind})(part.{axis}{f' >> {by}' if by else ''})" for axis, by in places]


def _packed(cells: list[str], dtype: DType) -> list[str]:
    """Elements as the parts of a vector: themselves, or words of several."""
    if len(cells) <= FOUR:
        return cells
    each, bits = WORD // dtype.bytes, 8 * dtype.bytes
    plain = [f"(unsigned int)(unsigned {_BITS[bits]}){cell}" for cell in cells]
    shifted_ = [f"{part} << {at % each * bits}" if at % each else part
                for at, part in enumerate(plain)]  # fmt: skip
    return [" | ".join(shifted_[at : at + each]) for at in range(0, len(cells), each)]


def without_modulo(lane: Expr, width: int) -> Expr:
    """The hardware looks at the low bits of a lane number only."""
    match lane:
        case Binary("%", inner, Const(size)) if size == width:
            return inner
        case _:
            return lane
