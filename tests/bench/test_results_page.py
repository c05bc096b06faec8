"""Figures of docs/results.md, and of README, are those of the records in `bench/results`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.loopnest.vgg_device import SHAPES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "results.md").read_text()


def record(name: str) -> Any:
    return json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())


def part(first: str, last: str) -> str:
    """What stands between two texts, each of which is there once."""
    assert PAGE.count(first) == 1
    assert PAGE.count(last) == 1
    return PAGE.split(first)[1].split(last)[0]


def flat(text: str) -> str:
    """Without its line breaks, which stand anywhere."""
    return " ".join(text.split())


RULE, MEASURED = "with settings chosen by rule and nothing tuned", "Here several settings"
SEARCH, REST = "## Searched", "## Where we do not win"
CORES = "## On tensor cores, and convolutions by search"


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
    assert f"| {short}; {taps[31]['ours']['default']['fraction']:.2f} of a copy |" in text
    images = [rows[f"2d/{n}"] for n in (3, 5, 7, 9, 11)]
    ours = " / ".join(f"{row['ours']['default']['seconds'] * 1e3:.3f}" for row in images)
    assert f"| {ours} ms |" in text
    npp = [row["others"]["npp"]["seconds"] * 1e3 for row in images]
    assert "NPP " + " / ".join(f"{ms:.3f}" if ms < 1 else f"{ms:.2f}" for ms in npp) in text


def test_what_is_the_best_of_settings_that_were_measured() -> None:
    text = flat(part(MEASURED, SEARCH))
    ratios = [record("functions_device")["rows"][f"exchange {n}"]["ratio"] for n in (3, 5, 7)]
    means = [sum(each.values()) / len(each) for each in ratios]
    assert " / ".join(f"{mean:.2f}" for mean in means) + " of the time" in text
    products = record("conv_device")["product"].values()
    tried = [len(row["rows"]["ours"]["tried"]) for row in products]
    assert f"{min(tried)} to {max(tried)} settings of our kernels" in text
    speeds, fills = [], []
    for row in (each["rows"] for each in products):
        other = min(row[name]["seconds"] for name in ("shared_product", "cached_product"))
        assert len(row["shared_product"]["tried"]) == len(row["cached_product"]["tried"]) == 4
        speeds.append(other / row["ours"]["seconds"])
        ours = row["ours"]["tried"]
        of_fills = [t for t in ours if not t["setting"].startswith("product-pieces")]
        fills.append(other / min(t["seconds"] for t in of_fills))
    assert f"`product-pieces` | {min(speeds):.1f} to {max(speeds):.1f} times as fast |" in text
    assert f"{min(fills):.2f} to {max(fills):.1f} times as fast | the same two" in text


def test_what_is_found_by_search_is_what_loop_nests_found() -> None:
    text, rows = flat(part(SEARCH, CORES)), {row["name"]: row for row in record("explore_device")}
    names = ["matvec", "gesummv", "matmul-256", "matmul-512", "matmul-1024", "matmul-2048"]
    faster = {name: rows[name]["times_faster"] for name in [*names, "batched"]}
    assert ", ".join(f"{faster[name]:.2f}" for name in names[:2]) + " times as fast" in text
    rest = ", ".join(f"{faster[name]:.2f}" for name in names[3:])
    assert f"{faster['matmul-256']:.1f}, {rest} times as fast | cuBLAS" in text
    assert f"32×32×64 | {faster['batched']:.2f} times as fast | cuBLAS" in text
    counts = [rows[name]["measured"] for name in faster]
    assert f"best of {min(counts):,} to {max(counts):,} measured implementations" in text
    assert "VGG" not in text
    assert "map_device" not in text


def test_where_we_do_not_win() -> None:
    text = flat(PAGE.split(REST)[1])
    scans = record("functions_device")["rows"]
    slow = [scans[f"scan {kind} +"]["ratio"]["exclusive"] for kind in ("int64", "int32")]
    assert f"integers take {slow[0]:.2f} and {slow[1]:.2f} times as long as CUB's" in text
    costs = record("calls_device")["calls"]["costs"]
    ours, copy, triton = (
        costs[name]["us"] for name in ("ours: call", "torch: copy_", "triton: call")
    )
    assert f"{ours:.1f} µs on the host. A `copy_` takes {copy:.1f} µs, and a Triton call" in text
    assert f"call {triton:.0f} µs" in text
    images = [record("settings_device")[f"2d/{n}"] for n in (9, 11)]
    floors = [row["ours"]["default"]["seconds"] / max(row["floors"].values()) for row in images]
    assert f"{floors[0]:.2f} and {floors[1]:.2f} times as long as the larger" in text
    moved = [row["fraction"] for row in record("layout_transpose")["rows"]]
    assert f"reach {span(moved)} of a copy" in text
    *fast, slowest = sorted(row["of_triton"] for row in record("layout_convert")["rows"])
    assert len(fast) == 11
    assert f"{slowest:.2f} times as long as Triton's. The other eleven take {span(fast)}" in text


def test_shuffles_that_gain_nothing_and_structures_that_are_behind() -> None:
    text = flat(PAGE.split(REST)[1])
    kernels = record("ptx_shuffle_device")["kernels"]
    assert len(kernels) == 17  # one of the sixteen in two forms
    assert "sixteen benchmark kernels" in text
    assert all(row["speedup"]["all"] < 1.01 for row in kernels.values())
    best: dict[str, dict[str, float]] = {}
    for name, row in record("aos_device").items():
        if "fraction" in row:
            move, size, who = name.split("/")[:3]
            known = best.setdefault(f"{move}/{size}", {})
            known[who] = max(known.get(who, 0), row["fraction"])
    both = [row for row in best.values() if {"ours", "shared_memory"} <= {*row}]
    ahead = [row["shared_memory"] - row["ours"] for row in both]
    assert f"by up to {max(ahead):.2f} of the copy's bandwidth" in text


def test_products_that_are_slower_than_the_library() -> None:
    text = flat(PAGE.split(REST)[1])
    rows = {row["name"]: row for row in record("explore_device")}
    strided = rows["matmul-strided"]["best_us"] / rows["matmul-1024"]["best_us"]
    assert f"{strided:.2f} times as long as our GEMM without" in text
    cores = [
        rows[f"{kind}-{n}"]["times_faster"] for kind in ("tensor", "bf16") for n in (1024, 2048)
    ]
    assert "{:.2f} and {:.2f} of cuBLAS in tf32, {:.2f} and {:.2f} in bf16".format(*cores) in text
    assert rows["matmul-2048"]["times_faster"] < 1
    layers = record("vgg_device")["rows"]
    slower = [
        name
        for name in SHAPES
        if layers[name]["ours"]["us"] > layers[name]["others"]["im2col + cublas"]
    ]
    assert sum(SHAPES[name][3] for name in slower) == 8
    assert all(SHAPES[name][1] >= 256 for name in slower)
    assert "eight of the 13 convolutions are slower than im2col + cuBLAS" in text
    mapped = min(way["best"] for way in record("array_curves")["ways"].values())
    nest = layers["conv4_2"]["ours"]["us"]
    for page in (text, flat((ROOT / "docs" / "arrays.md").read_text())):
        assert f"takes {mapped * 1e6:.0f} µs" in page
        assert f"{nest:.0f} µs by " in page


def test_tensor_cores_and_convolutions_by_search() -> None:
    text = flat(part(CORES, REST))
    rows = {row["name"]: row for row in record("matrix_device")}
    gemms = [rows[f"bf16-{size}"]["times_faster"] for size in (1024, 2048, 4096, 8192)]
    said = ", ".join(f"{each:.2f}" for each in gemms)
    assert f"in 20 s each | {said} times as fast | cuBLAS" in text
    shapes = record("attention_device")["rows"]
    parts = [shapes[f"4x16x2048x{each}"]["us"] for each in ("64", "64 causal", "128")]
    said = ", ".join(f"{each['cudnn'] / each['found']:.2f}" for each in parts)
    assert f"in 12 s each | {said} times as fast | cuDNN" in text
    rows = {row["name"]: row for row in record("rows_device")}
    kinds = [rows[f"{each}-bf16"]["times_faster"] for each in ("softmax", "layer-norm", "rms-norm")]
    said = ", ".join(f"{each:.2f}" for each in kinds)
    assert f"tune=10)` | {said} times as fast | PyTorch" in text
    graph = record("vgg_device")["one_graph_us"]
    assert f"in 14 s each | {graph['cudnn'] / graph['ours']:.2f} times as fast | cuDNN" in text
    of = graph["im2col + cublas"] / graph["ours"]
    assert f"{graph['ours'] / 1e3:.2f} ms in one graph | {of:.2f} times as fast | im2col" in text


def test_the_emulator_agrees_with_a_gpu_as_readme_says() -> None:
    kernels = record("ptx_device")["kernels"].values()
    assert all(row["status"] == "equal" and not row["different"] for row in kernels)
    close = sum(bool(row["close"]) for row in kernels)
    said = flat(README)
    assert f"{len(kernels) - close} of {len(kernels)} kernels agree bit for bit, {close} wi" in said
    exact = record("mma_device")["kernels"].values()
    assert not any(row["different"] for row in exact)
    assert f"{len(exact)} kernels of `mma`, `wgmma`, TMA and clusters agree bit for bit" in said


def test_readme_says_the_same() -> None:
    """Rows of its table, and limits that have figures, are those of the page, word by word."""
    table = README.split("## Measured")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 5
    limits = README.split("## Limits")[1].split("\n- ")[1:5]
    for said in (*rows, *(flat(limit.split(". ")[0]) for limit in limits)):
        assert said in flat(PAGE), said


def test_the_rows_of_the_command_are_those_of_its_record() -> None:
    page = (ROOT / "docs" / "loopnests.md").read_text()
    rows = record("command_device")
    assert page.count("(`") >= len(rows)
    for row in rows:
        times = (
            f"{row['best_us']:.1f} µs | {row['reference_us']:.1f} µs | {row['times_faster']:.2f}"
        )
        assert f"(`{row['name']}`) | {row['measured']:,} | {times} |" in page, row["name"]
        assert row["wrong"] == row["violations"] == 0
        assert row["asked_seconds"] == (15 if row["name"] == "matmul-256" else 60)
