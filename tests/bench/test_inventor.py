"""The table of the Swizzle Inventor paper: records and lines."""

from __future__ import annotations

from warploom.bench import inventor


def test_a_record_has_the_published_figure_beside_ours() -> None:
    (row,) = inventor.rows("Mult-32 reg")
    record = inventor.measure(row)
    assert record["published"] == 1
    assert (record["space"], record["statements"]) == (1, 2)
    assert record["verdict"] == record["verdict_32"] == "proved"
    header, line = inventor.table([record])
    assert header.startswith("benchmark")
    assert line.split()[-2:] == ["proved", "proved"]


def test_limits_follow_the_published_times() -> None:
    limits = {row.name: row.limit for row in inventor.rows()}
    assert limits["Mult-64 reg"] == 60.0
    assert limits["AoS-store rcr (7)"] == 2.3
    assert limits["Mult-32 shmem"] == 1.0


def test_ablations_are_measured_with_a_budget() -> None:
    (ablation, *_) = inventor.ablations(r"AoS-sum crc \(2\)")
    record = inventor.measure_ablation(ablation, seconds=20)
    assert record["answer"] == "none exists"
    assert "none exists" in inventor.ablation_table([record])[1]
