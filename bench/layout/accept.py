"""The acceptance of layouts that needs no GPU: each line with its figure, in one record.

    python -m bench.layout.accept [LINE…] [--out FILE] [--processes N]

Lines that are there already are kept unless they are named; each is written as it is done.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from bench.common.layout import attributes, complements, texts
from bench.common.layout import published as table
from bench.common.layout.compared import compare_all, compare_linear, compare_vectors
from bench.common.layout.generated import cheap_best, problem_text
from bench.common.layout.mutants import mutated
from bench.common.layout.spellings import round_trips
from bench.common.trust import layout as certificates
from bench.harness import arguments, earlier, environment, save

from warploom.errors import CheckError
from warploom.layout.conversion.convert import convert
from warploom.layout.formats.cute import SPELLINGS
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.patterns.access import Access, Problem
from warploom.layout.patterns.named import FIFTY, pattern
from warploom.layout.patterns.pattern import parse_pattern
from warploom.layout.solver.choose import best_way
from warploom.layout.solver.front import front_of
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task
from warploom.search.budget import Budget
from warploom.search.outcome import Found, Impossible
from warploom.search.workers.farm import Farm
from warploom.trust.layout import check_layout

GENERATED = 120
PROCESSES: int | None = None  # for lines of thousands of problems


def fifty() -> dict[str, Any]:
    """The published table: sums of each class, bounds, all optima proved."""
    lower, unpublished, seconds = [], [], []
    for name in FIFTY:
        published = dict(
            zip(
                ("none", "pad", "swizzle", "mixed", "bound"),
                table.PUBLISHED[name],
                strict=False,
            )
        )
        started = time.process_time()
        task = Task(pattern(name))
        front = front_of(task, "mixed")
        seconds.append(time.process_time() - started)
        assert isinstance(front.asked.outcome, Found), name
        bound = [float(x) for x in task.bound.per_request]
        assert np.allclose(bound, table.numbers(published["bound"])), name
        for solved in (*front.others, front.asked):
            wanted = published[solved.klass]
            if wanted == "-" and solved.best is not None:
                assert solved.proved, (name, solved.klass)
                unpublished.append(f"{name} {solved.klass}: {float(solved.best.cost):g}")
            if wanted == "-" or solved.best is None:
                continue
            ours, theirs = float(solved.best.cost), table.total(task, wanted)
            assert solved.proved, (name, solved.klass)
            assert ours <= theirs * (1 + 1e-3), (name, solved.klass)  # they have four digits
            if ours < theirs * (1 - 1e-3):
                assert (name, solved.klass) in table.FEWER_IN_ALL, (name, solved.klass)
                lower.append(f"{name} {solved.klass}: {ours:g} < {theirs:g} of the whole tile")
    return {
        "problems": len(FIFTY),
        "optima_proved": len(FIFTY),
        "lower_than_published": lower,
        "where_none_is_published": unpublished,
        "cpu_seconds": round(sum(seconds), 2),
        "slowest_cpu_seconds": round(max(seconds), 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def named() -> dict[str, Any]:
    """Problems that the issue names, by what they must come to."""
    found: dict[str, Any] = {}
    for name, waste in (
        ("blocks:32x32", True), ("rcd:32x32", True), ("ldmatrix:64x48:f16", False),
        ("ldmatrix:64x80:f16", False), ("ldmatrix:64x96:f16", False), ("stencil:34x34:f32", True),
    ):  # fmt: skip
        task = Task(pattern(name), waste=waste)
        solved = solve(task, "mixed")
        assert isinstance(solved.outcome, Found)
        found[name] = {
            klass: isinstance(solve(task, klass).outcome, Impossible)
            for klass in ("pad", "swizzle")
        }
        found[name] = {"wavefronts": str(solved.outcome.answer.score), "impossible": found[name]}
    offered = front_of(Task(pattern("blocks:32x32")), "mixed").candidates
    found["blocks:32x32"]["bit_reversal_offered"] = any(c.klass == "reversal" for c in offered)
    return found


def impossible() -> dict[str, Any]:
    """Six patterns of which one must wait, for linear layouts and for all."""
    task = Task(pattern("but-two:4x32"))
    found = {}
    for klass in ("xor", "any"):
        solved = solve(task, klass)
        assert isinstance(solved.outcome, Impossible)
        assert solved.best is not None
        found[klass] = {"best": sorted(map(int, solved.best.score.per_request)), "how": solved.how}
    return found


def refused() -> dict[str, Any]:
    """Certificates with one thing changed, the digest made to fit."""
    record = certificates.written(Task(pattern("but-two:4x32")), "xor")
    seen, held = Counter[str](), []
    for name, changed in certificates.changes(record).items():
        try:
            found = check_layout(certificates.signed(changed))
        except CheckError:
            seen["refused"] += 1
            continue
        held.append(f"{name}: {'leaves it open: ' + found.open if found.open else 'still a proof'}")
    return dict(seen) | {"held": held}


def counts() -> dict[str, Any]:
    """Triples of subspaces without a common complement, of F2^2 to F2^5."""
    found = {}
    for (bits, dimension), wanted in complements.WITHOUT.items():
        assert complements.count_without(bits, dimension) == wanted
        found[f"F2^{bits}, dimension {dimension}"] = wanted
    return found


def shared_out(
    compare: Callable[..., Counter[str]], count: int, piece: int, *more: Any
) -> dict[str, int]:
    """What a comparison has seen in all, its numbers shared out among processes."""
    with Farm(PROCESSES) as farm:
        parts = [
            farm.submit(compare, range(first, min(first + piece, count)), *more)
            for first in range(0, count, piece)
        ]
        seen = sum((part.result() for part in parts), Counter[str]())
    return dict(sorted(seen.items()))


def random() -> dict[str, Any]:
    """Random problems against all linear layouts, one by one."""
    words = shared_out(compare_linear, 2000, 20, 6)
    vectors = shared_out(compare_vectors, 600, 60)
    return {"words": words, "vectors_and_other_sizes": vectors, "different": 0}


def all_layouts() -> dict[str, Any]:
    """The same against every layout whatever, by a model of our own for CP-SAT (extra cp)."""
    return {"problems": 2000, "different": 0} | shared_out(compare_all, 2000, 20, 6, 10.0)


def mutants() -> dict[str, Any]:
    return mutated(1000)


def times() -> dict[str, Any]:
    """Random linear problems of up to 4096 elements; the nine-point stencil under a budget."""
    draw, seconds = np.random.default_rng(11), []
    for _ in range(200):
        bits = int(draw.integers(6, 13))
        accesses = []
        for number in range(int(draw.integers(2, 5))):
            lanes = np.zeros(32, np.int64)
            for bit in range(5):
                lanes ^= np.where(np.arange(32) >> bit & 1, draw.integers(0, 1 << bits), 0)
            accesses.append(Access(f"a{number}", lanes.reshape(1, 32, 1), "ld"))
        started = time.process_time()
        solve(Task(Problem("random", (1 << bits,), 4, tuple(accesses))), "xor")
        seconds.append(time.process_time() - started)
    wall = time.monotonic()
    task = Task(pattern("stencil:34x34:f32:points=9"), waste=False)
    solved = solve(task, "mixed", Budget(seconds=5))
    return {
        "random_linear": 200,
        "slowest_cpu_seconds": round(max(seconds), 2),
        "stencil9_wall_seconds": round(time.monotonic() - wall, 2),
        "stencil9": type(solved.outcome).__name__,
        "stencil9_best": None if solved.best is None else str(solved.best.score),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def generated() -> dict[str, Any]:
    """Problems as users write them, under a budget: never worse than rows, padding and swizzles,
    counted one by one, and never over the budget by more than a second."""
    seen, over = Counter[str](), 0.0
    for number in range(GENERATED):
        text, budget, started = problem_text(number), Budget(seconds=2), time.process_time()
        with budget.governing():
            problem = parse_pattern(text)
            front = best_way(problem, (), budget=budget).best.front
        over = max(over, time.process_time() - started - 2)
        cheap = cheap_best(problem)
        seen[type(front.asked.outcome).__name__.lower()] += 1
        if cheap is None:
            continue
        assert front.best is not None, number
        if {"pad", "swizzle"} & {*front.left_out}:
            seen["no time for the cheap ones"] += 1
            continue
        assert float(front.best.cost) <= cheap + 1e-9, number
        seen["better than the cheap ones"] += float(front.best.cost) < cheap - 1e-9
    assert over < 1, over
    return dict(seen) | {"problems": GENERATED, "most_cpu_seconds_over_2": round(over, 2)}


def spellings() -> dict[str, Any]:
    """CuTe's five spellings and ours, written and read again."""
    round_trips(10_000)
    return {"layouts": 10_000, "spellings": len(SPELLINGS), "different": 0}


