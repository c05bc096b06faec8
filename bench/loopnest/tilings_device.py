"""Tilings of a product of matrices timed one by one on a GPU, beside cuBLAS and the model.

    python -m bench.loopnest.tilings_device [--only bf16-1000 …] [--count 30] [--out FILE]
    python -m bench.loopnest.tilings_device --dry --count 3         no GPU: tried on the simulator
    … --tiling rows=64,columns=96,deep=64,stages=6,consumers=1      this one, others not named usual

Rows are those of `matrix_device`. Of each some tilings are taken by their predicted times: the best
of each way to cut it up (tile, cluster, split), of both products that the program is. Then come
`--near` others near the best, which differ from it in stages, depth, bands and the like. All cores
compile; kernels are checked and timed in CUDA graphs, the best again side by side.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from itertools import zip_longest
from multiprocessing import get_context
from typing import Any

import numpy as np
from bench.harness import arguments, environment, save
from bench.loopnest.command_device import timed
from bench.loopnest.matrix_device import ROWS

from warploom.errors import WarploomError
from warploom.loopnest.build import LoopNest
from warploom.loopnest.matrix.bound import expected
from warploom.loopnest.matrix.space import NAMES
from warploom.loopnest.matrix.tiling import Tiling
from warploom.loopnest.target import Target
from warploom.machine.record import H200
from warploom.pipeline.drawn import Made, made_of
from warploom.pipeline.matrix_nest import MatrixNest, TurnedNest
from warploom.pipeline.raced import quick_gpu
from warploom.search.branching.candidate import Candidates, Decision

RECORD = "tilings_device.json"
SHAPES = ("bf16-1536x384x4096", "bf16-128x4096x4096", "bf16-1000")
WAY = ("rows", "columns", "cluster", "beside", "split")  # tilings that differ in these
USUAL = Tiling(64, 128, 64, 6, 1, 1, 1, 0)
BEST, ROUNDS = 6, 5  # timed again


@dataclass(frozen=True, slots=True)
class Job:
    """A tiling of a row; `turned`: neighbours in the result are rows of tiles."""

    row: str
    turned: bool
    tiling: Tiling

    def words(self) -> str:
        plain = asdict(USUAL)
        said = [
            f"{n}={v}"
            for n, v in asdict(self.tiling).items()
            if n in ("rows", "columns", "deep", "stages", "consumers") or v != plain[n]
        ]
        return ("turned " if self.turned else "") + ",".join(said)


@cache
def nest_of(row: str, turned: bool) -> MatrixNest:
    given = ROWS[row].nest
    assert callable(given)
    made = given()
    assert isinstance(made, LoopNest)
    return (TurnedNest if turned else MatrixNest)(made.done(), H200.rates, Target(machine=H200))


def leaf_of(job: Job) -> Candidates:
    """Its decisions; none if the space has no such tiling."""
    propagator = nest_of(job.row, job.turned).space.propagator
    values = asdict(job.tiling)
    return propagator.root([Decision(name, ("product",), (values[name],)) for name in NAMES])


def predicted(job: Job) -> float:
    nest = nest_of(job.row, job.turned)
    return expected(nest.product, job.tiling, H200.rates)


def tilings(row: str, turned: bool) -> Iterator[Job]:
    for each in nest_of(row, turned).space.rows:
        yield Job(row, turned, each)


def ways(row: str, count: int) -> list[Job]:
    """The best of each way to cut it up, in turn of those that split the sum, that have clusters
    and that have none, the shortest predicted times first."""
    best: dict[tuple[object, ...], tuple[float, Job]] = {}
    for job in (each for turned in (False, True) for each in tilings(row, turned)):
        way = (job.turned, *(getattr(job.tiling, name) for name in WAY))
        time = predicted(job)
        if way not in best or time < best[way][0]:
            best[way] = (time, job)
    ordered = [job for _, job in sorted(best.values(), key=lambda each: each[0])]
    kinds: dict[tuple[bool, bool], list[Job]] = {}
    for job in ordered:
        kinds.setdefault((job.tiling.split > 1, job.tiling.cluster > 1), []).append(job)
    mixed = [job for some in zip_longest(*kinds.values()) for job in some if job is not None]
    return mixed[:count]


def near(job: Job, count: int) -> list[Job]:
    """Others cut up in the same way, in the order of predicted times."""
    way = [getattr(job.tiling, name) for name in WAY]
    same = [each for each in tilings(job.row, job.turned) if each != job
            and [getattr(each.tiling, name) for name in WAY] == way]  # fmt: skip
    bands = [replace(job, tiling=replace(job.tiling, band=band)) for band in (4, 16)]
    return [*[each for each in bands if len(leaf_of(each))], *sorted(same, key=predicted)][:count]


def built(job: Job, arch: str) -> Made | str:
    """Compiled, by any process; or why not."""
    leaf = leaf_of(job)
    if not len(leaf):
        return "there is no room for it"
    try:
        made = made_of(nest_of(job.row, job.turned), leaf, 0, arch, set())
    except WarploomError as error:
        return str(error)
    assert made is not None
    return made


def tried(job: Job, _: str) -> str:
    """On the simulator, at a few tiles."""
    leaf = leaf_of(job)
    if not len(leaf):
        return "there is no room for it"
    return str(nest_of(job.row, job.turned).tried(leaf))


def measured(jobs: Sequence[Job], pool: ProcessPoolExecutor, quick: Any) -> list[dict[str, Any]]:
    found = []
    for job, made in zip(jobs, pool.map(built, jobs, [quick.arch] * len(jobs)), strict=True):
        row: dict[str, Any] = {"tiling": job.words(), "predicted_us": predicted(job) / 1e3}
        if isinstance(made, str):
            row["error"] = made
        else:
            try:
                row["us"] = quick.time(made, 1e9)[0] / 1e3
                row |= {"job": job, "made": made, "bound_us": made.bound / 1e3}
            except WarploomError as error:
                row["error"] = str(error)
        print(f"{row.get('us', 0):8.2f} µs  predicted {row['predicted_us']:6.2f}  {job.words()}"
              f"  {row.get('error', '')}", flush=True)  # fmt: skip
        found.append(row)
    return found


def of_row(
    name: str, given: argparse.Namespace, pool: ProcessPoolExecutor, torch: Any
) -> dict[str, Any]:
    own = [Job(name, False, tiling) for tiling in given.tiling]
    jobs = own or ways(name, given.count)
    if torch is None:
        for job, said in zip(jobs, pool.map(tried, jobs, [""] * len(jobs)), strict=True):
            print(f"{name}: predicted {predicted(job) / 1e3:.2f} µs, {job.words()}: {said}")
        return {}
    quick = quick_gpu(nest_of(name, False).program)
    call = ROWS[name].reference(torch)
    small = torch.zeros(1, device="cuda")
    library, least = timed(call, torch) / 1e3, timed(small.zero_, torch) / 1e3
    print(f"{name}: cuBLAS {library:.2f} µs, a kernel that does nothing {least:.2f} µs", flush=True)
    found = measured(jobs, pool, quick)
    best = sorted((each for each in found if "us" in each), key=lambda each: each["us"])
    if best and not own:
        some = [other for each in best[:2] for other in near(each["job"], given.near // 2)]
        found += measured(some, pool, quick)
        best = sorted((each for each in found if "us" in each), key=lambda each: each["us"])
    again = quick.again([each["made"] for each in best[:BEST]], ROUNDS)
    library = min(library, timed(call, torch) / 1e3)
    for each, time in zip(best, again, strict=False):
        each["us_again"] = time / 1e3
        times = library / each["us_again"]
        print(f"{name}: {each['us_again']:.2f} µs, {times:.3f} times cuBLAS: {each['tiling']}")
    kept = [{k: v for k, v in each.items() if k not in ("job", "made")} for each in found]
    return {"name": name, "cublas_us": library, "nothing_us": least, "tilings": kept}


def tiling_of(text: str) -> Tiling:
    named = {name: int(value) for name, value in (each.split("=") for each in text.split(","))}
    return replace(USUAL, **named)


def main() -> None:
    parser = arguments(__doc__, RECORD, dry="no GPU: what the simulator says of each")
    parser.add_argument("--only", nargs="*", default=SHAPES, choices=[*ROWS], metavar="ROW")
    parser.add_argument("--count", type=int, default=30, help="tilings of each row")
    parser.add_argument("--near", type=int, default=12, help="others near the best two")
    parser.add_argument("--processes", type=int, default=None, help="that compile")
    parser.add_argument("--tiling", type=tiling_of, nargs="*", default=[], help="these alone")
    given = parser.parse_args()
    torch = None if given.dry else import_module("torch")
    # Processes of their own from the beginning: this one has a GPU.
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        rows = [of_row(name, given, pool, torch) for name in given.only]
    if torch is not None:
        save(given.out, {**environment(torch.cuda.get_device_name()), "rows": rows})


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
    sys.stdout.flush()
