"""Files of Triton's IR: what is read, what it costs beside Triton's own PTX, what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warploom.errors import WarploomError
from warploom.layout.conversion.traffic import Traffic, traffic_of
from warploom.layout.formats.ttgir import read_ttgir

EXAMPLES = Path(__file__).parents[2] / "examples" / "ttgir"
MODULE = 'module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {\n'


def traffic(name: str) -> Traffic:
    file = EXAMPLES / f"{name}.ttgir"
    return traffic_of(read_ttgir(file.read_text(), file.name))


def counted(found: Traffic, operation: str) -> dict[str, int]:
    """Instructions of a warp, by their name, over all such operations."""
    counts: dict[str, int] = {}
    for row in found.rows:
        if row.operation.name == f"ttg.{operation}":
            counts[row.way] = counts.get(row.way, 0) + row.instructions
    return counts


# What Triton 3.9's PTX of the same kernels has: instructions of a thread.
@pytest.mark.parametrize(
    ("name", "loads", "copies"),
    [
        ("matmul_sm80", {"ldmatrix.x4": 6, "ldmatrix.x4.trans": 6}, 8),
        ("flash_sm80", {"ldmatrix.x4": 20, "ldmatrix.x4.trans": 16}, 16),
        ("matmul_sm90", {}, 8),
        ("flash_sm90", {}, 16),
    ],
)
def test_accesses_are_those_that_triton_emits(
    name: str, loads: dict[str, int], copies: int
) -> None:
    found = traffic(name)
    assert counted(found, "local_load") == loads
    assert counted(found, "async_copy_global_to_local") == {"cp.async.v8": copies}
    assert all(row.wavefronts == row.least for row in found.rows)  # Triton's swizzles are the best
    assert not any(tile.better for tile in found.tiles)


def test_conversions() -> None:
    ways = {
        row.operation.loops: row.way
        for row in traffic("flash_sm80").rows
        if row.operation.name == "ttg.convert_layout"
    }
    assert ways[1] == "nothing"  # the result of a product is the operand of the next
    assert "stmatrix" not in ways[0]  # sm_80 has none
    last = [row for row in traffic("flash_sm90").rows if "convert" in row.operation.name]
    assert any("stmatrix" in row.way for row in last)


def test_a_tile_that_conflicts_gets_a_better_layout() -> None:
    found = traffic("transpose_sm90")
    assert [row.operation.name for row in found.rows] == [
        "ttg.local_load", "ttg.convert_layout", "ttg.local_store",
    ]  # fmt: skip
    assert (found.rows[0].wavefronts, found.rows[0].least) == (2048, 128)
    (tile,) = found.tiles
    assert (tile.wavefronts, tile.least, tile.better_wavefronts) == (2176, 384, 384)
    again = (EXAMPLES / "transpose_sm90.ttgir").read_text()
    start = again.index("#shared = ") + len("#shared = ")
    changed = again[:start] + tile.better_attribute + again[again.index("\n", start) :]
    better = traffic_of(read_ttgir(changed))
    assert better.tiles[0].wavefronts == 384
    assert not better.tiles[0].better


def test_loops_and_parts_of_tiles_are_seen() -> None:
    module = read_ttgir((EXAMPLES / "matmul_sm80.ttgir").read_text())
    loads = [each for each in module.operations if each.name == "ttg.local_load"]
    assert [each.loops for each in loads] == [0, 0, 1, 1, 1, 1]
    assert loads[0].types[0].shape == (64, 16)
    assert loads[0].types[0].whole == (64, 32)
    assert (module.warps, module.lanes, module.target) == (4, 32, 80)


LINE = "%1 = ttg.convert_layout %0 : tensor<32xf32, #a> -> tensor<32xf32, #a>\n"
BAD = {
    "": "no TTGIR",
    "hello": "no TTGIR",
    MODULE + "}\n}": "closes nothing",
    MODULE + LINE: "#a is not defined",
    MODULE + "%1 = ttg.convert_layout %0 : tensor<32xf32, #a -> ": "not closed",
    "#a = #ttg.blocked<{order = [}>": "should stand here",
    "#a = " + "#ttg.slice<{dim = 0, parent = " * 80: "deep",
    MODULE + LINE.replace("32xf32", "9999999999xf32"): "no shape",
    "#a = #ttg.linear<{" + "register = [" * 3: "should stand here",
    MODULE.replace("= 32", "= 64"): "64 lanes",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_end_in_one_located_error(text: str) -> None:
    with pytest.raises(WarploomError, match=BAD[text]):
        traffic_of(read_ttgir(text, "bad.ttgir"))


@pytest.mark.parametrize(
    ("tile", "why"),
    [
        ("48xf32", "powers of two"), ("32xi4", "no whole bytes"), ("536870912xf32", "elements"),
        ("32x32xf32", "coordinates|sizes"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_said(tile: str, why: str) -> None:
    alias = "#a = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = []}>\n"
    text = alias + MODULE + LINE.replace("32xf32", tile)
    (row,) = traffic_of(read_ttgir(text)).rows
    assert re.search(why, row.unknown), row.unknown


@pytest.mark.parametrize(
    ("tile", "whole", "message"),
    [
        ("32x64", "", "a tensor of 64x64 and a tile of 32x64"),
        ("128x64", "", "a tensor of 64x64 and a tile of 128x64"),
        ("64", "", "a tensor of 64x64 and a tile of 64"),
        ("64x64", ", 96x64", "64x64 is no part of 96x64"),
    ],
)
def test_a_tensor_and_its_tile_have_one_shape(tile: str, whole: str, message: str) -> None:
    text = (EXAMPLES / "transpose_sm90.ttgir").read_text()
    other = text.replace("memdesc<64x64xf32, #shared, #smem, mutable", f"memdesc<{tile}xf32, "
                         f"#shared, #smem, mutable{whole}")  # fmt: skip
    with pytest.raises(WarploomError, match=message) as error:
        traffic_of(read_ttgir(other))
    assert error.value.span is not None
    assert error.value.span.line == 22


def test_a_module_for_64_lanes_is_counted_on_its_machine() -> None:
    """The outer operations have as many instructions as Triton 3.9's assembly of the file."""
    found = traffic("matmul_gfx942")
    assert (found.machine.name, found.module.lanes) == ("gfx942", 64)
    issued = {row.operation.line: (row.way, row.instructions) for row in found.rows}
    assert issued == {
        64: ("st.v4", 2), 66: ("st.v8", 1), 71: ("ld.v4", 4), 75: ("ld", 16), 86: ("st.v4", 2),
        88: ("st.v8", 1), 94: ("ld.v4", 4), 95: ("ld", 16),
    }  # fmt: skip
    assert all(row.wavefronts >= row.least > 0 for row in found.rows)
    assert [tile.wavefronts for tile in found.tiles] == [192, 320]