def triton_attributes() -> dict[str, Any]:
    """Layouts of Triton's IR as text and as bases, written and read again; damaged ones refused."""
    seen = attributes.round_trips(10_000)
    refused = attributes.damaged(10_000)
    return {"layouts": seen, "different": 0, "damaged": 10_000, "refused": refused}


def other_texts() -> dict[str, Any]:
    """Texts of all other formats, written and read again; damaged ones refused at a place."""
    with Farm(PROCESSES) as farm:
        parts = {name: farm.submit(texts.judged, name, 10_000, 2_000) for name in texts.FORMATS}
        return {name: part.result() for name, part in parts.items()}


def conversions() -> dict[str, Any]:
    """The fewest rounds of shuffles, each proved."""
    found = {}
    for count in (2, 4, 8, 16, 32, 3, 5, 6, 7, 12):
        own, striped = (
            read_fragment(t) for t in (f"(32,{count}):({count},1)", f"(32,{count}):(1,32)")
        )
        plans = [
            convert(a, b, 4, shared=False).shuffles for a, b in ((own, striped), (striped, own))
        ]
        assert all(plan is not None and plan.proved for plan in plans)
        found[f"{count} elements of a lane"] = [plan.rounds for plan in plans if plan is not None]
    one, two = (read_fragment(text, (16, 32)) for text in ("mma_c()", "mma_a(4)"))
    plan = convert(one, two, 1, shared=False).shuffles
    assert plan is not None
    assert plan.proved
    found["i8 mma C to mma A, packed words"] = [plan.rounds]
    return found


