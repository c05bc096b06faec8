"""VGG-16's thirteen convolutions on a GPU: ours beside cuDNN, im2col + cuBLAS and a naive kernel.

    python -m bench.array.device            with a GPU and PyTorch
    python -m bench.array.device --more 40  beside the best so far
    python -m bench.array.device --naive    the naive kernel alone, again
    python -m bench.array.device --dry      small, no GPU: all is right?

float32, batch 1, no tf32, no Winograd of ours; every time is that of a CUDA graph. Each distinct
layer shape is searched: blocks by the model (`common/array/blocks.py`), compiled on all cores,
checked against PyTorch in float64, measured, the better half again. Bytes are operands, results and
workspace; beside the fastest of all there is the fastest with at most 1 MB of workspace, and the
fastest choice for all layers with 1 MB on average. The record is kept shape by shape, and a run
goes on where an earlier one stopped. Curves of searches are made by `map_curves.py`.
"""

from __future__ import annotations

import json
import math
import random
from concurrent.futures import Future
from dataclasses import astuple
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from bench.array.layer import LITTLE, measured, naive_seconds, one_graph
from bench.array.prepare import Prepared, blocks_of, prepare, prepare_naive, text_of
from bench.common.array.blocked import Blocks
from bench.common.array.blocks import SLICES, candidates, seconds, temporary_bytes
from bench.harness import RESULTS, arguments, environment, save

from warploom.array.workload import VGG_16, Convolution
from warploom.errors import WarploomError
from warploom.kernel.evaluate import run
from warploom.machine.record import H200
from warploom.search.workers.farm import Farm

OUT = RESULTS / "array_device.json"
BESIDE = 6  # of the best, and of the best with little memory, others are looked for
OF_ONE_TILE = 2  # candidates that differ in what a thread holds alone
LOST = 4  # candidates of one shape may ruin the device
CUDNN = ("cudnn, rows", "cudnn, channels last")
SMALL = {
    "small": (Convolution(6, 6, 8, 32), Blocks(32, 32, 8, 4, 8)),
    "in parts": (Convolution(5, 5, 16, 32), Blocks(32, 32, 8, 8, 4, 3)),
    "three": (Convolution(8, 8, 3, 32), Blocks(32, 32, 9, 4, 8, 1, 1)),
    "in slices": (Convolution(5, 5, 16, 32), Blocks(32, 32, 16, 8, 8, slices=4)),
}


def shapes() -> dict[Convolution, list[str]]:
    """The distinct shapes, with the layers that have them."""
    found: dict[Convolution, list[str]] = {}
    for name, layer in VGG_16.items():
        found.setdefault(layer, []).append(name)
    return found


