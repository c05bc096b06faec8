"""Kernels that were not written for the judge, each beside a reference: does it know them?

    python -m bench.judge.texts [--only WORD] [--processes N] [--again]

All kernels of the catalogue and their variants, as a compiler's PTX; PTX of Triton and of CUB that
the tests keep; a matmul of Hopper, which is right, and with swizzles that do not fit. Needs NVRTC
or nvcc. Results go to bench/results/judge_texts.json kernel by kernel. The exit status is 1 if one
that is right was said to be different, or a wrong one was not.
"""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import as_completed
from time import process_time
from typing import Any

from bench.common.verdict import catalogue_kernels, cub_texts, hopper_matmul, triton_texts
from bench.harness import arguments, attempted, earlier, environment, save

from warploom.search.workers.farm import Farm
from warploom.verdict.answer import Judgement

SECONDS = 300.0  # by the clock, on a machine that has other things to do
SEED = 3
CATALOGUE = {catalogue_kernels.title(*each): each for each in catalogue_kernels.settings()}
CUB = {" ".join(each): each for each in cub_texts.NAMES}
TRITON = {path.stem.removeprefix("triton_"): path for path in triton_texts.texts()}
NAMES = [
    *(f"catalogue: {each}" for each in CATALOGUE), *(f"cub: {each}" for each in CUB),
    *(f"triton: {each}" for each in TRITON), *(f"hopper: {each}" for each in hopper_matmul.CASES),
]  # fmt: skip
RIGHT = "hopper: right"


def judged(name: str) -> Judgement:
    group, _, rest = name.partition(": ")
    match group:
        case "catalogue":
            return catalogue_kernels.judged(*CATALOGUE[rest], SEED, SECONDS)
        case "cub":
            return cub_texts.judged(*CUB[rest], SEED, SECONDS)
        case "triton":
            return triton_texts.judged(TRITON[rest], SEED, SECONDS)
    return hopper_matmul.judged(rest, SEED, SECONDS)


def row(name: str) -> dict[str, Any]:
    started = process_time()
    shape = judged(name).shapes[0]
    return {
        "verdict": shape.verdict, "error_log2": shape.error,
        "reasons": [str(each.message) for each in shape.reasons],
        "processor_seconds": round(process_time() - started, 2),
    }  # fmt: skip


def bad(name: str, each: dict[str, Any]) -> bool:
    wrong = name.startswith("hopper") and name != RIGHT
    return "failed" in each or (each["verdict"] == "different") != wrong


def main() -> int:
    parser = arguments(__doc__, "judge_texts.json", only="kernels with it", resumes=True)
    parser.add_argument("--processes", type=int)
    asked = parser.parse_args()
    record = earlier(asked.out, again=asked.again)
    rows = record.setdefault("kernels", {})
    names = [n for n in NAMES if asked.only in n and "failed" in rows.get(n, {"failed": ""})]
    with Farm(asked.processes) as farm:
        waiting = {farm.submit(row, name): name for name in names}
        for done in as_completed(waiting):
            found, failed = attempted(done.result)
            rows[waiting[done]] = {"failed": failed[:500]} if failed else found
            counts = Counter(
                f"{name.partition(':')[0]}: {each.get('verdict', 'failed')}"
                for name, each in rows.items()
            )
            reasons = Counter(e["reasons"][0][:80] for e in rows.values() if e.get("reasons"))
            record.update(
                environment(), counts=counts, reasons=reasons,
                bad=[name for name, each in rows.items() if bad(name, each)],
                longest=max(e.get("processor_seconds", 0) for e in rows.values()),
            )  # fmt: skip
            save(asked.out, record)
    print(f"{len(rows)} kernels: {dict(record['counts'])}; bad: {record['bad']}")
    return 1 if record["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
