"""Certificates of kernels by warp groups: what they show, and that forged ones do not hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.cli.test_schemas import schemas, wrong
from tests.loopnest.attention.test_stated import attend
from tests.loopnest.test_matrix import stated

from warploom.errors import CheckError, UnsupportedError
from warploom.kernel.dtype import DType, bf16, memory_of
from warploom.loopnest.ir import Program
from warploom.pipeline.exploring import explored
from warploom.pipeline.kernel_certificate import certified_words
from warploom.runtime.compile import can_compile
from warploom.trust.checked import digest
from warploom.trust.kernel import check_kernel
from warploom.trust.meaning import meant

pytestmark = pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
Record = dict[str, Any]
FIXES = ("rows=64", "columns=64", "deep=64", "stages=2", "consumers=1", "cluster=1", "boxes=0")


def certified(program: Program, strategy: str, *fixes: str) -> Record:
    found = explored(
        program, strategy=strategy, fix=fixes, model=True, store=False, evaluations=1
    )  # fmt: skip
    return found.certificate()


@cache
def kept() -> str:
    program = stated((40, 72, 72), after=True)
    return json.dumps(certified(program, "warp-group-tile", *FIXES))


def plain() -> Record:
    found: Record = json.loads(kept())
    return found


def test_its_schema_allows_it() -> None:
    assert wrong(plain(), schemas()["certificate of a kernel"]) == []


def test_it_says_what_was_checked() -> None:
    found = check_kernel(plain())
    assert not found.open
    assert "at m = 40, n = 72, k = 72, without races" in found.shown[0]
    assert "the same in every schedule" in found.shown[1]
    assert sum("no layout whatever costs less" in each for each in found.shown) == 2
    assert "other inputs than the sample" in found.not_covered
    assert "data races" not in found.not_covered
    # The axes are as long as was asked for: nothing is said of another kernel.
    assert not any("its text differs" in each for each in found.not_covered)
    assert len(certified_words(plain())) == 3


def test_of_a_longer_axis_the_text_is_compared() -> None:
    record = plain()
    record["asked"] |= {"k": 4096}
    record["texts"]["asked"] = record["texts"]["asked"].replace("72", "4096") + "// more\n"
    found = check_kernel(record | {"digest": digest(record)})
    (said,) = (each for each in found.not_covered if "k = 4096" in each)
    assert "in numbers, and in 1 of" in said


def other_sum(record: Record) -> None:
    record["meaning"]["a"]["steps"][2] = 0


def without_relu(record: Record) -> None:
    def changed(tree: Any) -> Any:
        if not isinstance(tree, list):
            return tree
        return changed(tree[1]) if tree[0] == "max" else [changed(each) for each in tree]

    record["meaning"]["after"] = changed(record["meaning"]["after"])


def fewer_stored(record: Record) -> None:
    record["meaning"]["sizes"][1] -= 1


def other_code(record: Record) -> None:
    before = record["ptx"]
    record["ptx"] = before.replace("max.f32", "min.f32", 1).replace("max.NaN.f32", "min.NaN.f32", 1)
    assert record["ptx"] != before


def other_proof(record: Record) -> None:
    agent = record["proof"]["batches"][0]["agents"][-1]
    first = next(each for each in agent["events"] if each[0] == "come")
    agent["events"].remove(first)
    record["proof"]["digest"] = digest(record["proof"])


def other_swizzle(record: Record) -> None:
    record["launch"]["maps"][0]["swizzle"] = 64


def near_to_all(record: Record) -> None:
    record["near"] = 1.0


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (other_sum, "not what it should be"),
        (without_relu, "not what it should be"),
        (fewer_stored, "changed where nothing is stored"),
        (other_code, "not what it should be"),
        (other_proof, "does not hold"),
        (other_swizzle, "tensor copies write another layout"),
        (near_to_all, "near to nothing"),
    ],
)
def test_what_is_forged_does_not_hold(forge: Callable[[Record], None], said: str) -> None:
    record = plain()
    forge(record)
    with pytest.raises(CheckError, match="changed after it was written"):
        check_kernel(record)
    with pytest.raises(CheckError, match=said):
        check_kernel(record | {"digest": digest(record)})


def test_attention_is_certified() -> None:
    record = certified(attend((1, 1), 40, 40, 64, True).done(), "fused-attention", "keys=32")
    assert record["meaning"]["causal"]
    assert [each["of"] for each in record["layouts"]] == ["q_tile", "k_tile", "v_tile"]


def test_loops_have_none() -> None:
    program = stated((40, 72, 72))
    with pytest.raises(UnsupportedError, match="as loops: it has no pipeline to prove"):
        certified(program, "none")


def test_a_product_means_what_numpy_says() -> None:
    """Batches, steps of all kinds, and what comes after the sum."""
    random = np.random.default_rng(0)
    a, b = (memory_of(random.standard_normal(60), bf16) for _ in range(2))
    said = {
        "is": "product", "sizes": [2, 3, 4, 5],
        "a": {"array": "A", "steps": [15, 5, 1]}, "b": {"array": "B", "steps": [20, 1, 4]},
        "out": {"array": "C", "offset": 1, "steps": [12, 4, 1]},
        "after": ["cast", "bfloat16", ["*", ["sum"], ["parameter", "alpha"]]],
    }  # fmt: skip
    types = {"A": bf16, "B": bf16, "C": DType.F32}
    arrays = {"A": a, "B": b, "C": np.zeros(25, np.float32)}
    name, places, wanted = meant(said, arrays, {"alpha": 2.0}, types)
    left, right = ((each.astype(np.uint32) << 16).view(np.float32) for each in (a, b))
    product = 2.0 * left.reshape(4, 3, 5)[:2].astype(float) @ right[:40].reshape(2, 5, 4)
    assert name == "C"
    np.testing.assert_array_equal(places, np.arange(1, 25))
    np.testing.assert_allclose(wanted.reshape(2, 3, 4), product, rtol=2**-8)
    with pytest.raises(CheckError, match="outside an array"):
        meant(said | {"sizes": [3, 3, 4, 5]}, arrays, {"alpha": 2.0}, types)
    with pytest.raises(CheckError, match="what is not known"):
        meant(said | {"after": ["eval", "1"]}, arrays, {}, types)
