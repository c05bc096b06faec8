"""What a machine is: one record of its limits, latencies, rates and of how it serves shared memory.

Each machine is a TOML file beside this module, or one of the user's own (`--machine FILE`). Every
limit that a check, an evaluator or a search asks for is a field of a `Machine`; a number like 32,
1024 or 48 KiB stands nowhere else. A record need not have every field: whoever asks for one that is
not there gets an error that names the file and the field. What the fields are is in `cuda.toml`.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from warploom.errors import CheckError, ParseError, Source, Span, UnsupportedError, one_of, spelled
from warploom.machine.rates import Pressure, Rates
from warploom.machine.serving import KINDS, Group, Known, RequestKind, Serving
from warploom.machine.times import Times

T = TypeVar("T")
Table = Mapping[str, Any]
_FOLDER = Path(__file__).parent
KNOWN = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
MOST_LANES = 64  # of a warp, as kernels have them


class MissingFieldError(UnsupportedError, AttributeError):
    """The record of a machine does not have a field that is needed."""


def _absent() -> Any:
    """The value of a field that a record lacks."""
    return MISSING


@dataclass(frozen=True, eq=False)
class Machine:
    """Sizes are in bytes, sides in the order x, y, z; `file` is where the record was read."""

    name: str
    file: str = field(default="", compare=False)
    lanes: int = field(default_factory=_absent)
    block_threads: int = field(default_factory=_absent)
    block_barriers: int = field(default_factory=_absent)
    cluster_blocks: int = field(default_factory=_absent)
    block_sides: tuple[int, int, int] = field(default_factory=_absent)
    grid_sides: tuple[int, int, int] = field(default_factory=_absent)
    shared_bytes: int = field(default_factory=_absent)
    shared_bytes_most: int = field(default_factory=_absent)
    constant_bytes: int = field(default_factory=_absent)
    thread_registers: int = field(default_factory=_absent)
    block_registers: int = field(default_factory=_absent)
    local_bytes: int = field(default_factory=_absent)
    access_bytes: int = field(default_factory=_absent)
    sector_bytes: int = field(default_factory=_absent)
    banks: int = field(default_factory=_absent)
    bank_bytes: int = field(default_factory=_absent)
    line_bytes: int = field(default_factory=_absent)
    multiprocessors: int = 0  # 0 where it is not known
    multiprocessor_threads: int = field(default_factory=_absent)
    copies: bool = False
    tensor_copies: bool = False
    warp_group_products: bool = False  # of matrices in shared memory, by 128 threads (wgmma)
    reverses_bits: bool = False
    rates: Rates = field(default_factory=_absent)
    serving: Serving = field(default_factory=_absent)
    times: Times = field(default_factory=_absent)

    def __post_init__(self) -> None:
        for name in [name for name, value in vars(self).items() if value is MISSING]:
            object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        """Called for what is not there alone."""
        if name not in Machine.__dataclass_fields__:
            raise AttributeError(name)
        have = [each for each in KNOWN if name in vars(machine_named(each))]
        is_table = name in TABLES
        raise MissingFieldError(
            f"the record of the machine '{self.name}' has no field '{name}' ({self.file})",
            advice=f"add {f'a table [{name}]' if is_table else f'{name} = …'} to a file for "
            f"{spelled('--machine', 'machine=')}; {', '.join(have)} have it, "
            f"and `warploom machines {have[0]}` shows it",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def but(self, **changes: Any) -> Machine:
        """This record with other values of some fields."""
        return Machine(**(vars(self) | changes))

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(each.name for each in fields(self) if each.name not in vars(self))


# Of rates: what time or room is divided by.
_DIVIDE = ("clock", "processors", "processor_blocks", "processor_threads", "processor_registers")
TABLES = ("rates", "serving", "times")
# What a table has from the record itself.
SHARED = ("name", "lanes", "processors", "processor_threads")
_WORDS = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}


def machine_named(name: str) -> Machine:
    """By its name, or from a user's file: a TOML of the record, or a JSON of rates alone, as
    bench/characterise_device.py writes it, with the limits of every CUDA device."""
    if name in KNOWN:
        return _built_in(name)
    path = Path(name)
    if path.suffix == ".json":
        return CUDA.but(file=name, rates=_rates_in(path))
    if path.suffix == ".toml":
        return _Reader(Source(name, _text(path))).machine()
    raise UnsupportedError(
        f"no machine called {name[:40]!r} is known", advice=f"{one_of(name, KNOWN)}; or a FILE.toml"
    )


def machine_of(table: Table, where: str) -> Machine:
    """The machine of a table such as a TOML file holds; errors say where it stands."""
    return _Reader(Source(where, "")).made(table, "")


@lru_cache(maxsize=len(KNOWN))
def _built_in(name: str) -> Machine:
    return _Reader(_source(name)).machine()


def _source(name: str) -> Source:
    path = _FOLDER / f"{name}.toml"
    return Source(path.name, path.read_text(encoding="utf-8"))


def _source_table(name: str) -> Table:
    table: Table = tomllib.loads(_source(name).text)
    return table


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ParseError(f"cannot read the machine in '{path}': {error}") from None


def _rates_in(path: Path) -> Rates:
    try:
        record = json.loads(_text(path))
    except ValueError as error:
        raise ParseError(f"cannot read the rates in '{path}': {error}") from None
    if not isinstance(record, dict):
        raise ParseError(f"'{path}' is no record of rates", advice="it is an object of its fields")
    known = {each.name for each in fields(Rates)}
    given = {key: value for key, value in record.items() if key in known}
    return _Reader(Source(str(path), "")).rates(given, "")


class _Reader:
    """A text in, checked part by part; a machine out."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def machine(self) -> Machine:
        made = self.made(self._parsed(), Path(self.source.name).stem)
        if made.name in KNOWN and self.source.text != _source(made.name).text:
            self.fail(f"a machine called '{made.name}' is built in", "name", "give it another name")
        return made

    def _parsed(self) -> Table:
        try:
            return tomllib.loads(self.source.text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
            line, column = (int(found[1]), int(found[2])) if found else (1, 1)
            message = re.sub(r"\s*\(at .*\)", "", str(error))
            raise ParseError(message[:200], Span(self.source, line, column)) from None

    def fail(self, message: str, key: str = "", advice: str = "") -> NoReturn:
        raise CheckError(f"{self.source.name}: {message}", self._span(key), advice)

    def _span(self, key: str) -> Span | None:
        """The first line that gives the last part of a key."""
        last = re.escape(key.rpartition(".")[2])
        given = re.compile(rf'\s*(?:"?{last}"?\s*=|\[(?:\w+\.)*{last}\])')
        lines = self.source.text.split("\n") if key else []
        numbers = (number for number, line in enumerate(lines, 1) if given.match(line))
        number = next(numbers, None)
        return None if number is None else Span(self.source, number, 1, len(lines[number - 1]))

    def made(self, given: Table, name: str) -> Machine:
        """`like` names a machine whose fields hold where the table has none of its own."""
        table = {"name": name, **self._inherited(given.get("like")), **given}
        table.pop("like", None)
        tables = {each: table.pop(each) for each in TABLES if each in table}
        plain = self.record(Machine, table | {"file": self.source.name}, "")
        for key, most in (("lanes", MOST_LANES), ("banks", 1 << 10), ("bank_bytes", 16)):
            value = vars(plain).get(key, 1)
            if not 1 <= value <= most or value & (value - 1):
                self.fail(f"{key} = {value}", key, f"it is a power of two up to {most}")
        return plain.but(**{each: self._table(plain, each, tables[each]) for each in tables})

    def _inherited(self, like: object) -> Table:
        if like is None:
            return {}
        if not isinstance(like, str) or like not in KNOWN:
            self.fail(f"like = {like!r:.40}", "like", one_of(str(like), KNOWN))
        other = _Reader(_source(like))
        table = other._parsed()
        return {**other._inherited(table.get("like")), **table}

    def _table(self, plain: Machine, name: str, table: Any) -> Rates | Serving | Times:
        """One of the tables, with what it has from the record itself."""
        if not isinstance(table, dict):
            self.fail(f"{name} is no table", name, f"write [{name}] above its fields")
        own: dict[str, Any] = {"name": plain.name}
        match name:
            case "rates":
                threads = vars(plain).get("multiprocessor_threads")
                same = {"processors": plain.multiprocessors or None, "processor_threads": threads}
                given = {key: value for key, value in same.items() if value is not None}
                return self.rates(own | given | table, name)
            case "times":
                return self.times({**own, **self._times_like(plain, table)}, name)
        return Serving(
            plain.name, plain.lanes, plain.banks, self._groups(plain, table),
            plain.bank_bytes, plain.tensor_copies, plain.reverses_bits,
        )  # fmt: skip

    def rates(self, given: Table, place: str) -> Rates:
        """Rates by which work can be divided: none is zero, and an addition has a cost."""
        at = f"{place}." if place else ""
        made = self.record(Rates, given, place)
        if "+" not in made.instructions:
            missing = f"the field '{at}instructions.+' is missing"
            self.fail(missing, "instructions", 'add "+" = { latency = … } to it')
        for name in _DIVIDE:
            if not getattr(made, name):
                self.fail(f"{at}{name} = 0", name, "it is above zero")
        for name in ("device", "processor", "thread"):
            for each in fields(Pressure):
                if not getattr(getattr(made, name), each.name):
                    missing = f"the field '{at}{name}.{each.name}' is missing, or zero"
                    self.fail(missing, name, f"add {each.name} = … to it, above zero")
        return made

    def times(self, given: Table, place: str) -> Times:
        """Coefficients by some of which work is divided."""
        made = self.record(Times, given, place)
        for name in ("clock", "memory", "l2", "asked", "together", "beneath", "beside", "hidden"):
            if not getattr(made, name):
                self.fail(f"{place}.{name} = 0", name, "it is above zero")
        return made

    def _times_like(self, plain: Machine, table: Table) -> Table:
        """`like` names a machine whose times hold for all that this one does not say itself."""
        if "like" not in table:
            return table
        like = table["like"]
        have = [each for each in KNOWN if "times" in _source_table(each)]
        if not isinstance(like, str) or like not in have:
            self.fail(f"times.like = {like!r:.40}", "like", one_of(str(like), have))
        own = {key: value for key, value in table.items() if key != "like"}
        name = f"{plain.name} and {like}" if own else like
        return {**_source_table(like)["times"], "name": name, **own}

    def _groups(self, plain: Machine, table: Table) -> dict[tuple[RequestKind, int], Group]:
        """`ld8 = [1, 2, 4]` is the basis for loads of eight bytes; `st4` also serves narrower
        stores."""
        usual = self._known(table.get("known", "assumed"), "serving.known")
        found: dict[tuple[RequestKind, int], Group] = {}
        for key, given in table.items():
            named = re.fullmatch(rf"({'|'.join(KINDS)})(4|8|16)", key)
            if named is not None:
                each = given if isinstance(given, dict) else {"basis": given}
                known = self._known(each.get("known", usual), f"serving.{key}")
                group = self._group(plain.lanes, each, f"serving.{key}", known)
                width = int(named[2])
                kind: RequestKind = next(kind for kind in KINDS if kind == named[1])
                found |= {(kind, w): group for w in ((1, 2, 4) if width == 4 else (width,))}
            elif key != "known":
                kinds = ", ".join(KINDS)
                self.fail(f"serving has no '{key:.40}'", key, f"{kinds}, with 4, 8 or 16: ld4")
        return found

    def _known(self, word: object, key: str) -> Known:
        words: tuple[Known, ...] = get_args(Known)
        found = next((each for each in words if each == word), None)
        if found is None:
            self.fail(f"{key}: known = {word!r:.40}", key, one_of(str(word), words))
        return found

    def _group(self, lanes: int, given: Table, key: str, known: Known) -> Group:
        basis, paired = given.get("basis"), given.get("paired", 0)
        numbers = [*basis, paired] if isinstance(basis, list) else [None]
        if not all(type(each) is int and 0 <= each < lanes for each in numbers):
            self.fail(f"{key} is no basis", key, f"a list of numbers from 1 to {lanes - 1}")
        span = {0}
        for vector in basis or ():
            span |= {each ^ vector for each in span}
        if len(span) != 1 << len(basis or ()) or (paired and paired in span):
            self.fail(f"{key}: one lane is a sum of others", key, "leave it out")
        return Group(tuple(basis or ()), paired, known)

    def record(self, kind: type[T], given: Table, place: str) -> T:
        """A dataclass from a table, each value as its type says."""
        hints, wanted = get_type_hints(kind), {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
        at = f"{place}." if place else ""
        made: dict[str, Any] = {}
        for key, value in given.items():
            if key not in wanted:
                self.fail(f"there is no field '{at}{key:.40}'", key, one_of(key, wanted))
            made[key] = self._value(hints[key], value, f"{at}{key}")
        for key, each in wanted.items():
            if key not in made and each.default is MISSING and each.default_factory is MISSING:
                self.fail(f"the field '{at}{key}' is missing", place, f"add {key} = … to it")
        return kind(**made)

    def _value(self, hint: Any, value: Any, key: str) -> Any:
        is_table, outer = isinstance(value, dict), get_origin(hint)
        if is_dataclass(hint) and isinstance(hint, type) and is_table:
            return self.record(hint, value, key)
        if outer is Mapping and is_table:
            one = get_args(hint)[1]
            return {name: self._value(one, each, f"{key}.{name}") for name, each in value.items()}
        if outer is tuple and isinstance(value, list) and len(value) == len(get_args(hint)):
            return tuple(self._value(int, each, key) for each in value)
        if hint in (bool, str) and type(value) is hint:
            return value
        if value is None and outer is UnionType:  # as JSON has it
            return None
        number = type(value) is int or (type(value) is float and hint is not int)
        if number and (hint in (int, float) or outer is UnionType) and 0 <= value < math.inf:
            return value
        return self.fail(f"{key} = {value!r:.40}", key, f"it is {_WORDS.get(hint, 'another form')}")


def nearest(target: str) -> str:
    """The machine nearest to an architecture: `sm_61` is a pascal; unknown ones are new."""
    digits = "".join(ch for ch in target if ch.isdigit())
    generation = int(digits) // 10 if digits else 99
    return {3: "kepler", 5: "maxwell", 6: "pascal", 7: "volta"}.get(generation, "h200")


def for_ptx(machine: Machine, *names: str) -> Machine:
    """The machine itself, if these fields are as PTX has them on every machine."""
    for name in names:
        have, wanted = getattr(machine, name), getattr(CUDA, name)
        if have != wanted:
            raise UnsupportedError(
                f"the machine '{machine.name}' has {name} = {have} ({machine.file})",
                advice=f"PTX is for machines with {name} = {wanted}",
            )
    return machine


def timed(machine: Machine) -> Machine:
    """The machine with times by which kernels are compared: its own, or those of the H200, the one
    to which times were fitted; so with rates. Its limits stay."""
    lacks = [name for name in ("rates", "times") if name not in vars(machine)]
    return machine.but(**{name: getattr(H200, name) for name in lacks}) if lacks else machine


CUDA = machine_named("cuda")
H200 = machine_named("h200")
NVIDIA = CUDA.serving