def test_a_module_for_an_unknown_machine_is_refused() -> None:
    text = (EXAMPLES / "matmul_gfx942.ttgir").read_text()
    with pytest.raises(WarploomError, match="a module for gfx906"):
        traffic_of(read_ttgir(text.replace("gfx942", "gfx906")))
    with pytest.raises(WarploomError, match="warps of 32 lanes"):
        traffic_of(read_ttgir(text.replace('threads-per-warp" = 64', 'threads-per-warp" = 32')))


# -- loops, warps, blocks and views ----------------------------------------------------------------

LAYOUTS = """\
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#one = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#turned = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
"""  # noqa: E501
CONVERTED = "%1 = ttg.convert_layout %0 : tensor<64x64xf32, #rows> -> tensor<64x64xf32, #columns>"
TILE, TURNED = (f"!ttg.memdesc<64x64xf32, #{n}, #smem, mutable>" for n in ("shared", "turned"))
STORED = f"ttg.local_store %0, %1 : tensor<64x64xf32, #rows> -> {TILE}"
VIEWED = f"%2 = ttg.memdesc_trans %1 {{order = array<i32: 1, 0>}} : {TILE} -> {TURNED}"
LOADED = f"%3 = ttg.local_load %2 : {TURNED} -> tensor<64x64xf32, #rows>"


def module(*lines: str, layouts: str = LAYOUTS) -> str:
    return layouts + "\n".join((*lines, "}", ""))


def traffic_in(*lines: str, layouts: str = LAYOUTS) -> Traffic:
    return traffic_of(read_ttgir(module(*lines, layouts=layouts)))


