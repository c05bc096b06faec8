"""Conversions between register layouts as kernels: plans come in, kernels go out.

The kernel takes what the threads of a block hold, `x[(block · registers + register) · threads +
thread]`, converts it and gives what they hold then; between the two stand only the statements of
the plan, ready to be taken over into a kernel of one's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from warploom.catalogue.matrix_text import matrix_text
from warploom.emit.language import backend_of, emit
from warploom.emit.parts import noted_text, with_notes
from warploom.errors import AbsentError, DeviceError, UnsupportedError, spelled
from warploom.index.ir import Expr
from warploom.index.table import lane_condition, lane_expression, thread_expression
from warploom.kernel.build import Builder, RegisterArray, choose, from_index
from warploom.kernel.dtype import DType
from warploom.kernel.ir import Cast, Kernel, Scope, Value
from warploom.layout.conversion.convert import WORD_BYTES, Conversion
from warploom.layout.conversion.shuffle import NOBODY, Selection, Shuffles, selection
from warploom.layout.conversion.staging import Side, Staging
from warploom.layout.language.evaluate import Numbers
from warploom.layout.language.show import show
from warploom.layout.patterns.access import IDLE
from warploom.ptx import load as load_ptx
from warploom.runtime.callable import Device, load
from warploom.runtime.compile import compile_cuda

DTYPES = {1: DType.U8, 2: DType.U16, 4: DType.U32, 8: DType.U64}


def conversion_kernel(
    conversion: Conversion, way: str | None = None, name: str = "convert"
) -> Kernel:
    """The kernel of one way, by default of the chosen one."""
    way = way or conversion.chosen
    return _Writer(conversion, way, name).kernel()


def looped_text(conversion: Conversion, way: str) -> str:
    """CUDA for measuring a way: it converts again and again, each time other numbers, and gives the
    exclusive or of all results. Registers are whole words before and after where they fill some."""
    if way == "matrices":
        return matrix_text(conversion, looped=True)
    return emit(_Writer(conversion, way).looped(), "cuda")


def conversion_text(
    conversion: Conversion, way: str, language: str, name: str = "convert", *notes: str
) -> str:
    """The kernel of one way as text; `notes` are comments before it."""
    backend_of(language)
    if way == "matrices":
        if language != "cuda":
            raise UnsupportedError(
                "ldmatrix and stmatrix exist only in CUDA",
                advice=spelled("--emit cuda", "take .text('cuda')"),
            )
        return noted_text(matrix_text(conversion, name), *notes)
    return emit(with_notes(conversion_kernel(conversion, way, name), *notes), language)


def loop_parts(conversion: Conversion) -> int:
    """How many units are one word before and after a loop."""
    parts = max(1, WORD_BYTES // conversion.unit_bytes)
    registers = conversion.source.registers, conversion.target.registers
    return parts if not any(count % parts for count in registers) else 1


def wrong_results(conversion: Conversion, way: str, device: str, blocks: int = 2) -> str:
    """What a kernel does wrong on a device; nothing if it is right. Raises AbsentError where the
    device is not there."""
    source, target = conversion.source, conversion.target
    dtype = DTYPES[conversion.unit_bytes].numpy
    draw = np.random.default_rng(0)
    values = draw.integers(0, 1 << 64, (blocks, source.size), np.uint64).astype(dtype)
    held = np.where(source.elements == IDLE, 0, values[:, source.elements])
    x = np.ascontiguousarray(held.transpose(0, 3, 1, 2)).ravel().astype(dtype)
    y = np.zeros(blocks * target.elements.size, dtype)
    try:
        if way == "matrices":
            text = compile_cuda(matrix_text(conversion)).text
            function = load_ptx(text).kernel("convert")
            function.launch(blocks, source.lanes * source.warps, [np.int32(blocks), x, y])
        else:
            load(conversion_kernel(conversion, way), cast("Device", device))(blocks, x, y)
    except AbsentError:
        raise
    except (DeviceError, UnsupportedError) as error:
        return error.message
    shape = (blocks, target.registers, target.warps, target.lanes)
    got = y.reshape(shape).transpose(0, 2, 3, 1)
    strange = (got != values[:, target.elements]) & (target.elements != IDLE)
    if not strange.any():
        return ""
    _, warp, lane, register = np.argwhere(strange)[0].tolist()
    return f"register {register} of lane {lane} of warp {warp} is not what it should be"


class _Writer:
    """Writes one kernel."""

    def __init__(self, conversion: Conversion, way: str, name: str = "convert") -> None:
        self.conversion = conversion
        source, target = conversion.source, conversion.target
        self.way, self.dtype = way, DTYPES[conversion.unit_bytes]
        self.threads = source.lanes * source.warps
        doc = f"From {source.name} to {target.name}: {way}."
        self.k = Builder(name, block=self.threads, doc=doc, warp_size=source.lanes)
        self.blocks = self.k.scalar("blocks")
        self.registers = source.registers, target.registers

    def kernel(self) -> Kernel:
        k, (held, wanted) = self.k, self.registers
        k.require(self.blocks.ge(1))
        x = k.array("x", self.dtype, self.blocks * (held * self.threads), const=True)
        y = k.array("y", self.dtype, self.blocks * (wanted * self.threads))
        k.grid(self.blocks)
        before = k.registers("held", self.dtype, held)
        with k.loop("r", held) as r:
            before[r] = x[(k.block_x * held + r) * self.threads + k.thread]
        self._declare()
        after = self._converted(before)
        for register, value in enumerate(after):
            at = (k.block_x * wanted + register) * self.threads + k.thread
            y.put(at, value)
        return k.done()

    def looped(self) -> Kernel:
        """The kernel of `looped_text`: iteration t changes every byte by exclusive or with t."""
        k, size = self.k, self.conversion.unit_bytes
        parts = loop_parts(self.conversion)
        word = DTYPES[size * parts]
        held, wanted = (count // parts for count in self.registers)
        iterations = k.scalar("iterations")
        k.require(self.blocks.ge(1))
        k.require(iterations.ge(1))
        x = k.array("x", word, self.blocks * (held * self.threads), const=True)
        y = k.array("y", word, self.blocks * (wanted * self.threads))
        k.grid(self.blocks)
        words, totals = (
            k.registers(name, word, count) for name, count in (("words", held), ("totals", wanted))
        )
        for r in range(held):
            words[r] = x[(k.block_x * held + r) * self.threads + k.thread]
        for r in range(wanted):
            totals[r] = 0
        self._declare()
        with k.loop("iteration", iterations) as iteration:
            changed = k.register("changed", word)
            k.set(
                changed, from_index(iteration % 256, word) * (((1 << 8 * size * parts) - 1) // 255)
            )
            before = k.registers("held", self.dtype, self.registers[0])
            for r in range(held):
                words[r] = words[r] ^ changed
                for place, part in enumerate(self._unpacked(words[r], parts)):
                    before[r * parts + place] = part
            if (
                self.way == "shared"
            ):  # what the last iteration stored was loaded; last, as it may wait
                k.barrier(self._scope)
            after = self._converted(before)
            for r in range(wanted):
                totals[r] = totals[r] ^ self._packed(after[r * parts : (r + 1) * parts])
        for r in range(wanted):
            y.put((k.block_x * wanted + r) * self.threads + k.thread, totals[r])
        return k.done()

    def _declare(self) -> None:
        """Shared memory, which is not declared in loops."""
        way = self.conversion.shared
        if self.way == "shared" and way is not None:
            self.memory = self.k.shared("memory", self.dtype, -(-way.slots // 4) * 4)
            self._scope: Scope = "warp" if way.within_warps else "block"

    def _converted(self, before: RegisterArray) -> Sequence[Value]:
        conversion = self.conversion
        if self.way in ("nothing", "renames") and conversion.renames is not None:
            return [before[register] for register in conversion.renames]
        if self.way == "shuffles" and conversion.shuffles is not None:
            return self._shuffled(before, conversion.shuffles)
        if self.way == "shared" and conversion.shared is not None:
            return self._staged(before, conversion.shared)
        raise UnsupportedError(
            f"this conversion cannot be done by '{self.way}'",
            advice=conversion.why.get(self.way, f"it is done by {conversion.chosen}"),
        )

    # -- shuffles

    def _shuffled(self, before: RegisterArray, plan: Shuffles) -> list[Value]:
        k, parts = self.k, plan.parts
        offers = plan.offers.reshape(-1, plan.lanes)
        offered = self._selected("offer", offers, [before[r] for r in range(len(before))])
        moving = set(plan.moving)
        taken: list[Value] = []
        for slot in range(len(plan.sources)):
            mine = offered[slot * parts : (slot + 1) * parts]
            if slot not in moving:
                taken += mine
                continue
            word_type = DType.U32 if parts > 1 else self.dtype
            word = k.register(f"word{slot}", word_type)
            k.set(word, self._packed(mine))
            got = k.register(f"got{slot}", word_type)
            k.set(got, k.shuffle(word, lane_expression(plan.sources[slot], k.lane)))
            taken += self._unpacked(got, parts)
        return self._selected("after", plan.placed, taken)

    def _packed(self, parts: Sequence[Value]) -> Value:
        if len(parts) == 1:
            return parts[0]
        bits = 32 // len(parts)
        result: Value = Cast(DType.U32, parts[0])
        for place, part in enumerate(parts[1:], 1):
            result = result | (Cast(DType.U32, part) << bits * place)
        return result

    def _unpacked(self, word: Value, parts: int) -> list[Value]:
        if parts == 1:
            return [word]
        bits = 32 // parts
        return [
            Cast(self.dtype, (word >> bits * place if place else word) & ((1 << bits) - 1))
            for place in range(parts)
        ]

    def _selected(self, name: str, table: Numbers, values: Sequence[Value]) -> list[Value]:
        """`values[table[place, lane]]` for each place; anything where nothing is wanted."""
        plan = selection(table)
        if plan.by is None:
            return [self._chain(name, place, row, values) for place, row in enumerate(table)]
        turned = self._turned(name, plan, values)
        return [turned[int(first)] for first in plan.first]

    def _chain(self, name: str, place: int, row: Numbers, values: Sequence[Value]) -> Value:
        k = self.k
        chosen = np.unique(row[row != NOBODY]).tolist()
        if len(chosen) <= 1:
            return values[chosen[0] if chosen else 0]
        # Last what most lanes want: nothing is asked for it.
        chosen.sort(key=lambda each: -int((row == each).sum()))
        target = k.register(f"{name}{place}", self.dtype)
        result = values[chosen[0]]
        for each in chosen[1:]:
            result = choose(lane_condition(row == each, k.lane), values[each], result)
        k.set(target, result)
        return target

    def _turned(self, name: str, plan: Selection, values: Sequence[Value]) -> list[Value]:
        """All registers turned by the lane's number, bit by bit."""
        k, current = self.k, list(values)
        for bit in range(int(plan.rotation.max()).bit_length()):
            truths = (plan.rotation >> bit & 1).astype(np.bool_)
            if not truths.any():
                continue
            condition = k.let(f"{name}_rotation{bit}", lane_condition(truths, k.lane))
            stage = k.registers(f"{name}_by{1 << bit}", self.dtype, len(current))
            for place, value in enumerate(current):
                far = place ^ 1 << bit if plan.by == "^" else (place + (1 << bit)) % len(current)
                k.set(stage[place], choose(condition.ne(0), current[far], value))
            current = [stage[place] for place in range(len(current))]
        return current

    # -- shared memory

    def _staged(self, before: RegisterArray, way: Staging) -> list[Value]:
        k = self.k
        if "matrix" in way.store.kind + way.load.kind:
            raise UnsupportedError(
                f"{way.store.name} and {way.load.name} are not statements of the kernel language",
                advice="ask for a conversion without matrices",
            )
        k.comment(f"through shared memory: {show(way.layout)}")
        memory, places = self.memory, way.addresses
        for step, registers in enumerate(way.store.registers):
            at, active = self._address(way.store, step, places)
            width = len(registers)
            vector = k.registers(f"vector{step}", self.dtype, width)
            for place, register in enumerate(registers):
                vector[place] = before[register]
            memory.put(at, vector[0], when=active, width=width)
        k.barrier(self._scope)
        after: list[Value] = [before[0]] * self.registers[1]
        for step, registers in enumerate(way.load.registers):
            at, active = self._address(way.load, step, places)
            vector = k.registers(f"loaded{step}", self.dtype, len(registers))
            k.set(vector[0], memory.at(at, when=active, width=len(registers)))
            for place, register in enumerate(registers):
                after[register] = vector[place]
        for register, loaded in way.load.copies:
            after[register] = after[loaded]
        return after

    def _address(self, side: Side, step: int, places: Numbers) -> tuple[Expr, Expr | None]:
        """Where each thread accesses in a step; and who does, if not all do."""
        k, first = self.k, side.elements[:, step, :, 0]
        busy = first != IDLE
        table = np.where(busy, places[np.maximum(first, 0)], 0)
        at = thread_expression(table, k.thread, k.lane, k.warp)
        if busy.all():
            return at, None
        return at, thread_expression(busy.astype(np.int64), k.thread, k.lane, k.warp).ne(0)
