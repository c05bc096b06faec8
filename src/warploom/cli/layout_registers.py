"""`warploom layout show` of a register layout: who holds what, and the same in others' words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from warploom.cli.commands.layout import ShowLayout
from warploom.cli.declare import STDOUT, Context
from warploom.cli.guard import Status, check_meant
from warploom.cli.output import kept_free, write, write_records
from warploom.cli.say import echo
from warploom.errors import CheckError
from warploom.layout.conversion.fragment import Fragment
from warploom.layout.formats.fragment_out import bases_of, threads_and_values, write_fragment
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.formats.given import sizes

_OF_MEMORY = ("pattern", "access", "step", "measured", "picture", "element", "name")


def registers_shown(asked: ShowLayout, context: Context) -> Status:
    check_meant(context, _OF_MEMORY, "of a layout of registers")
    with kept_free(asked.json_file, STDOUT if asked.emit else None):
        found = read_fragment(asked.layout, None if asked.shape is None else sizes(asked.shape))
        for line in _lines(found):
            echo(line)
        text = "" if asked.emit is None else write_fragment(found, asked.emit)
    write_records(asked.json_file, [_record(found)])
    if asked.emit is not None:
        write(STDOUT, text + "\n")
    return Status.FOUND


def _lines(found: Fragment) -> list[str]:
    shape = "x".join(map(str, found.shape))
    record = _record(found)
    held = {1: "one thread"}.get(record["copies"], f"up to {record['copies']} registers")
    part = f", of one of {1 << len(found.blocks)} blocks" if found.blocks else ""
    lines = [
        found.name.partition("\n")[0][:200],
        f"  {shape} elements{part} in {found.registers} registers of {found.warps} x {found.lanes} "
        f"lanes; an element is held by {held}",
    ]
    try:
        linear = bases_of(found)
        lines += [
            f"  {name:9}{' '.join(str(list(base)) for base in bases)}"
            for name, bases in linear.bases.items()
            if bases
        ]
    except CheckError:
        lines.append("  no linear layout")
    with suppress(CheckError):
        lines.append(f"  as threads and values: {threads_and_values(found)}")
    return lines


def _record(found: Fragment) -> dict[str, Any]:
    held = found.elements[found.elements >= 0]
    copies = int(np.bincount(held).max()) if held.size else 0
    return {
        "layout": found.name,
        "size": found.size,
        "injective": copies <= 1,
        "warps": found.warps,
        "lanes": found.lanes,
        "registers": found.registers,
        "copies": copies,
    }
