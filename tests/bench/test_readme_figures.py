"""The figures of README's tables of an H200 are those of the records in `bench/results`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def record(name: str) -> Any:
    return json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())


def part(first: str, last: str) -> str:
    """What stands between two texts, each of which is there once."""
    assert README.count(first) == 1
    assert README.count(last) == 1
    return README.split(first)[1].split(last)[0]


RULE, MEASURED = "with settings chosen by rule, nothing tuned", "the best of several settings"
SEARCH, HAND, REST = "By search, on the same H200", "Mapped by hand, blocks", "Where we do not win"


def span(numbers: Iterable[float]) -> str:
    listed = list(numbers)
    return f"{min(listed):.2f} to {max(listed):.2f}"


def test_settings_by_rule() -> None:
    text, rows = part(RULE, MEASURED), record("settings_device")
    for move, line in (("aos-to-soa", "→ structure"), ("soa-to-aos", "back"), ("aos-sum", "sums")):
        some = [row for name, row in rows.items() if name.startswith(f"{move}/float32/")]
        (said,) = (each for each in text.splitlines() if line in each)
        assert span(row["ours"]["default"]["fraction"] for row in some) in said
        assert span(row["others"]["direct per=1"]["fraction"] for row in some) in said
        assert span(row["others"]["torch"]["fraction"] for row in some) in said
    taps = {int(name[3:]): row for name, row in rows.items() if name.startswith("1d/")}
    short = span(row["ours"]["default"]["fraction"] for n, row in taps.items() if n < 31)
    assert f"| {short}; {taps[31]['ours']['default']['fraction']:.2f} |" in text
    images = [rows[f"2d/{n}"] for n in (3, 5, 7, 9, 11)]
    ours = " / ".join(f"{row['ours']['default']['seconds'] * 1e3:.3f}" for row in images)
    assert f"| {ours} ms |" in text
    npp = [row["others"]["npp"]["seconds"] * 1e3 for row in images]
    assert "NPP " + " / ".join(f"{ms:.3f}" if ms < 1 else f"{ms:.2f}" for ms in npp) in text


def test_what_is_the_best_of_settings_that_were_measured() -> None:
    text = part(MEASURED, SEARCH)
    ratios = [record("functions_device")["rows"][f"exchange {n}"]["ratio"] for n in (3, 5, 7)]
    means = [sum(each.values()) / len(each) for each in ratios]
    assert " / ".join(f"{mean:.2f}" for mean in means) + " of the time" in text
    products = record("conv_device")["product"].values()
    tried = [len(row["rows"]["ours"]["tried"]) for row in products]
    assert f"{min(tried)} to {max(tried)}\nsettings of ours" in text
    speeds, fills = [], []
    for row in (each["rows"] for each in products):
        other = min(row[name]["seconds"] for name in ("shared_product", "cached_product"))
        assert len(row["shared_product"]["tried"]) == len(row["cached_product"]["tried"]) == 4
        speeds.append(other / row["ours"]["seconds"])
        ours = row["ours"]["tried"]
        of_fills = [t for t in ours if not t["setting"].startswith("product-pieces")]
        fills.append(other / min(t["seconds"] for t in of_fills))
    assert f"{min(speeds):.1f} to {max(speeds):.1f} times the better" in text
    assert f"{min(fills):.2f} to {max(fills):.1f} times |" in text


def test_what_is_found_by_search_is_what_loop_nests_found() -> None:
    text, rows = part(SEARCH, HAND), {row["name"]: row for row in record("explore_device")}
    names = ["matvec", "gesummv", "matmul-256", "matmul-512", "matmul-1024", "matmul-2048"]
    faster = {name: rows[name]["times_faster"] for name in [*names, "batched"]}
    assert ", ".join(f"{faster[name]:.2f}" for name in names[:2]) + " of cuBLAS" in text
    rest = ", ".join(f"{faster[name]:.2f}" for name in names[3:])
    assert f"{faster['matmul-256']:.1f}, {rest} of cuBLAS" in text
    assert f"{faster['batched']:.2f} of cuBLAS" in text
    counts = [rows[name]["measured"] for name in faster]
    assert f"best of {min(counts):,} to {max(counts):,} that were measured" in text
    assert "VGG" not in text
    assert "map_device" not in text


def test_convolutions_are_said_to_be_mapped_by_hand() -> None:
    text, found = part(HAND, REST), record("array_device")
    graph, totals = found["one_graph"], found["totals"]
    ours, little = graph["ours"], graph["ours within 1 MB on average"]
    workspace = totals["bytes"]["least"] + totals["within_1_MB_on_average"]["bytes"]
    (said,) = (line for line in text.splitlines() if "VGG-16" in line)
    for figure in (
        f"{ours * 1e3:.2f} ms in one graph",
        f"{graph['cudnn'] / ours:.2f} of cuDNN",
        f"{graph['im2col'] / ours:.2f} of im2col",
        f"{totals['bytes']['ours'] / totals['bytes']['im2col']:.2f} of its bytes",
        f"{little * 1e3:.2f} ms: {graph['cudnn'] / little:.2f} and {graph['im2col'] / little:.2f}",
        f"{workspace / totals['bytes']['im2col']:.2f} of its bytes |",
    ):
        assert figure in said
    ways = record("array_curves")["ways"]
    searched = min(way["best"] for name, way in ways.items() if not name.startswith("by hand"))
    by_hand = ways["by hand"]["best"]
    for page in (text, (ROOT / "docs" / "arrays.md").read_text()):
        assert f"{by_hand * 1e6:.0f} µs with the mapping by hand" in page
        assert f"{searched * 1e6:.0f} µs" in page
    assert "recipe/blocked.py" in text