def test_both_regions_of_a_while_are_in_the_loop() -> None:
    found = traffic_in(
        CONVERTED,
        "%4 = scf.while (%5 = %6) : (i32) -> i32 {", CONVERTED, "} do {",
        "^bb0(%7: i32):", "scf.if %8 {", CONVERTED, "} else {", CONVERTED, "}", CONVERTED, "}",
        "scf.if %8 {", CONVERTED, "} else {", CONVERTED, "}",
    )  # fmt: skip
    loops = {row.operation.line - 8: row.operation.loops for row in found.rows}
    assert loops == {1: 0, 3: 1, 7: 1, 9: 1, 11: 1, 14: 0, 16: 0}


def test_a_partition_has_warps_of_its_own() -> None:
    own = CONVERTED.replace("#rows", "#one").replace("#columns", "#one")
    found = traffic_in(
        "ttg.warp_specialize(%9)", "default {", CONVERTED, "}",
        "partition0(%10: i32) num_warps(1) {", own, "} : (i32) -> ()", CONVERTED,
    )  # fmt: skip
    assert [row.operation.warps for row in found.rows] == [4, 4, 1]
    with pytest.raises(WarploomError, match="a layout of 1 warps, and there are 4"):
        traffic_in(own)


@pytest.mark.parametrize(
    ("fact", "other", "message"),
    [
        ('num-warps" = 4', 'num-warps" = 8', "a layout of 4 warps, and there are 8"),
        ('num-ctas" = 1', 'num-ctas" = 2', "a layout of 1 blocks, and there are 2"),
    ],
)
def test_layouts_are_for_the_threads_of_their_module(fact: str, other: str, message: str) -> None:
    for line in (CONVERTED, STORED):
        with pytest.raises(WarploomError, match=message) as error:
            traffic_in(line, layouts=LAYOUTS.replace(fact, other))
        assert error.value.span is not None
        assert error.value.span.line == 9


def test_a_block_of_a_cluster_moves_its_own_part() -> None:
    layouts = LAYOUTS.replace('num-ctas" = 1', 'num-ctas" = 2')
    halves = layouts.replace("order = [1, 0]}>", "order = [1, 0], CGALayout = [[1, 0]]}>")
    (row,) = traffic_in(STORED, layouts=halves).rows
    assert (row.wavefronts, row.least) == (64, 64)  # half of the tile's 128
    mixed = halves.replace("maxPhase = 1, order = [1, 0], CGALayout = [[1, 0]]",
                           "maxPhase = 1, order = [1, 0], CGALayout = [[0, 1]]")  # fmt: skip
    (row,) = traffic_in(STORED, layouts=mixed).rows
    assert "in another way than the tile" in row.unknown


def test_views_of_a_tile_are_judged_together() -> None:
    """A store by rows and a load by columns through a view: what transpose_sm90 has in one type."""
    (tile,) = traffic_in(STORED, VIEWED, LOADED).tiles
    assert tile.lines == (9, 11)
    assert (tile.wavefronts, tile.least, tile.better_wavefronts) == (2176, 384, 384)
    both = traffic_in(STORED, LOADED).tiles  # without the view they are two tiles
    assert [each.wavefronts for each in both] == [128, 2048]


@pytest.mark.parametrize(
    ("line", "user"),
    [
        (f"ttng.async_tma_copy_global_to_local %5 %2, %6 : {TURNED}", "ttng.async_tma_copy_global"),
        (f"%7 = ttg.local_gather %2[%8] : {TURNED}, tensor<64x64xi32, #rows> -> "
         "tensor<64x64xf32, #rows>", "ttg.local_gather"),
        (f"%7 = ttg.memdesc_reinterpret %2 : {TURNED} -> !ttg.memdesc<4096xf32, #flat, #smem, "
         "mutable>\n%9 = ttg.local_load %7 : !ttg.memdesc<4096xf32, #flat, #smem, mutable> -> "
         "tensor<4096xf32, #ttg.linear<{register = [[1], [2], [256], [512], [1024]], lane = [[4], "
         "[8], [16], [32], [64]], warp = [[128], [2048]], block = []}>>",
         "ttg.memdesc_reinterpret"),
    ],
)  # fmt: skip
def test_what_is_used_in_other_ways_keeps_its_layout(line: str, user: str) -> None:
    tile = traffic_in(STORED, VIEWED, LOADED, line).tiles[0]
    assert tile.bound.startswith(user)
    assert not tile.better


