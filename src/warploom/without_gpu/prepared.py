"""What every kernel becomes before it runs: PTX, a shape, and the arguments of the PTX."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from warploom.errors import DeviceError
from warploom.ptx.launch import Kernel

Shape = int | Sequence[int]
_FILE = re.compile(r'^\s*\.file\s+\d+\s+"([^"\n]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prepared:
    kernel: Kernel
    grid: Shape
    block: Shape
    args: list[Any]
    shared_bytes: int = 0
    cluster: Shape | None = None  # blocks of one, if the package says it


def bracket(launch: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """What stands in the brackets of `kernel[grid, block](…)`."""
    given = launch if isinstance(launch, tuple) else (launch,)
    if not 2 <= len(given) <= len(names):
        raise DeviceError(
            f"a launch needs [{names[0]}, {names[1]}]", advice=f"written [{', '.join(names)}]"
        )
    return given


def byte_count(value: Any) -> int:
    """Bytes of dynamic shared memory."""
    if not isinstance(value, int) or value < 0:
        raise DeviceError(f"{value!r} is no number of bytes of shared memory")
    return value


def no_names(named: dict[str, Any]) -> None:
    if named:
        raise DeviceError(f"'{next(iter(named))}' is no argument of this kernel")


def python_files(function: Any) -> set[str]:
    """The file of a kernel in Python, and those of what was imported, which it may call: lines of
    these may be shown."""
    inner = getattr(function, "fn", function)  # Triton keeps it there
    code = getattr(inner, "__code__", None)
    # Modules may be lazy, and do much when they are asked for an attribute.
    held = (getattr(module, "__dict__", {}) for module in list(sys.modules.values()))
    files = [*(each.get("__file__") for each in held), getattr(code, "co_filename", None)]
    return {each for each in files if isinstance(each, str) and each.endswith(".py")}


def moved_texts(ptx: str, function: Any) -> dict[str, str]:
    """The text of a kernel's file, by the name it had where the compiler met it first: a cache may
    give PTX that was made when the same function lay in another folder."""
    code = getattr(getattr(function, "fn", function), "__code__", None)
    own = getattr(code, "co_filename", "")
    known = python_files(function)
    names = {each for each in _FILE.findall(ptx) if os.path.basename(each) == os.path.basename(own)}
    return {each: "".join(linecache.getlines(own)) for each in names - known}
