"""Every spelling of PTX ISA 9.0 that ptxas assembles: which of them the emulator runs, which not.

    python -m bench.ptx.isa     on a machine with ptxas; no GPU

`bench/common/ptx/isa.py` says what might be spelled, and ptxas what exists and for which machine.
Rows with many words are not multiplied out: each word of them stands once with every type.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path

from bench.common.ptx.isa import HEADER, ISA, TARGETS
from bench.common.ptx.spelling import covering, instruction, parts, spelled
from bench.harness import arguments, save

from warploom import ptx
from warploom.ptx.known import form_of
from warploom.ptx.opcode import Opcode, OpcodeForm

MOST = 12000  # spellings of a row that are all tried
TOGETHER = 20000


def rows(form: OpcodeForm) -> Iterator[tuple[str, ...]]:
    count = prod(len(slot.words) + slot.optional for slot in form.slots)
    yield from (parts(row) for row in spelled(form)) if count <= MOST else covering(form)


def texts(record: Opcode) -> dict[str, None]:
    """Instructions that might exist, in order."""
    return {instruction(record, form, row): None for form in record.forms for row in rows(form)}


def existing(lines: list[str], target: str, folder: Path) -> set[str]:
    """Those that ptxas takes."""
    found: set[str] = set()
    first = 0
    while first < len(lines):
        some = lines[first : first + TOGETHER]
        good, read = taken(some, target, folder)
        found |= {some[row] for row in good}
        first += read
    return found


def taken(lines: list[str], target: str, folder: Path) -> tuple[list[int], int]:
    """Numbers of the lines that ptxas takes, and how many it read: some errors make it stop.

    An error at the end keeps it from compiling them.
    """
    head = HEADER.format(target=target)
    file = folder / "try.ptx"
    file.write_text(head + "\n".join(lines) + "\nadd.nothing %r0;\nL: ret;\n}\n")
    command = ["ptxas", f"-arch={target}", "-o", str(folder / "out"), str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    bad = {int(row) - head.count("\n") - 1 for row in re.findall(r"line (\d+);", said)}
    read = min(max(bad) + 1, len(lines))
    return [row for row in range(read) if row not in bad], read


def runs(lines: list[str]) -> dict[str, bool]:
    """Whether the emulator knows an instruction in all its parts."""
    text = HEADER.format(target="sm_90a") + "\n".join(lines) + "\nL: ret;\n}\n"
    found = list(ptx.parse(text).functions[0].instructions())
    return {line: form_of(each) is not None for line, each in zip(lines, found, strict=False)}


def main() -> None:
    asked = arguments(__doc__, "ptx_isa.json").parse_args()
    every = {name: list(texts(record)) for name, record in ISA.items()}
    lines = [line for each in every.values() for line in each]
    machines: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        left = lines
        for target in TARGETS:
            machines |= dict.fromkeys(existing(left, target, Path(folder)), target)
            left = [line for line in left if line not in machines]
    known = runs([line for line in lines if line in machines])
    record: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name, each in every.items():
        entry: dict[str, dict[str, list[str]]] = {"run": {}, "refused": {}}
        for line in each:
            if line in machines:
                spelling = line.split(" ")[0].rstrip(";")
                group = entry["run" if known[line] else "refused"].setdefault(machines[line], [])
                if spelling not in group:
                    group.append(spelling)
        record[name] = entry
    counts = Counter(("run" if known[line] else "refused", machines[line]) for line in known)
    shown = [f"{n} {what} ({target})" for (what, target), n in sorted(counts.items())]
    print(f"{len(lines)} spellings tried, {len(known)} exist: " + ", ".join(shown))
    whole = [n for n, e in record.items() if e["refused"] and not e["run"]]
    print("opcodes refused as a whole: " + " ".join(whole))
    never = [n for n, e in record.items() if not e["refused"] and not e["run"]]
    print("opcodes of which nothing that was tried exists: " + " ".join(never))
    joined = {
        name: {what: {t: " ".join(each) for t, each in by.items()} for what, by in entry.items()}
        for name, entry in record.items()
    }
    save(asked.out, joined)


if __name__ == "__main__":
    main()
