"""The time model: more work never takes less time, and the order of what was measured."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from warploom.errors import CheckError
from warploom.machine.record import CUDA, H200, MissingFieldError, machine_named
from warploom.machine.times import Times, predicted
from warploom.machine.work import Work, stacked

# Of kernels for C = A·B, 1000³, on an H200: counts, and microseconds as they were measured.
MEASURED = (
    (Work(512, 64, 44, 6144, arithmetic=64000, moves=64, iterations=124, barriers=125,
          longest=35977, requests=1516, lines=6814, sectors=12256, shared_requests=6000,
          wavefronts=19000, global_rounds=63, shared_rounds=63, touched=12386304,
          fetched=200802304), 53.5),
    (Work(88, 384, 76, 35840, arithmetic=384000, moves=384, iterations=12300, barriers=50,
          longest=36829, requests=1881, lines=13110, sectors=29536, shared_requests=40080,
          wavefronts=115380, global_rounds=26, shared_rounds=250, touched=12645376,
          fetched=83173376), 120.1),
)  # fmt: skip
COUNTS = [each.name for each in fields(Work)]


def test_two_products_take_what_was_measured() -> None:
    for work, measured in MEASURED:
        assert 0.6 < predicted(work, H200).nanoseconds / 1e3 / measured < 1.6
    assert predicted(MEASURED[1][0], H200).limit == "shared memory"


@pytest.mark.parametrize("name", COUNTS)
def test_more_work_takes_no_less_time(name: str) -> None:
    random = np.random.default_rng(COUNTS.index(name))
    for _ in range(50):
        counts = {each: float(random.integers(0, 10 ** random.integers(1, 6))) for each in COUNTS}
        counts |= {"blocks": counts["blocks"] + 1, "threads": 64.0, "registers": 40.0}
        work = Work(**counts)
        more = replace(work, **{name: getattr(work, name) * 2})
        assert predicted(more, H200).nanoseconds >= predicted(work, H200).nanoseconds * (1 - 1e-12)


def test_rounds_wait_longer_where_l2_keeps_nothing() -> None:
    """A transposed product whose threads have few loads on their way took 60.9 µs, not 36."""
    work = Work(125, 280, 29, 2240, arithmetic=8750, longest=2600, requests=9000, lines=9000,
                sectors=35000, global_rounds=100, touched=140e6, fetched=140e6,
                asked=125 * 9000, runs=125 * 9000)  # fmt: skip
    assert 45 < predicted(work, H200).nanoseconds / 1e3 < 75
    kept = replace(work, touched=H200.rates.l2_bytes / 2)
    assert predicted(kept, H200).nanoseconds < 0.85 * predicted(work, H200).nanoseconds
    once = replace(work, global_rounds=1)
    assert predicted(once, H200).nanoseconds < 0.85 * predicted(work, H200).nanoseconds


def test_many_at_once_are_as_one_by_one() -> None:
    works = [work for work, _ in MEASURED]
    together = predicted(stacked(works), H200).nanoseconds
    assert together.tolist() == pytest.approx([predicted(w, H200).nanoseconds for w in works])


def test_a_machine_without_times_says_so() -> None:
    with pytest.raises(MissingFieldError, match="no field 'times'"):
        predicted(MEASURED[0][0], CUDA)


def test_times_of_a_users_file_are_checked(tmp_path) -> None:  # type: ignore[no-untyped-def]
    values = {each.name: getattr(H200.times, each.name) for each in fields(Times)[1:]}
    for change, said in (({"clock": 0}, "clock = 0"), ({"launch": -1}, "launch = -1")):
        given = "\n".join(f"{key} = {value}" for key, value in (values | change).items())
        file = tmp_path / "own.toml"
        file.write_text(f'like = "cuda"\n[times]\n{given}\n')
        with pytest.raises(CheckError, match=said):
            machine_named(str(file))