def test_a_reshaped_tile_is_the_same_tile() -> None:
    shape = "4096xf32, #flat, #smem, mutable>"
    view = f"%2 = ttg.memdesc_reshape %1 : {TILE} -> !ttg.memdesc<{shape}"
    lanes = "#ttg.linear<{register = [[1], [2], [4], [8], [16]], lane = [[32], [64], [128], [256], "
    lanes += "[512]], warp = [[1024], [2048]], block = []}>"
    load = f"%3 = ttg.local_load %2 : !ttg.memdesc<{shape} -> tensor<4096xf32, {lanes}>"
    (tile,) = traffic_in(STORED, view, load).tiles
    assert tile.lines == (9, 11)
    assert tile.wavefronts > tile.better_wavefronts >= tile.least > 0


def test_a_view_that_moves_elements_is_refused() -> None:
    same = VIEWED.replace("#turned", "#shared")
    with pytest.raises(WarploomError, match="gives its tile the layout") as error:
        traffic_in(STORED, same, LOADED)
    assert error.value.span is not None
    assert error.value.span.line == 10


# -- what is not known, and what a GPU does not have -----------------------------------------------

MMA = "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>\n"  # noqa: E501
SWIZZLED = "#apart = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>\n"
PRODUCT = "tensor<64x64xf16, #mma>"
APART = "!ttg.memdesc<64x64xf16, #apart, #smem, mutable>"
OPERAND = "tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>"


@pytest.mark.parametrize(
    ("target", "store", "load"),
    [
        ("cuda:70", "st.v2", "ld.v2"), ("cuda:75", "st.v2", "ldmatrix.x4"),
        ("cuda:80", "st.v2", "ldmatrix.x4"), ("cuda:90", "stmatrix.x4", "ldmatrix.x4"),
    ],
)  # fmt: skip
def test_only_matrix_instructions_that_the_gpu_has(target: str, store: str, load: str) -> None:
    layouts = MMA + SWIZZLED + LAYOUTS.replace("cuda:90", target)
    found = traffic_in(
        f"ttg.local_store %0, %1 : {PRODUCT} -> {APART}",
        f"%2 = ttg.local_load %1 : {APART} -> {OPERAND}",
        layouts=layouts,
    )
    ways = {row.operation.name: row.way for row in found.rows}
    assert (ways["ttg.local_store"], ways["ttg.local_load"]) == (store, load)


def test_a_tile_with_an_access_that_was_not_counted_keeps_its_layout() -> None:
    """Another layout may be worse for what nobody counted: here blocks share it otherwise."""
    layouts = LAYOUTS.replace('num-ctas" = 1', 'num-ctas" = 2')
    halves = layouts.replace("order = [1, 0]}>", "order = [1, 0], CGALayout = [[1, 0]]}>")
    halves = "#other" + halves.splitlines()[0].removeprefix("#rows").replace(
        "[[1, 0]]", "[[0, 1]]") + "\n" + halves  # fmt: skip
    narrow = "[64x64xf32, #rows>".replace("[", "tensor<")
    other = narrow.replace("#rows", "#other")
    loads = [f"%3 = ttg.local_load %1 : {TILE} -> {each}" for each in (narrow, other)]
    (tile,) = traffic_in(loads[0], layouts=halves).tiles
    assert not tile.bound
    found = traffic_in(*loads, layouts=halves)
    assert any(row.unknown for row in found.rows)
    assert found.tiles[0].bound == "ttg.local_load in line 11, which was not counted,"


def test_threads_may_load_more_than_they_have_registers() -> None:
    """An operand of products by single multiplications: 512 elements of each thread."""
    operand = "#ttg.dot_op<{opIdx = 0, parent = #rows}>"
    load = f"%2 = ttg.local_load %1 : {TILE} -> tensor<64x64xf32, {operand}>"
    (row,) = traffic_in(load).rows
    assert (row.way, row.instructions) == ("ld.v4", 128)
    text = f"%3 = ttg.convert_layout %2 : tensor<64x64xf32, {operand}> -> tensor<64x64xf32, #rows>"
    (row,) = traffic_in(text).rows
    assert "a thread would hold 512 elements or words" in row.unknown
