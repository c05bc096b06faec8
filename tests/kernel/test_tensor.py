"""Products on tensor cores: what they mean, what they have to be, and what PTX makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from warploom.emit.c import c as to_c
from warploom.emit.cuda import cuda as to_cuda
from warploom.emit.opencl import opencl as to_opencl
from warploom.errors import CheckError, EmitError
from warploom.index.ir import Const, Var
from warploom.kernel.check import check
from warploom.kernel.dtype import DType, bf16, coded, decoded, e4m3, e5m2, f16, i8, u8
from warploom.kernel.evaluate import run
from warploom.kernel.ir import (
    ArrayParam,
    Cell,
    If,
    Kernel,
    Load,
    Registers,
    Stmt,
    Store,
    TensorKind,
    TensorProduct,
)
from warploom.kernel.tensor import DEPTH, leading_bits, product, types_of, widths
from warploom.machine.rounding import bf16_to_single, single_to_bf16
from warploom.runtime.compile import can_compile
from warploom.runtime.emulated import EmulatedFunction

F32 = DType.F32
LANE, GROUP = Var("lane") % 4, Var("lane") // 4


def cell(name: str, at: int) -> Cell:
    return Cell(name, Const(at), F32)


def body() -> list[Stmt]:
    """Each warp multiplies a 16 × 8 matrix by an 8 × 8 one and adds what was there."""
    made: list[Stmt] = [Registers(name, F32, size) for name, size in
                        (("a", 4), ("b", 2), ("c", 4))]  # fmt: skip
    warp = Var("warp")
    for at in range(4):
        row, column = GROUP + 8 * (at % 2), LANE + 4 * (at // 2)
        made.append(Load(cell("a", at), "A", warp * 128 + row * 8 + column))
        row, column = GROUP + 8 * (at // 2), LANE * 2 + at % 2
        made.append(Load(cell("c", at), "C", warp * 128 + row * 8 + column))
    made += [Load(cell("b", at), "B", warp * 64 + (LANE + 4 * at) * 8 + GROUP) for at in range(2)]
    made.append(TensorProduct(cell("c", 0), cell("a", 0), cell("b", 0)))
    for at in range(4):
        row, column = GROUP + 8 * (at // 2), LANE * 2 + at % 2
        made.append(Store("C", warp * 128 + row * 8 + column, cell("c", at)))
    return made


def kernel(*statements: Stmt, threads: int = 64, warp_size: int = 32) -> Kernel:
    arrays = (("A", 256, True), ("B", 128, True), ("C", 256, False))
    params = tuple(ArrayParam(name, F32, Const(size), const) for name, size, const in arrays)
    one = Const(1)
    block = (threads, 1, 1)
    return Kernel("k", params, block, (one, one, one), statements or tuple(body()),
                  warp_size=warp_size)  # fmt: skip


def given(seed: int, whole: bool) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    if whole:
        return [random.integers(-64, 64, size).astype(np.float32) for size in (256, 128, 256)]
    return [random.standard_normal(size).astype(np.float32) for size in (256, 128, 256)]


def wanted(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    made = a.reshape(2, 16, 8).astype(np.float64) @ b.reshape(2, 8, 8) + c.reshape(2, 16, 8)
    return made.astype(np.float32).reshape(-1)


@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_are_multiplied_exactly(seed: int) -> None:
    a, b, c = given(seed, whole=True)
    expected = wanted(a, b, c)
    assert not run(kernel(), [a, b, c]).races
    assert np.array_equal(c, expected)


def test_factors_have_the_leading_bits_only() -> None:
    a, b, c = given(4, whole=False)
    expected = wanted(a, b, c)
    cut = [(each.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for each in (a, b)]
    exact = wanted(cut[0], cut[1], c)
    run(kernel(), [a, b, c])
    assert np.allclose(c, expected, rtol=2e-2, atol=2e-2)
    assert not np.allclose(c, expected, rtol=1e-6, atol=1e-6)
    assert np.allclose(c, exact, rtol=1e-5, atol=1e-5)


def test_the_text_is_one_instruction() -> None:
    assert to_cuda(kernel()).count("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32") == 1


@pytest.mark.parametrize("emit", [to_c, to_opencl])
def test_other_languages_refuse(emit: object) -> None:
    with pytest.raises(EmitError, match="tensor cores"):
        emit(kernel())  # type: ignore[operator]


def test_lanes_meet() -> None:
    apart = [
        If(Var("lane").lt(8), (each,)) if isinstance(each, TensorProduct) else each
        for each in body()
    ]
    with pytest.raises(CheckError, match="differs between lanes"):
        check(kernel(*apart))


def test_registers_are_there_and_set() -> None:
    short = [Registers("b", F32, 1) if each == Registers("b", F32, 2) else each for each in body()]
    with pytest.raises(CheckError, match="'b'"):
        check(kernel(*short))
    unset = [each for each in body() if not (isinstance(each, Load) and each.array == "B")]
    with pytest.raises(CheckError, match="read before it is set"):
        check(kernel(*unset))


def test_warps_are_whole() -> None:
    with pytest.raises(CheckError, match="partial warp"):
        check(kernel(threads=48))
    with pytest.raises(CheckError, match="warps of 16 lanes"):
        check(kernel(warp_size=16))


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
def test_compiled_ptx_does_the_same() -> None:
    first, second = given(7, whole=False), given(7, whole=False)
    run(kernel(), first)
    EmulatedFunction(kernel())(second, (1, 1, 1))
    assert np.array_equal(first[2], second[2])


# -- factors of bf16 -------------------------------------------------------------------------------


def rounded_body() -> list[Stmt]:
    """The same of a 16 × 16 matrix and a 16 × 8 one, whose factors are rounded first."""
    made: list[Stmt] = [Registers(name, F32, size) for name, size in
                        (("a", 8), ("b", 4), ("c", 4))]  # fmt: skip
    for at in range(8):
        row, column = GROUP + 8 * (at // 2 % 2), LANE * 2 + at % 2 + 8 * (at // 4)
        made.append(Load(cell("a", at), "A", row * 16 + column))
    for at in range(4):
        made.append(Load(cell("b", at), "B", (LANE * 2 + at % 2 + 8 * (at // 2)) * 8 + GROUP))
        row, column = GROUP + 8 * (at // 2), LANE * 2 + at % 2
        made.append(Load(cell("c", at), "C", row * 8 + column))
    made.append(TensorProduct(cell("c", 0), cell("a", 0), cell("b", 0), "bf16"))
    for at in range(4):
        row, column = GROUP + 8 * (at // 2), LANE * 2 + at % 2
        made.append(Store("C", row * 8 + column, cell("c", at)))
    return made


def test_rounded_factors_are_multiplied_exactly() -> None:
    a, b, c = given(5, whole=True)
    expected = a.reshape(16, 16) @ b.reshape(16, 8) + c[:128].reshape(16, 8)
    assert not run(kernel(*rounded_body(), threads=32), [a, b, c]).races
    assert np.array_equal(c[:128].reshape(16, 8), expected)


def test_factors_are_rounded_to_the_nearest() -> None:
    a, b, c = given(6, whole=False)
    near = [bf16_to_single(single_to_bf16(each)) for each in (a, b)]
    exact = near[0].reshape(16, 16) @ near[1].reshape(16, 8) + c[:128].reshape(16, 8)
    run(kernel(*rounded_body(), threads=32), [a, b, c])
    assert np.allclose(c[:128].reshape(16, 8), exact, rtol=1e-5, atol=1e-5)
    cut = [leading_bits(each, "bf16") for each in (a, b)]
    assert any((one != other).any() for one, other in zip(near, cut, strict=True))


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
def test_compiled_rounding_does_the_same() -> None:
    first, second = given(8, whole=False), given(8, whole=False)
    for each in (first, second):
        each[0][:4] = np.inf, -0.0, 3.3961775e38, 1e-40  # the third one rounds to infinity
        each[1][:2] = 0.0, 1e-42
    made = kernel(*rounded_body(), threads=32)
    run(made, first)
    function = EmulatedFunction(made)
    assert function.ptx.count("cvt.rn.bf16x2.f32") == 6
    function(second, (1, 1, 1))
    assert np.array_equal(first[2].view(np.uint32), second[2].view(np.uint32))


@pytest.mark.parametrize("kind", ["tf32", "bf16"])
def test_numbers_that_signal_are_no_numbers(kind: TensorKind) -> None:
    """Without a warning, which a test takes for an error."""
    signalling = np.full((1, 32, 8), 0x7FA00000, np.uint32).view(np.float32)
    target, a, b = (signalling[..., :width] for width in widths(kind))
    assert np.isnan(product(target, a, b, kind)).all()


# -- factors of their own types --------------------------------------------------------------------

KINDS: tuple[TensorKind, ...] = ("f16", "bf16", "e4m3", "e5m2", "i8", "u8")
TYPES = {"f16": f16, "bf16": bf16, "e4m3": e4m3, "e5m2": e5m2, "i8": i8, "u8": u8}


def narrow(kind: TensorKind, change: dict[str, DType] | None = None) -> Kernel:
    """A warp multiplies 16 × k by k × 8: elements of a row of A, and of a column of B, lie in pairs
    or fours. B is given by columns."""
    depth, (sums, factors) = DEPTH[kind], types_of(kind)
    held = {"a": factors[0], "b": factors[0], "c": sums} | (change or {})
    sizes = dict(zip("cab", widths(kind), strict=True))
    made: list[Stmt] = [Registers(each, held[each], sizes[each]) for each in "abc"]
    beside = depth // 8

    def at(name: str, register: int) -> Cell:
        return Cell(name, Const(register), held[name])

    for k in range(sizes["a"]):
        row = GROUP + 8 * (k // beside % 2)
        column = LANE * beside + k % beside + depth // 2 * (k // beside // 2)
        made.append(Load(at("a", k), "A", row * depth + column))
    for k in range(sizes["b"]):
        row = LANE * beside + k % beside + depth // 2 * (k // beside)
        made.append(Load(at("b", k), "B", GROUP * depth + row))
    places = [(GROUP + 8 * (k // 2)) * 8 + LANE * 2 + k % 2 for k in range(4)]
    made += [Load(at("c", k), "C", place) for k, place in enumerate(places)]
    made.append(TensorProduct(at("c", 0), at("a", 0), at("b", 0), kind))
    made += [Store("C", place, at("c", k)) for k, place in enumerate(places)]
    params = tuple(
        ArrayParam(name, held[name.lower()], Const(size), name != "C")
        for name, size in (("A", 16 * depth), ("B", 8 * depth), ("C", 128))
    )
    one = Const(1)
    return Kernel("k", params, (32, 1, 1), (one, one, one), tuple(made))


def drawn(kind: TensorKind, seed: int, whole: bool) -> list[np.ndarray]:
    random, dtype = np.random.default_rng(seed), TYPES[kind]
    sizes = 16 * DEPTH[kind], 8 * DEPTH[kind]
    if not dtype.is_code:
        low, high = (-128, 128) if dtype.is_signed else (0, 256)
        factors = [random.integers(low, high, size).astype(dtype.numpy) for size in sizes]
        return [*factors, random.integers(-(1 << 31), 1 << 31, 128).astype(np.int32)]
    if whole:
        numbers = [random.integers(-4, 5, size).astype(np.float32) for size in (*sizes, 128)]
        return [*(coded(each, dtype).view(dtype.numpy) for each in numbers[:2]), numbers[2]]
    codes = [random.integers(0, 1 << 8 * dtype.bytes, size) for size in sizes]
    bits = [each.astype(dtype.storage).view(dtype.numpy) for each in codes]
    return [*bits, random.standard_normal(128).astype(np.float32)]


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_their_own_types_are_exact_where_sums_are(kind: TensorKind) -> None:
    a, b, c = drawn(kind, 1, whole=True)
    dtype = TYPES[kind]
    left, right = (decoded(each, dtype) if dtype.is_code else each for each in (a, b))
    depth = DEPTH[kind]
    exact = left.reshape(16, depth).astype(np.int64) @ right.reshape(8, depth).astype(np.int64).T
    wanted = (exact + c.reshape(16, 8).astype(np.int64)).astype(c.dtype)
    assert not run(narrow(kind), [a, b, c]).races
    assert np.array_equal(c.reshape(16, 8), wanted)


@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_products_of_all_codes_are_the_same(kind: TensorKind) -> None:
    """Infinities, NaNs and the smallest numbers among them."""
    first, second = drawn(kind, 2, whole=False), drawn(kind, 2, whole=False)
    run(narrow(kind), first)
    EmulatedFunction(narrow(kind))(second, (1, 1, 1))
    assert np.array_equal(first[2].view(np.uint32), second[2].view(np.uint32))


def test_types_of_a_product_are_those_of_its_kind() -> None:
    for kind, change, said in (
        ("f16", {"a": bf16, "b": bf16}, "'a' of bf16 in a product of f16"),
        ("f16", {"b": e4m3}, "mixes f16 and e4m3"),
        ("i8", {"c": F32}, "'c' of f32 in a product of i8"),
        ("e5m2", {"c": f16}, "'c' of f16 in a product of e5m2"),
        ("u8", {"a": i8, "b": i8}, "'a' of i8 in a product of u8"),
    ):
        with pytest.raises(CheckError, match=said):
            check(narrow(kind, change))  # type: ignore[arg-type]
    wrong = TensorProduct(cell("c", 0), cell("a", 0), cell("b", 0), "f8")  # type: ignore[arg-type]
    with pytest.raises(CheckError, match="takes factors for 'f8'"):
        check(kernel(*(wrong if isinstance(each, TensorProduct) else each for each in body())))
