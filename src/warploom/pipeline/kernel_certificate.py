"""The best implementation of a product or of attention by warp groups as a certificate, which
`trust/kernel.py` checks by itself.

It holds the kernel as PTX, made for axes that are cut short to a few tiles, and how it is launched;
what it should compute; the proof that a run of it is the same in every schedule; and of each tile
in shared memory the layout, with why none is better. It is checked before it goes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from warploom.emit.cuda import cuda
from warploom.errors import CheckError, UnsupportedError
from warploom.index.evaluate import evaluate
from warploom.kernel.descriptor import swizzled
from warploom.kernel.ir import ArrayParam, Kernel
from warploom.kernel.pool import launched_bytes
from warploom.kernel.warpgroup import MapParam
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.certificate import certificate as layout_certificate
from warploom.layout.solver.solve import members, solve
from warploom.layout.solver.task import Task
from warploom.loopnest.evaluate import elements
from warploom.loopnest.ir import Axis
from warploom.loopnest.matrix.tiling import OUT
from warploom.loopnest.strategies.form import ATTENTION, MATRIX, TURNED
from warploom.loopnest.trial import nearness
from warploom.machine.proof import Reach
from warploom.pipeline.attention_nest import AttentionNest
from warploom.pipeline.matrix_nest import MatrixNest, Short
from warploom.pipeline.meant import of_attention, of_product
from warploom.pipeline.nest import Explored
from warploom.ptx import load
from warploom.ptx.prove.certificate import certificate as schedule_certificate
from warploom.runtime.emulated import EmulatedFunction
from warploom.search.branching.candidate import Candidates
from warploom.trust.checked import digest
from warploom.trust.kernel import VERSION, check_kernel, other_sizes

SEED = 0
PROVED = (MATRIX, TURNED, ATTENTION)  # spaces whose kernels have certificates
TWO = "there is no certificate of two kernels, one after the other, yet"
ELEMENTS = {1: "u8", 2: "f16"}  # by their bytes, as patterns of layouts name them


def kernel_certificate(found: Explored) -> dict[str, Any]:
    """The certificate of what a search found, checked."""
    nest = found.nest
    if found.candidate is None or nest is None:
        raise CheckError("nothing was found that a certificate may be of")
    if not isinstance(nest, MatrixNest) or nest.kind not in PROVED:
        how = nest.kind if isinstance(nest, MatrixNest) else "loops: it has no pipeline to prove"
        raise UnsupportedError(
            f"there is no certificate of '{nest.whole.name}' as {how}",
            advice="certificates are of products and attention by warp groups, of the strategies "
            "warp-group-tile and fused-attention",
        )
    if nest.after is not None:
        raise UnsupportedError(TWO)
    return certificate_of_tiling(nest, found.candidate)


def certificate_of_tiling(nest: MatrixNest, candidate: Candidates) -> dict[str, Any]:
    """The certificate of one implementation, checked."""
    tiling: Any = nest.tiling(candidate)
    short = nest.short(tiling)
    meaning = _meaning(nest, short.sizes)
    if len(short.kernels) > 1:
        raise UnsupportedError(TWO)
    (own,) = short.kernels
    layouts = _layouts(nest, tiling, own)
    function = EmulatedFunction(own)
    record: dict[str, Any] = {
        "kind": "kernel", "version": VERSION, "name": nest.whole.name, "machine": nest.rates.name,
        "asked": {axis.name: axis.size for axis in short.sizes},
        "tried": {axis.name: size for axis, size in short.sizes.items()},
        "words": nest.schedule(candidate), "seed": SEED,
        "texts": {"asked": cuda(nest.kernel(candidate)), "tried": function.text},
        "ptx": function.ptx, "launch": _launch(own, function, nest, short.sizes),
        "meaning": meaning,
        "near": nearness(nest.program) if short.part is None else short.part,
        "layouts": layouts,
    }  # fmt: skip
    record["proof"] = _proof(function, nest, short)
    record |= {"digest": digest(record)}
    if opened := check_kernel(record).open:
        raise CheckError(f"'{nest.whole.name}' has no certificate: it would leave open {opened}")
    return record


def certified_words(record: dict[str, Any]) -> list[str]:
    """What a certificate that was just checked shows, in few lines."""
    sizes = ", ".join(f"{name} = {size}" for name, size in record["tried"].items())
    tiles = ", ".join(each["of"] for each in record["layouts"])
    return [
        f"certified at {sizes}: right on a sample, on the emulator, without races",
        "its pipeline is the same in every schedule",
        f"no layout of {tiles} takes fewer wavefronts",
        *(f"not run: {each}" for each in other_sizes(record)),
    ]


def _launch(
    kernel: Kernel, function: EmulatedFunction, nest: MatrixNest, sizes: Mapping[Axis, int]
) -> dict[str, Any]:
    """What a launch is given: arrays, numbers and maps, in this order."""
    counts = {array.name: count for array, count in elements(nest.program, sizes).items()}
    others = [each for each in kernel.params if not isinstance(each, ArrayParam)]
    (entry,) = load(function.ptx).kernels
    return {
        "entry": entry,
        "grid": [int(evaluate(each, {})) for each in kernel.grid],
        "block": list(kernel.launched),
        "shared": launched_bytes(kernel),
        "arrays": [
            {"name": each.name, "type": each.dtype.value, "elements": counts[each.name]}
            for each in kernel.arrays
        ],
        "numbers": [{"name": each.name, "type": each.dtype.value} for each in others],
        "maps": [_map(each) for each in kernel.maps],
    }


def _map(map: MapParam) -> dict[str, Any]:
    sizes, strides = (
        [int(evaluate(each, {})) for each in some] for some in (map.sizes, map.strides)
    )
    return {
        "name": map.name, "array": map.array, "sizes": sizes, "strides": strides,
        "box": list(map.box), "swizzle": map.swizzle,
    }  # fmt: skip


def _proof(function: EmulatedFunction, nest: MatrixNest, short: Short) -> dict[str, Any]:
    """That a run of the kernel is the same in every schedule."""
    arrays = [
        np.zeros(count, array.dtype.numpy)
        for array, count in elements(nest.program, short.sizes).items()
    ]
    numbers = [each.dtype.numpy.type(1) for each in nest.program.parameters]
    launch = _launch(short.kernels[0], function, nest, short.sizes)
    packed = function.packed([*arrays, *numbers])
    told = function.launch(tuple(launch["grid"]), packed, races=True, prove=True)
    if told.proof is None or told.proof.reach is not Reach.ALL_DATA:
        why = "nothing" if told.proof is None else told.proof.reach.value
        raise CheckError(f"'{nest.whole.name}' is not proved for all schedules: {why}")
    grid, block = tuple(launch["grid"]), tuple(launch["block"])
    kernel = load(function.ptx).kernel(launch["entry"])
    found: dict[str, Any] = schedule_certificate(
        kernel.name, grid, block, told.proof, kernel.registers(prod(block))
    )
    return found


def _meaning(nest: MatrixNest, sizes: Mapping[Axis, int]) -> dict[str, Any]:
    if isinstance(nest, AttentionNest):
        return of_attention(nest.stated, sizes)
    if nest.product.kind == "tf32":
        raise UnsupportedError("there is no certificate of products of tf32 yet")
    return of_product(nest.product, sizes)


# -- layouts ---------------------------------------------------------------------------------------


def _layouts(nest: MatrixNest, tiling: Any, kernel: Kernel) -> list[dict[str, Any]]:
    """Those of tiles that tensor copies fill and wgmma reads, and that results leave through."""
    if isinstance(nest, AttentionNest):
        head = nest.stated.attention.head
        asked = [
            ("q_tile", "q_map", f"{tiling.queries}x{head}:f16:rows=64"),
            ("k_tile", "k_map", f"{tiling.keys}x{head}:f16:rows={tiling.keys}"),
            ("v_tile", "v_map", f"{tiling.keys}x{head}:f16:rows={head}:mn=1"),
        ]
        return [_layout(tile, map, f"wgmma:{text}", kernel) for tile, map, text in asked]
    p, found = nest.product, []
    for name, factor, side, taken in (
        ("a", p.a, tiling.rows, 64), ("b", p.b, tiling.columns, tiling.columns)
    ):  # fmt: skip
        along_k = factor.dense == "k"
        shape = f"{side}x{tiling.deep}" if along_k else f"{tiling.deep}x{side}"
        text = f"wgmma:{shape}:{ELEMENTS[factor.array.dtype.bytes]}:rows={taken}"
        text += "" if along_k else ":mn=1"
        found.append(_layout(f"{name}_tile", f"{name}_map", text, kernel))
    if tiling.boxes and p.is_turned:
        raise UnsupportedError("there is no certificate of results that leave in boxes of rows yet")
    if tiling.boxes:
        text = f"wgmma-c:{tiling.own}x{OUT}:f16"
        found.append(_layout("c_tile_0", "c_map", text, kernel))
    return found


def _layout(tile: str, map_name: str, text: str, kernel: Kernel) -> dict[str, Any]:
    """That of a tile, as its tensor map writes it, proved to be one of the best."""
    (map,) = (each for each in kernel.maps if each.name == map_name)
    klass = "wgmma" if text.startswith("wgmma:") else "tma"
    task = Task(pattern(text))
    solved = solve(task, klass)
    own = _as_written(map, task)
    mine = next((e for e in members(task, klass) if (task.addresses(e) == own).all()), None)
    answer = None if mine is None else task.answer(mine)
    if answer is None or answer.cost > solved.least:
        raise CheckError(f"the layout of '{tile}' is not known to be one of the best")
    return {"of": tile, "map": map_name} | layout_certificate(task, replace(solved, best=answer))


def _as_written(map: MapParam, task: Task) -> Any:
    """Where elements of a tile lie: boxes side by side, swizzled as the map says."""
    rows, columns, size = task.problem.rows, task.problem.columns, task.problem.element_bytes
    wide = map.box[-1]
    row, column = np.divmod(np.arange(rows * columns), columns)
    place = ((column // wide * rows + row) * wide + column % wide) * size
    return swizzled(place, map.swizzle) // size
