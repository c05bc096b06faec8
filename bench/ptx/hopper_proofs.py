"""Hopper kernels as people write them: is each proved for every schedule, and every mutant found?

    python -m bench.ptx.hopper_proofs [--only WORD] [--again]

The kernels and their mutants are those of bench/common/ptx/hopper. Each kernel has to be proved by
the manual's rules and by practice, within 60 seconds of one core. Each mutant has to be found with
its line, a deadlock within 5 seconds; one that is marked as equivalent has to be proved. Results go
to bench/results/hopper_proofs.json as they are made: a run that was stopped goes on. The exit
status is 1 if a kernel is accused or a mutant missed.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from hashlib import sha256
from typing import Any

from bench.common.ptx.hopper_cases import (
    MOST_SECONDS,
    WORDS,
    Mutant,
    all_mutants,
    judge,
    shortcoming,
)
from bench.common.ptx.hopper_launches import CASES
from bench.harness import arguments, earlier, environment, measured, save

Row = dict[str, Any]


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def kept(rows: dict[str, Row], texts: dict[str, str]) -> dict[str, Row]:
    """Rows of an earlier run whose texts are the same; what was wrong in it is made again."""
    same = {name: row for name, row in rows.items() if row.get("text") == texts.get(name)}
    return {
        name: {**row, "failed": row["wrong"]} if row["wrong"] else row for name, row in same.items()
    }  # fmt: skip


def proved(name: str) -> Row:
    """An unmutated kernel, by the models that it is written for: Triton leaves out fences."""
    case = CASES[name]
    outcomes = [judge(case, model=model) for model in case.models]
    strict, slowest = outcomes[0], max(each.seconds for each in outcomes)
    verdicts = {each.verdict for each in outcomes}
    wrong = "" if verdicts == {"proved"} else "; ".join(sorted({each.said for each in outcomes}))
    if slowest > MOST_SECONDS:
        wrong = f"{slowest:.0f} s"
    return {
        "verdict": strict.verdict, "seconds": round(slowest, 2), "agents": strict.agents,
        "assumed": list(strict.assumed), "wrong": wrong[:WORDS],
        "text": digest(case.text()),
    }  # fmt: skip


def examined(mutants: dict[str, Mutant], name: str) -> Row:
    mutant = mutants[name]
    case = CASES[mutant.case]
    text = mutant.text(case.text())
    outcome = judge(case, text)
    row: Row = {
        "kind": mutant.kind, "verdict": outcome.verdict, "said": outcome.said[:WORDS],
        "lines": sorted(outcome.lines), "seconds": round(outcome.seconds, 2),
        "wrong": shortcoming(mutant, text, outcome), "text": digest(text),
    }  # fmt: skip
    if not outcome.breaks:
        row["manual_only"] = True
    if mutant.equivalent:
        row["equivalent"] = mutant.equivalent
    return row


def summary(kernels: dict[str, Row], mutants: dict[str, Row]) -> Row:
    rows = [*kernels.values(), *mutants.values()]
    found = [each for each in mutants.values() if "equivalent" not in each]
    late = [each["seconds"] for each in found if each.get("verdict") == "deadlock"]
    return {
        "kernels": len(kernels), "mutants": len(mutants),
        "equivalent": len(mutants) - len(found),
        "verdicts": dict(sorted(Counter(each.get("verdict", "") for each in found).items())),
        "wrong": sum(bool(each.get("wrong") or each.get("failed")) for each in rows),
        "most_seconds": max((each.get("seconds", 0) for each in kernels.values()), default=0),
        "most_seconds_of_a_deadlock": max(late, default=0),
    }  # fmt: skip


def main() -> int:
    parser = arguments(
        __doc__, "hopper_proofs.json", only="kernels and mutants with this word", resumes=True
    )
    asked = parser.parse_args()
    record = earlier(asked.out, again=asked.again)
    table = all_mutants()
    texts = {name: digest(case.text()) for name, case in CASES.items()}
    kernels = kept(record.get("proofs", {}), texts)
    texts = {name: digest(each.text(CASES[each.case].text())) for name, each in table.items()}
    mutants = kept(record.get("found", {}), texts)

    def keep(name: str) -> None:
        row = (kernels if name in kernels else mutants)[name]
        wrong = row.get("failed") or row.get("wrong")
        if wrong:
            print(f"{name}: {wrong}", flush=True)
        summed = summary(kernels, mutants)
        save(asked.out, {**environment(), **summed, "proofs": kernels, "found": mutants})

    measured(kernels, CASES, proved, keep, only=asked.only)
    measured(mutants, table, partial(examined, table), keep, only=asked.only)
    summed = summary(kernels, mutants)
    print(", ".join(f"{key}: {value}" for key, value in summed.items()))
    return 1 if summed["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
