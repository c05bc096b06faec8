"""Arrays of .npy files: what NumPy wrote is read, whatever else is one error and no allocation."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.common.cli.commands import PTX
from tests.cli.conftest import Cli

from warploom.cli.npy import read_npy
from warploom.errors import ParseError

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
MUTANTS = 400  # the report that this answers tried 306, of which 21 were internal errors


def saved(path: Path, array: Any, version: tuple[int, int] | None = None) -> bytes:
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version)
    return path.read_bytes()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "<i8", "|u1", "|b1"])
def test_what_numpy_writes_is_read(
    tmp_path: Path, dtype: str, order: Any, version: tuple[int, int]
) -> None:
    array = np.asarray(np.arange(24).reshape(2, 3, 4) % 2 + 1, dtype, order=order)
    saved(tmp_path / "x.npy", array, version)
    found = read_npy(tmp_path / "x.npy", F32, 24)
    assert found.dtype == F32
    assert np.array_equal(found, np.load(tmp_path / "x.npy").ravel().astype(F32))
    saved(tmp_path / "one.npy", np.array(3.0), version)  # of no axis
    assert read_npy(tmp_path / "one.npy", F32, 1).tolist() == [3.0]


def header(text: str, data: bytes = b"", major: int = 1, minor: int = 0) -> bytes:
    length = len(text).to_bytes(2 if major == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([major, minor]) + length + text.encode("latin1") + data


PLAIN = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }"
WRONG = {
    "huge": header(PLAIN % ("<f4", False, (10**12,))),
    "huge in each axis": header(PLAIN % ("<f4", False, (10**9,) * 30)),
    "negative": header(PLAIN % ("<f4", False, (-8,)), bytes(32)),
    "negative twice": header(PLAIN % ("<f4", False, (-4, -2)), bytes(32)),
    "of objects": header(PLAIN % ("|O", False, (8,)), bytes(64)),
    "of text": header(PLAIN % ("<U4", False, (8,)), bytes(128)),
    "complex": header(PLAIN % ("<c8", False, (8,)), bytes(64)),
    "a type that is none": header(PLAIN % ("<f3", False, (8,)), bytes(24)),
    "structured": header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (8,)}"),
    "of true": header(PLAIN % ("<f4", False, "(True, 8)"), bytes(32)),
    "of a fraction": header(PLAIN % ("<f4", False, (8.0,)), bytes(32)),
    "no tuple": header(PLAIN % ("<f4", False, 8), bytes(32)),
    "order": header(PLAIN % ("<f4", 2, (8,)), bytes(32)),
    "one more key": header(PLAIN.replace("}", "'x': 1}") % ("<f4", False, (8,)), bytes(32)),
    "nested": header("{" * 5000 + "}" * 5000),
    "digits": header(PLAIN % ("<f4", False, f"({'9' * 9000},)")),
    "letters": header(PLAIN % ("<f4", False, "(8if,)"), bytes(32)),
    "truncated": header(PLAIN % ("<f4", False, (8,)), bytes(31)),
    "too long": header(PLAIN % ("<f4", False, (8,)), bytes(33)),
    "within the header": header(PLAIN % ("<f4", False, (8,)))[:40],
    "a header of four gigabytes": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    "version 4": header(PLAIN % ("<f4", False, (8,)), bytes(32), major=4),
    "version 1.1": header(PLAIN % ("<f4", False, (8,)), bytes(32), minor=1),
    "an archive": b"PK\x03\x04" + bytes(60),
    "empty": b"",
    "other elements": header(PLAIN % ("<f4", False, (7,)), bytes(28)),
}


@pytest.mark.parametrize("why", WRONG)
def test_what_is_wrong_is_one_error(tmp_path: Path, why: str, cli: Cli) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(WRONG[why])
    tracemalloc.start()
    with pytest.raises(ParseError, match=r"x\.npy"):
        read_npy(path, F32, 8)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    ran = cli("ptx", "run", str(PTX / "saxpy.ptx"), "--arg", f"f32[8]=@{path}")
    assert (ran.status, str(path) in ran.err) == (2, True)


def test_numbers_stay_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    for bad in ([0.5, 1.0], [np.nan, 1.0], [1e20, 1.0]):
        saved(path, np.array(bad))
        with pytest.raises(ParseError, match="no int32"):
            read_npy(path, I32, 2)
    saved(path, np.array([3.0, -4.0]))
    assert read_npy(path, I32, 2).tolist() == [3, -4]
    with pytest.raises(ParseError, match="no uint8"):
        read_npy(path, np.dtype(np.uint8), 2)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """One to three changes, most of them in the header."""
    found = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(min(len(found), 140)) if draw.random() < 0.9 else 0
        match draw.randrange(4):
            case 0:
                found[at] = draw.randrange(256)
            case 1:
                found[at] = draw.choice(b"0123456789,()'<>|fiuObc-LTe{}[]: ")
            case 2:
                found[at : at + draw.randint(1, 4)] = b""
            case _:
                found[at:at] = draw.choice([b"9", b"99999999999", b"-", b"(", b"O", b"\x00", b"L"])
        if not found:
            break
    return bytes(found)


def test_mutants_of_headers(tmp_path: Path) -> None:
    """Each is an error of ours, or is read as NumPy reads it."""
    path, draw, read = tmp_path / "x.npy", random.Random(26), 0
    said: list[str] = []
    kinds = ["<f4", ">i4", "<f8", "|u1"]
    arrays = [np.asarray(np.arange(8), kind) for kind in kinds]
    texts = [saved(path, each, version) for each in arrays for version in [(1, 0), (2, 0), (3, 0)]]
    texts += [saved(path, np.asfortranarray(np.arange(8.0).reshape(2, 4)))]
    for _ in range(MUTANTS):
        path.write_bytes(mutated(draw.choice(texts), draw))
        try:
            found = read_npy(path, F32, 8)
        except ParseError as error:
            said.append(error.message)
            continue
        read += 1
        with np.errstate(all="ignore"):
            assert np.array_equal(found, np.load(path).ravel().astype(F32), equal_nan=True)
    assert 0 < read < MUTANTS / 2
    assert all(str(path) in each for each in said)


def test_ways_to_start_an_array_are_listed(cli: Cli) -> None:
    ran = cli("ptx", "run", str(PTX / "saxpy.ptx"), "--arg", "f32[10]=zero")
    assert ran.status == 2
    assert "did you mean zeros? Known are zeros, ones, range, random, @FILE.npy" in ran.err
    ran = cli("ptx", "run", str(PTX / "saxpy.ptx"), "--arg", "float32[10]=zeros")
    assert "no type is called 'float32'" in ran.err
    assert "Known are f16, f32, f64" in ran.err
