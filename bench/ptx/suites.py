"""Kernels of a suite that you have: what is racy by its name is found, nothing else is accused.

    python -m bench.ptx.suites FOLDER PLAN.json [--only WORD] [--out RECORD]

FOLDER holds CUDA sources, and nothing is fetched. PLAN says how they are launched: a list of
objects with `files` (a pattern within the folder), `racy` (a pattern of names of files that have a
fault), and a launch as docs/ptx.md records one: `kernel`, `grid`, `block`, `cluster`, `shared`,
`args`, `arrays`. A size may be the name of a number of the file. Also `arch`, `include` (folders of
headers), `options` of nvcc, `volatile` ("weak", as C++ has it, or "relaxed", as PTX), and
`otherwise`: by a pattern of names, what we find of files of which the suite says something else,
with `why`. In bench/common/ptx, scor.json is the plan of the micro-benchmarks of ScoR, and
indigo2.json that of some codes of Indigo2, all of which are meant to be right. The exit status is 1
if any other verdict is not what the name says.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench.harness import arguments, environment, save

from warploom.cli.launch_file import read_launch
from warploom.errors import KernelError, LimitError, WarploomError
from warploom.ptx.findings import race_findings
from warploom.ptx.launch import Kernel, load
from warploom.without_gpu.cuda_kernel import compiled_text

SECONDS = 60.0
SCHEDULES = 8  # by chance, if the usual order finds nothing
OF_A_LAUNCH = ("kernel", "grid", "block", "cluster", "shared", "args", "arrays")


def planned(folder: Path, plan: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The files of a plan, each with what it says of them."""
    for entry in json.loads(plan.read_text()):
        found = sorted(folder.glob(entry["files"]))
        if not found:
            raise SystemExit(f"no file of {folder} is called {entry['files']}")
        for file in found:
            yield file, entry


def size(given: Any, text: str) -> Any:
    """A number, or what a #define or a constant of the file says."""
    if isinstance(given, list):
        return [size(each, text) for each in given]
    if not isinstance(given, str):
        return given
    found = re.search(
        rf"(?:#\s*define\s+|\bconst\s+int\s+){re.escape(given)}(?:\s*=)?\s*\(?(\d+)\b", text
    )
    if found is None:
        raise SystemExit(f"there is no {given} with a number")
    return int(found[1])


def verdict(folder: Path, file: Path, entry: dict[str, Any]) -> tuple[str, str]:
    """What a launch of the file finds, in a word, and what is said of it."""
    text = file.read_text(errors="replace")
    launch = {name: entry[name] for name in OF_A_LAUNCH if name in entry}
    launch |= {name: size(launch[name], text) for name in ("grid", "block") if name in launch}
    with tempfile.TemporaryDirectory() as place:
        recorded = Path(place) / "launch.json"
        recorded.write_text(json.dumps(launch))
        read = read_launch(recorded)
    options = [*(f"-I{folder / each}" for each in entry.get("include", ()))]
    options += entry.get("options", [])
    ptx = compiled_text(text, str(file), entry.get("arch", "sm_90a"), options, "nvcc")
    before = [each.copy() for each in read.arrays.values()]
    for schedule in (None, *range(SCHEDULES)):
        for array, start in zip(read.arrays.values(), before, strict=True):
            array[...] = start
        loaded = load(ptx, f"{file.name}, as PTX", {str(file): text})  # its variables are new
        found = judged(loaded.kernel(read.kernel), read, entry, schedule)
        if found[0] != "nothing":
            break
    return found


def judged(kernel: Kernel, launch: Any, entry: dict[str, Any], seed: int | None) -> tuple[str, str]:
    """What one order of the threads finds: in the emulator's own, or by chance from a seed."""
    try:
        report = kernel.launch(
            launch.grid, launch.block, launch.args, shared_bytes=launch.shared, races="all",
            volatile=entry.get("volatile", "relaxed"), cluster=launch.cluster, seconds=SECONDS,
            schedule=seed,
        )  # fmt: skip
    except KernelError as error:
        return "error", str(error)
    except LimitError as error:
        return "time limit", str(error)
    except WarploomError as error:
        return "refused", str(error)
    said = [str(each.error) for each in race_findings(kernel.owner, report.races)]
    return ("race", "\n".join(said)) if said else ("nothing", "")


def looked_at(folder: Path, file: Path, entry: dict[str, Any]) -> dict[str, Any]:
    started = time.process_time()
    found, said = verdict(folder, file, entry)
    racy = fnmatch(file.name, entry.get("racy", ""))
    agrees = found in ("race", "error") if racy else found == "nothing"
    other = next(
        (to for by, to in entry.get("otherwise", {}).items() if fnmatch(file.name, by)), ""
    )
    row = {"file": file.name, "racy": racy, "found": found, "agrees": agrees, "said": said,
           "seconds": round(time.process_time() - started, 2)}  # fmt: skip
    return row | ({"why": entry["why"]} if not agrees and found == other else {})


def main() -> int:
    parser = arguments(__doc__, "suites.json", only="files with this word in their names")
    parser.add_argument("folder", type=Path)
    parser.add_argument("plan", type=Path)
    asked = parser.parse_args()
    rows = []
    for file, entry in planned(asked.folder, asked.plan):
        if asked.only not in file.name:
            continue
        row = looked_at(asked.folder, file, entry)
        rows.append({name: value for name, value in row.items() if name != "said"})
        wrong = not row["agrees"] and "why" not in row
        print(f"{'WRONG ' if wrong else ''}{file.name}: {row['found']}", row.get("why", ""))
        if wrong:
            print("    " + str(row["said"]).replace("\n", "\n    "))
    failed = [row["file"] for row in rows if not row["agrees"] and "why" not in row]
    other = sum("why" in row for row in rows)
    racy = sum(row["racy"] for row in rows)
    print(
        f"{len(rows)} kernels, {racy} of them racy: {sum(row['agrees'] for row in rows)} verdicts "
        f"are the suite's, {other} are not, as was planned, {len(failed)} are wrong"
    )
    save(asked.out, {
        "plan": asked.plan.name, "kernels": len(rows), "racy": racy, "otherwise": other,
        "wrong": failed, "rows": rows,
        **environment("", "FOLDER", f"bench/common/ptx/{asked.plan.name}"),
    })  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
