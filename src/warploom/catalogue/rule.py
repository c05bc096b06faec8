"""Settings by rule: what a user leaves open (0 or `auto`) is decided from the rest, the size of the
arrays where it is known, and a machine.

The numbers come from runs on an H200: structures_probe.py, aos_device.py and conv_device.py of
bench/catalogue; its settings_device.py measures what is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.catalogue.entry import Parameter, Parameters, Size
from warploom.catalogue.layout import WIDTHS, element_type, widest
from warploom.catalogue.staged import Stage, aligned_width, line_elements, shared_bytes
from warploom.errors import CheckError
from warploom.kernel.dtype import DType
from warploom.machine.record import Machine

AUTO = "auto"
STRATEGIES = ("registers", "shared", "direct")

# What each thread should have under way where structures are small.
THREAD_BYTES = 32
WORDS_IN_FLIGHT = 16
# A lane's share of packed structures: more takes more registers than it gains.
PACKED_BYTES = 256
# Structures so large that a line more is a small part of a block only if the block is large.
LARGE_BYTES = 64
# Of so few fields an exchange in registers is more selects and shuffles than words moved.
FEW_FIELDS = 3

# Taps from which on a thread has so many rows: what its neighbours send is used for all of them.
LINE_ROWS = ((21, 4), (13, 2), (0, 1))
# Taps with which loading is cheaper than exchanging; with more it takes too many registers.
LOADED_IMAGE = range(9, 15)
ARITHMETIC_IMAGE = 11  # taps from which on it is arithmetic that takes the time, not memory
# By taps: input rows of a step, and output rows of a strip.
IMAGE_ROWS = {3: (4, 16), 5: (2, 32), 7: (2, 72), 9: (1, 96)}
OTHER_IMAGE_ROWS = (1, 128)
BLOCKS_FOR_EACH = 4  # multiprocessor, to keep it busy
MOST_BLOCKS_FOR_EACH = 16


# -- structures ------------------------------------------------------------------------------------


def to_arrays(settings: Parameters, size: Size | None, machine: Machine) -> dict[str, Parameter]:
    """Arrays that begin in the middle of a line are stored through shared memory, which can turn
    them; others by an exchange in registers."""
    case = _Structures(settings, size, machine)
    strategy = case.asked
    if strategy == AUTO:
        strategy = "registers"
        if case.n is not None and case.fields > 1:
            if case.n % line_elements(case.kind):
                strategy = "shared" if case.staged(to_arrays=True) else "registers"
            elif case.is_one_access:
                strategy = "direct"
    return case.decided(strategy, to_arrays=True)


def to_structures(
    settings: Parameters, size: Size | None, machine: Machine
) -> dict[str, Parameter]:
    """Loads from the middle of a line cost little: an exchange in registers, unless structures are
    so small that a thread would have too little under way, or have few fields; parts of words are
    exchanged in registers always, shared memory would take them one by one."""
    case = _Structures(settings, size, machine)
    strategy = case.asked
    if strategy == AUTO:
        small = case.fields <= FEW_FIELDS or 2 * case.bytes <= machine.access_bytes
        small = small and case.kind.bytes >= machine.bank_bytes
        strategy = "registers"
        if case.n is not None and case.fields > 1:
            strategy = "direct" if case.is_one_access else "shared" if small else "registers"
    return case.decided(strategy, to_arrays=False)


def sums(settings: Parameters, size: Size | None, machine: Machine) -> dict[str, Parameter]:
    """Registers: every load fills whole lines, whatever the number of structures."""
    case = _Structures(settings, size, machine)
    if case.asked not in (AUTO, "registers"):
        return case.decided(case.asked, to_arrays=False)
    return case.filled(
        {
            "strategy": "registers",
            "block": 128,
            "tiles": case.per_thread,
            "width": widest(case.fields, case.kind),
        }
    )


@dataclass(frozen=True, slots=True)
class _Structures:
    settings: Parameters
    size: Size | None
    machine: Machine

    @property
    def asked(self) -> str:
        """The strategy that is asked for; some settings belong to one alone."""
        if self.given("pack") or self.settings.get("order", AUTO) != AUTO:
            if self.settings["strategy"] not in (AUTO, "registers"):
                raise CheckError(
                    f"'order' and 'pack' are for the exchange in registers, not for "
                    f"'{self.settings['strategy']}'",
                    advice="leave them out, or use strategy=registers",
                )
            return "registers"
        return str(self.settings["strategy"])

    def given(self, name: str) -> int:
        """A number, 0 if it is left open."""
        value = self.settings.get(name, 0)
        assert isinstance(value, int)
        return value

    @property
    def fields(self) -> int:
        return max(1, self.given("fields"))

    @property
    def kind(self) -> DType:
        return element_type(str(self.settings["dtype"]))

    @property
    def bytes(self) -> int:
        """Bytes of one structure."""
        return self.fields * self.kind.bytes

    @property
    def n(self) -> int | None:
        return None if self.size is None else self.size.get("n")

    @property
    def is_one_access(self) -> bool:
        """Whether a structure is what one access moves: then there is nothing to exchange."""
        return self.fields in WIDTHS and self.bytes == self.machine.access_bytes

    @property
    def per_thread(self) -> int:
        """Structures for each thread, a power of two of them."""
        most = max(1, THREAD_BYTES // self.bytes)
        return 1 << (most.bit_length() - 1)

    @property
    def pack(self) -> int:
        """Neighbouring structures move as one where their number allows it."""
        if self.given("pack") or self.n is None or self.settings["order"] not in (AUTO, "crc"):
            return self.given("pack") or 1
        most = min(
            4 if self.fields <= 8 else 2,
            self.machine.access_bytes // self.kind.bytes,
            PACKED_BYTES // self.bytes,
        )
        fitting = [each for each in WIDTHS if each <= most and self.n % each == 0]
        return fitting[0] if fitting else 1

    def decided(self, strategy: str, *, to_arrays: bool) -> dict[str, Parameter]:
        found: dict[str, Parameter] = {"strategy": strategy}
        match strategy:
            case "registers":
                share = self.pack * self.fields
                tiles = max(1, WORDS_IN_FLIGHT // share)
                width = widest(share, self.kind)
                found |= {"order": "crc", "block": 256, "tiles": tiles, "width": width}
                found |= {"pack": self.pack}
            case "shared":
                found |= self.staged(to_arrays=to_arrays) or {"block": 32, "tiles": 1, "width": 1}
            case "direct":
                width = widest(self.fields, self.kind)
                found |= {"block": 256, "tiles": 1, "width": width}
            case _:
                raise CheckError(
                    f"no strategy '{strategy[:40]}'",
                    advice=f"use {', '.join(STRATEGIES)} or {AUTO}",
                )
        return self.filled(found)

    def staged(self, *, to_arrays: bool) -> dict[str, Parameter]:
        """The largest block that shared memory has room for, of those worth having; nothing if
        there is none."""
        tiles = self.given("tiles") or self.per_thread
        width = aligned_width(self.kind) if to_arrays else 1
        large = tiles > 1 or self.bytes > LARGE_BYTES or not to_arrays
        for block in (256, 128, 64, 32)[0 if large else 1 :]:
            plan = Stage(self.fields, self.kind, block, tiles, width)
            if shared_bytes(plan, to_arrays=to_arrays) <= self.machine.shared_bytes:
                return {"block": block, "tiles": tiles, "width": width}
        return {}

    def filled(self, found: Parameters) -> dict[str, Parameter]:
        return _filled(self.settings, found)


# -- windows ---------------------------------------------------------------------------------------


def line(settings: Parameters, size: Size | None, machine: Machine) -> dict[str, Parameter]:
    del size
    taps = settings["taps"]
    assert isinstance(taps, int)
    rows = next((rows for least, rows in LINE_ROWS if taps >= least), 1)
    return _filled(settings, {"width": _vector(settings, machine), "rows": rows, "block": 128})


def image(settings: Parameters, size: Size | None, machine: Machine) -> dict[str, Parameter]:
    taps = settings["taps"]
    assert isinstance(taps, int)
    step, rows = IMAGE_ROWS.get(taps, OTHER_IMAGE_ROWS)
    found: dict[str, Parameter] = {
        "width": _vector(settings, machine),
        "step": step,
        "rows": rows,
        "block": 128,
        "exchange": "load" if taps in LOADED_IMAGE else "shuffle",
    }
    found = _filled(settings, found)
    if size is not None and machine.multiprocessors and not settings["rows"]:
        fitting = _balanced_rows if taps >= ARITHMETIC_IMAGE else _rows_of_small
        found["rows"] = fitting(found, size, machine.multiprocessors)
    return found


def _balanced_rows(found: Parameters, size: Size, multiprocessors: int) -> int:
    """Where arithmetic takes the time, the multiprocessor with most blocks decides: it computes
    their rows, and for each the rows above and below that a window needs besides."""
    taps, height = int(found["taps"]), size.get("height", 1)
    across = _blocks_across(found, size)

    def work(rows: int) -> int:
        blocks = -(-height // rows) * across
        each = max(BLOCKS_FOR_EACH, -(-blocks // multiprocessors))  # fewer do not keep it busy
        return each * (rows + taps - 1)

    strips = {
        max(1, each * multiprocessors // across)
        for each in range(BLOCKS_FOR_EACH, MOST_BLOCKS_FOR_EACH + 1)
    }
    return min(sorted(max(4, -(-height // count)) for count in strips), key=work)


def _rows_of_small(found: Parameters, size: Size, multiprocessors: int) -> int:
    """A small image is cut into more strips, so that every multiprocessor has some."""
    rows, across = int(found["rows"]), _blocks_across(found, size)
    down = -(-BLOCKS_FOR_EACH * multiprocessors // across)
    return max(min(rows, 4), min(rows, -(-size.get("height", 1) // down)))


def _blocks_across(found: Parameters, size: Size) -> int:
    return -(-size.get("columns", 1) // max(1, int(found["block"]) * int(found["width"])))


def _vector(settings: Parameters, machine: Machine) -> int:
    kind = element_type(str(settings["dtype"]))
    return next(each for each in WIDTHS if each * kind.bytes <= machine.access_bytes)


def _filled(settings: Parameters, found: Parameters) -> dict[str, Parameter]:
    """The settings, with what was found in the places that were left open."""
    return {
        name: found.get(name, value) if value in (0, AUTO) else value
        for name, value in settings.items()
    }