HEAD = 'shape = [64, 8]\nelement = "f32"\n'
ACCESS = '[[access]]\nname = "a"\nkind = "st"\nsteps = 2\nindex = "step * 32 + lane"\n'
FILES = {  # each a pattern with one thing wrong
    "empty tensor": HEAD.replace("64, 8", "") + ACCESS,
    "size 0": HEAD.replace("64", "0") + ACCESS,
    "negative size": HEAD.replace("64", "-4") + ACCESS,
    "element of 3 bytes": HEAD.replace('element = "f32"', "bytes = 3") + ACCESS,
    "index out of range": HEAD + ACCESS.replace("step * 32", "step * 500"),
    "vector of three": HEAD + ACCESS + "width = 3\n",
    "vector over the end": HEAD
    + ACCESS.replace("step * 32 + lane", "509 + lane * 0")
    + "width = 4\n",
    "lanes of no group": HEAD + ACCESS + "lanes = 24\n",
    "two lanes, one element": HEAD + ACCESS.replace("+ lane", "+ lane // 2"),
    "unknown key": HEAD + ACCESS + "colour = 3\n",
    "10^9 elements": HEAD.replace("64, 8", "100000, 10000") + ACCESS,
    "weight NaN": HEAD + ACCESS + "weight = nan\n",
    "index that is Python": HEAD + ACCESS.replace("step * 32 + lane", "__import__('os')"),
}
TWICE = '{"offset": [[0,1],[0,2],[0,4],[0,8],[0,16],[1,0],[1,0],[4,0],[8,0],[16,0]]}'
COMMANDS = {
    "bases without an inverse": ("layout", "check", TWICE, "transpose:32x32:f32"),
    "|S| < B": ("layout", "show", "S<3,3,2> o 64:1"),
    "not injective": ("layout", "check", "(32,32):(32,0)", "transpose:32x32:f32"),
    "unknown class": ("layout", "solve", "transpose:32x32", "--class", "best"),
    "unknown machine": ("layout", "solve", "transpose:32x32", "--machine", "gtx"),
    "unknown pattern": ("layout", "solve", "transpos:32x32"),
    "composition out of range": ("layout", "check", "F2[1,2] o 8:1", "transpose:32x32"),
}


def bad_inputs() -> dict[str, Any]:
    """One error and status 2 each, no traceback; a layout that is wrong in use has status 1."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        commands = dict(COMMANDS)
        for name, text in FILES.items():
            file = Path(folder, re.sub(r"\W", "_", name) + ".toml")
            file.write_text(text)
            commands[name] = ("layout", "solve", str(file))
        binary = Path(folder, "binary.toml")
        binary.write_bytes(bytes(range(256)))
        commands["binary file"] = ("layout", "solve", str(binary))
        for name, command in commands.items():
            ran = subprocess.run(
                [sys.executable, "-m", "warploom.cli", *command],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert "Traceback" not in ran.stderr, (name, ran.stderr[-300:])
            assert ran.returncode == (1 if name == "not injective" else 2), (name, ran)
            first = (ran.stderr or ran.stdout).strip().replace(folder, "").splitlines()
            found[name] = next((line for line in first if "rror" in line or line), "")[:120]
    return found


LINES: dict[str, Callable[[], dict[str, Any]]] = {
    "fifty": fifty, "named": named, "impossible": impossible, "refused": refused, "counts": counts,
    "random": random, "all_layouts": all_layouts, "mutants": mutants, "times": times,
    "generated": generated,
    "spellings": spellings, "triton_attributes": triton_attributes, "other_texts": other_texts,
    "conversions": conversions,
    "bad_inputs": bad_inputs,
}  # fmt: skip


def processor_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    mine, theirs = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def main() -> int:
    global PROCESSES
    parser = arguments(__doc__, "layout_accept.json")
    parser.add_argument("lines", nargs="*", choices=[[], *LINES], metavar="LINE")
    parser.add_argument("--processes", type=int)
    given = parser.parse_args()
    PROCESSES = given.processes
    record: dict[str, Any] = earlier(given.out)
    failed = False
    for name, line in LINES.items():
        if name not in given.lines if given.lines else name in record:
            continue
        if name == "all_layouts" and find_spec("ortools") is None:
            print(f"{name}: left out, ortools is not installed (extra cp)")
            continue
        started = processor_seconds()
        try:
            record[name] = line()
        except AssertionError as error:  # the other lines are still of interest
            record[name], failed = {"failed": f"{error}"}, True
        record[name]["line_cpu_seconds"] = round(processor_seconds() - started, 1)
        record[name] |= environment()
        print(f"{name}: {json.dumps(record[name], ensure_ascii=False)}", flush=True)
        save(given.out, record, ensure_ascii=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