def chosen(layer: Convolution, count: int, memory: int | None = None) -> list[Blocks]:
    """The most promising blocks, few of each tile, half of them with little memory between
    kernels; and some by chance, to see what the model is worth."""
    ranked = candidates(layer, H200, memory)
    small = [blocks for blocks in ranked if temporary_bytes(layer, blocks) <= LITTLE]
    found = _varied(ranked, count - count // 2)
    found += [blocks for blocks in _varied(small, count) if blocks not in found][: count // 2]
    others = [blocks for blocks in ranked if blocks not in found]
    return found + random.Random(1).sample(others, min(len(others), count // 6))


def _varied(ranked: list[Blocks], count: int) -> list[Blocks]:
    """One thread for a sum, two, four, eight in turn: the model knows little of what is best."""
    queues = [
        _few_of_a_tile([blocks for blocks in ranked if blocks.slices == slices])
        for slices in SLICES
    ]
    iterations = zip_longest(*queues)
    return [blocks for iteration in iterations for blocks in iteration if blocks is not None][
        :count
    ]


def _few_of_a_tile(ranked: list[Blocks]) -> list[Blocks]:
    tiles: dict[tuple[int, ...], int] = {}
    found: list[Blocks] = []
    for blocks in ranked:
        tile = (blocks.bm, blocks.bn, blocks.bk, blocks.parts)
        tiles[tile] = tiles.get(tile, 0) + 1
        if tiles[tile] <= OF_ONE_TILE:
            found.append(blocks)
    return found


def near(layer: Convolution, row: dict[str, Any], count: int, memory: int | None) -> list[Blocks]:
    """The best of an earlier run again, and as many others beside them: what differs in one or two
    sizes is expected to take as much longer as the model says. Half have little memory."""
    run_ = sorted(
        (each for each in row["ours"]["trials"] if each["seconds"]),
        key=lambda each: each["seconds"],
    )
    small = [each for each in run_ if each["bytes"] <= LITTLE]
    best = {each["blocks"]: each for each in [*run_[:BESIDE], *small[:BESIDE]]}
    known = {each["blocks"] for each in row["ours"]["trials"]}
    others = [b for b in candidates(layer, H200, memory) if text_of(b) not in known]
    every = [*(blocks_of(layer, text) for text in best), *others]
    predicted = dict(zip(every, seconds(layer, every, H200).tolist(), strict=True))
    guesses: dict[Blocks, float] = {}
    for text, each in best.items():
        ours = blocks_of(layer, text)
        slower = each["seconds"] / predicted[ours]
        for blocks in others:
            if _differences(ours, blocks) <= 2:
                guess = slower * predicted[blocks]
                guesses[blocks] = min(guesses.get(blocks, math.inf), guess)
    ranked = sorted(guesses, key=guesses.__getitem__)
    little = [blocks for blocks in ranked if temporary_bytes(layer, blocks) <= LITTLE]
    found = ranked[: count - count // 2]
    found += [blocks for blocks in little if blocks not in found][: count // 2]
    return [blocks_of(layer, text) for text in best] + found


def alike(
    layer: Convolution, tried: dict[str, list[Blocks]], count: int, memory: int | None
) -> list[Blocks]:
    """Some of what is tried for layers of as many pixels and kernels, which fill a GPU alike."""
    own = shapes()[layer][0]
    size = (layer.rows, layer.columns, layer.kernels)
    others = [
        names[0] for each, names in shapes().items()
        if each is not layer and (each.rows, each.columns, each.kernels) == size
    ]  # fmt: skip
    fitting = set(candidates(layer, H200, memory))
    found = [b for name in others for b in tried[name] if b in fitting and b not in tried[own]]
    return list(dict.fromkeys(found))[:count]


def _differences(one: Blocks, other: Blocks) -> int:
    return sum(a != b for a, b in zip(astuple(one), astuple(other), strict=True))


def all_layers(
    gpu: Farm, rows: dict[str, Any], farm: Farm, chosen_: dict[str, dict[str, str]]
) -> dict[str, float]:
    """The thirteen layers one after another in one graph, each way; `chosen_` are blocks by shape
    for each of ours."""
    shared = {
        (name, text): farm.submit(prepare, layer, blocks_of(layer, text))
        for layer, (name, *_) in shapes().items()
        for text in {each[name] for each in chosen_.values()}
    }
    names = [shapes()[layer][0] for layer in VGG_16.values()]
    ours = {
        way: [shared[name, texts[name]].result() for name in names]
        for way, texts in chosen_.items()
    }
    layers = [
        (layer, min(CUDNN, key=rows[name].__getitem__))
        for layer, name in zip(VGG_16.values(), names, strict=True)
    ]
    return gpu.submit(one_graph, layers, ours).result()


def report(name: str, layers: list[str], row: dict[str, Any]) -> None:
    ours = row["ours"]["seconds"] * 1e6
    cudnn = min(row[each] for each in row if each.startswith("cudnn")) * 1e6
    column = row["im2col + cublas"] * 1e6
    small = row["ours"]["with_little_memory"]
    little = f"{small['seconds'] * 1e6:.1f} us [{small['blocks']}]" if small else "nothing"
    print(
        f"{name} x{len(layers)}: ours {ours:.1f} us [{row['ours']['blocks']}], "
        f"{row['ours']['temporary_bytes'] / 1e6:.1f} MB; with 1 MB {little}; cudnn {cudnn:.1f}, "
        f"im2col+cublas {column:.1f}, naive {row['naive'] * 1e6:.0f}; "
        f"{len(row['ours']['trials'])} tried, {row['ours']['device_seconds']:.1f} s of device",
        flush=True,
    )


def totals(rows: dict[str, Any]) -> dict[str, Any]:
    found = dict.fromkeys(("ours", "with little memory", "cudnn", "im2col", "naive"), 0.0)
    sizes = dict.fromkeys(("ours", "least", "im2col"), 0)
    for layers in shapes().values():
        row = rows[layers[0]]
        for _ in layers:
            found["ours"] += row["ours"]["seconds"]
            little = row["ours"]["with_little_memory"]
            found["with little memory"] += little["seconds"] if little else math.inf
            found["cudnn"] += min(row[each] for each in row if each.startswith("cudnn"))
            found["im2col"] += row["im2col + cublas"]
            found["naive"] += row["naive"]
            sizes["ours"] += row["least"] + row["ours"]["temporary_bytes"]
            sizes["least"] += row["least"]
            sizes["im2col"] += row["im2col"]
    over = (sizes["ours"] - sizes["least"]) / len(VGG_16)
    return {
        "seconds": found,
        "bytes": sizes,
        "bytes_over_least_on_average": over,
        "within_1_MB_on_average": within(rows, LITTLE * len(VGG_16)),
    }


def within(rows: dict[str, Any], limit: int) -> dict[str, Any]:
    """The fastest choice for all layers whose memory between kernels stays below a limit in all:
    seconds per byte are raised until it does."""
    found: dict[str, Any] = {}
    for price in [0.0, *np.geomspace(1e-15, 1e-9, 400)]:
        picked = {}
        for names in shapes().values():
            run_ = [each for each in rows[names[0]]["ours"]["trials"] if each["seconds"]]
            best = min(run_, key=lambda each: each["seconds"] + price * each["bytes"])
            picked[names[0]] = (best, len(names))
        total = sum(best["bytes"] * times for best, times in picked.values())
        if total <= limit:
            seconds_ = sum(best["seconds"] * times for best, times in picked.values())
            blocks = {name: best["blocks"] for name, (best, _) in picked.items()}
            found = {"seconds": seconds_, "bytes": total, "blocks": blocks}
            break
    return found


def run_all(out: Path, count: int, limit: float, memory: int | None, more: int) -> None:
    before: dict[str, Any] = {}
    if (source := out if out.exists() else OUT).exists() and (out.exists() or more):
        before = json.loads(source.read_text()).get("shapes", {})
    rows = {} if more else dict(before)
    farm, gpu = Farm(), Farm(1)
    tried = {
        names[0]: near(layer, before[names[0]], more, memory)
        if more and names[0] in before
        else chosen(layer, count, memory)
        for layer, names in shapes().items()
    }
    if more:
        tried = {
            names[0]: tried[names[0]] + alike(layer, tried, 2 * more // 3, memory)
            for layer, names in shapes().items()
        }
    made = {
        names[0]: [farm.submit(prepare, layer, blocks) for blocks in tried[names[0]]]
        for layer, names in shapes().items()
        if names[0] not in rows
    }
    naive = {names[0]: farm.submit(prepare_naive, layer) for layer, names in shapes().items()}
    for layer, names in shapes().items():
        name = names[0]
        if name not in rows:
            ready = _compiled(made[name])
            row, gpu = one_shape(gpu, layer, tried[name], ready, naive[name].result(), limit)
            if row is None:
                continue
            rows[name] = with_earlier(row, before.get(name))
            _keep(out, {"device": row["device"], "shapes": rows})
        report(name, names, rows[name])
    if len(rows) == len(shapes()):
        record = {"device": rows["conv1_1"]["device"], **environment(rows["conv1_1"]["device"]),
                  "shapes": rows, "totals": totals(rows)}  # fmt: skip
        ways = {"ours": {name: row["ours"]["blocks"] for name, row in rows.items()}}
        if limited := record["totals"]["within_1_MB_on_average"]:
            ways["ours within 1 MB on average"] = limited["blocks"]
        record["one_graph"] = all_layers(gpu, rows, farm, ways)
        _keep(out, record)
        print(json.dumps({"totals": record["totals"], "one_graph": record["one_graph"]}, indent=1))
    farm.shutdown(cancel_futures=True)
    gpu.shutdown(cancel_futures=True)


def with_earlier(row: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """What was measured before and not again stays in the list; the best are of this run."""
    if before is not None:
        trials = row["ours"]["trials"]
        now = {each["blocks"] for each in trials}
        trials += [each for each in before["ours"]["trials"] if each["blocks"] not in now]
        row["ours"]["device_seconds"] += before["ours"]["device_seconds"]
    return row


def _compiled(made: list[Future[Prepared]]) -> dict[str, Prepared]:
    found: dict[str, Prepared] = {}
    for future in made:
        try:
            found[future.result().text] = future.result()
        except WarploomError as error:
            print(f"not compiled: {str(error)[:200]}", flush=True)
    return found


def one_shape(
    gpu: Farm, layer: Convolution, tried: list[Blocks], made: dict[str, Prepared],
    naive: Prepared, limit: float,
) -> tuple[dict[str, Any] | None, Farm]:  # fmt: skip
    """The record of a shape, nothing if it cannot be measured; a candidate that ruins the device is
    named, left out and noted, and another process has the device afterwards."""
    lost: list[dict[str, Any]] = []
    while len(lost) < LOST:
        without = {each["lost"] for each in lost} | {
            text for blocks in tried if (text := text_of(blocks)) not in made
        }
        left = [blocks for blocks in tried if text_of(blocks) not in without]
        try:
            row = gpu.submit(measured, layer, left, made, naive, limit).result()
        except (WarploomError, RuntimeError) as error:
            print(f"{layer}: {str(error)[:300]}", flush=True)
            gpu.shutdown(cancel_futures=True)
            return None, Farm(1)
        if "lost" not in row:
            return {**row, "lost": lost}, gpu
        print(f"{layer}: {row['lost']} ruins the device: {row['why']}", flush=True)
        lost.append(row)
        gpu.shutdown(cancel_futures=True)
        gpu = Farm(1)
    return None, gpu


def _keep(out: Path, record: dict[str, Any]) -> None:
    save(out, record)


def naive_again(out: Path) -> None:
    """The record of an earlier run, with the naive kernel measured once more."""
    record = json.loads((out if out.exists() else OUT).read_text())
    farm, gpu = Farm(), Farm(1)
    made = {layer: farm.submit(prepare_naive, layer) for layer in shapes()}
    for layer, names in shapes().items():
        row = record["shapes"][names[0]]
        row["naive"] = gpu.submit(naive_seconds, layer, made[layer].result()).result()
        print(f"{names[0]} x{len(names)}: naive {row['naive'] * 1e6:.1f} us", flush=True)
    record["totals"] = totals(record["shapes"])
    _keep(out, record)
    found = record["totals"]["seconds"]
    print(f"naive {found['naive'] * 1e3:.2f} ms, {found['naive'] / found['ours']:.1f} of ours")
    farm.shutdown(cancel_futures=True)
    gpu.shutdown(cancel_futures=True)


# -- without a device ------------------------------------------------------------------------------


def dry() -> None:
    """Small layers: compiled to machine code, run by the kernel evaluator and on PTX."""
    from bench.array.prepare import compiled_naive, on_ptx
    from bench.common.array.blocked import compiled_convolution

    for name, (layer, blocks) in SMALL.items():
        rng = np.random.default_rng(3)
        image = rng.standard_normal((layer.height, layer.width, layer.channels), np.float32)
        size = (layer.kernels, layer.kernel_height, layer.kernel_width, layer.channels)
        kernels = rng.standard_normal(size, np.float32)
        around = ((layer.padding,) * 2, (layer.padding,) * 2, (0, 0))
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(image, around), size[1:3], axis=(0, 1)
        )
        wanted = np.einsum("yxcij,kijc->yxk", windows, kernels, optimize=True)
        planes = [np.ascontiguousarray(np.moveaxis(each, -1, -3)) for each in (image, kernels)]
        for launch in (lambda kernel, given: run(kernel, given), on_ptx):
            found = compiled_convolution(layer, blocks)(launch, image, kernels)
            assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4), name
            found = np.moveaxis(np.asarray(compiled_naive(layer)(launch, *planes)), 0, -1)
            assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4), name
        usage = [each.registers for each in prepare(layer, blocks).kernels]
        print(f"{name}: {text_of(blocks)} is right; registers {usage}", flush=True)


def main() -> None:
    parser = arguments(__doc__, "array_device.json", dry="small layers, no GPU")
    parser.add_argument("--candidates", type=int, default=24, help="by the model, for each shape")
    parser.add_argument("--seconds", type=float, default=60.0, help="most for each shape")
    parser.add_argument("--more", type=int, default=0, help="beside the best of earlier runs")
    parser.add_argument("--memory", type=int, default=None, help="bytes beside operands, at most")
    parser.add_argument("--naive", action="store_true", help="the naive kernel alone, again")
    given = parser.parse_args()
    if given.dry:
        dry()
    elif given.naive:
        naive_again(given.out)
    else:
        run_all(given.out, given.candidates, given.seconds, given.memory, given.more)


if __name__ == "__main__":
    main()
