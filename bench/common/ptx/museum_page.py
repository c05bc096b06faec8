"""docs/museum.md, from the exhibits and what Warploom says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.common.ptx.museum import FOLDER, Exhibit, exhibits

PAGE = Path("docs/museum.md")
KINDS = {
    "proxy fence": "Fences between the ways to memory",
    "wait": "Waits for copies and products",
    "cluster": "Clusters",
    "scope": "Scopes",
    "bytes": "Bytes that an mbarrier expects",
    "phase": "Phases of mbarriers",
    "deadlock": "Deadlocks",
    "compiler": "Barriers that a compiler left out",
    "race": "Races within a block",
    "launch": "Launches that overlap",
}
HEAD = """# A museum of faults

<!-- Written by `python -m bench.ptx.museum`; do not edit. -->

These are faults of real kernels, from public issue threads of the last two years. Each is rebuilt in
our own words as a small kernel, before and after its mend. Nothing is copied from the threads.

Warploom names {named} of {faults} before the mend: the cause and the line, without a GPU. It accuses
{accused} of the mended kernels, and proves them for all schedules.

The kernels are in `{folder}`. To look at one, say
`python -m bench.ptx.museum --only flashkda_24`.

Lines of a kernel that end in `//-` are there before the mend alone, lines that end in `//+` after it
alone. Below they stand as a difference, beside the lines that the finding names. `model ptx` marks
faults that are found by the manual's rules alone; the default model `practice` lets them pass.
"""
TAIL = """## What is not here

- pytorch/ao #4278 has the fence behind the barrier, in the thread that stores. By the PTX manual that
  is a fence on the way from the writes to the store. Warploom does not report it.
- The model `practice` takes it for harmless that a copy overtakes plain loads before it. The threads of
  DeepEP #642 and TransformerEngine #2695 tell of kernels that needed this fence.
- Triton #9498 and FlashInfer #4742 are what reviewers found in these threads, not failures that
  somebody saw.
- Faults of tensor memory (`tcgen05`) are here only where `wgmma` has the same.
- Faults of the host, of drivers and of other vendors' GPUs are left out.
"""
_SIGN = re.compile(r" *//[-+]?!?$")


def page(record: Mapping[str, Any]) -> str:
    rows = record["rows"]
    none = "none" if not record["accused"] else record["accused"]
    head = HEAD.format(
        named=record["named"], faults=record["faults"], accused=none, folder=FOLDER.as_posix()
    )
    return "\n".join([head, *_sections(rows), TAIL])


def _sections(rows: Mapping[str, Any]) -> Iterator[str]:
    shown = exhibits()
    unknown = {each.kind for each in shown} - set(KINDS)
    assert not unknown, unknown
    for kind, title in KINDS.items():
        here = [each for each in shown if each.kind == kind]
        if here:
            yield f"## {title}\n"
        for each in here:
            yield from _exhibit(each, rows[each.name])


def _exhibit(exhibit: Exhibit, row: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {exhibit.title}\n"
    yield f"{exhibit.story} [The thread]({exhibit.link}).\n"
    yield f"*Mend:* {exhibit.mend}\n"
    model = " (`model ptx`)" if exhibit.model == "ptx" else ""
    yield f"*Before* (`{exhibit.name}.cu`){model}:\n"
    yield f"```text\n{row['before']['says']}\n```\n"
    yield f"```diff\n{_difference(exhibit)}\n```\n"
    yield f"*After:* proved for {_REACH.get(row['after'], row['after'])}.\n"


_REACH = {"all data": "all schedules and all data", "this data": "all schedules, for this data"}


def _difference(exhibit: Exhibit) -> str:
    """The lines that change or are named, with their numbers."""
    found = []
    for number, line in enumerate(exhibit.lines, 1):
        sign = re.search(r"//([-+]?!?)$", line)
        if sign:
            mark = sign[1][:1] if sign[1][:1] in "-+" else " "
            found.append(f"{mark} {number:3} {_SIGN.sub('', line)}")
    return "\n".join(found)
