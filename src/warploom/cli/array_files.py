"""Arrays that a command line names by file: .npy, .npz with or without a name, .pt of PyTorch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from warploom.cli.npy import read_archive, read_array
from warploom.errors import AbsentError, ParseError, one_of
from warploom.without_gpu.arrays import memory_of

KINDS = ".npy, .npz, .npz:NAME and .pt"


def read_file(text: str) -> Any:
    """The array of `x.npy`, of `x.npz` (`x.npz:NAME` where it has several), or of `x.pt`."""
    whole, named, name = text.rpartition(".npz:")
    if named:
        return _member(Path(f"{whole}.npz"), name)
    path = Path(text)
    match path.suffix:
        case ".npy":
            return read_array(path)
        case ".npz":
            return _member(path, "")
        case ".pt" | ".pth":
            return _tensor(path)
    raise ParseError(f"'{text[:80]}' is no file of arrays", advice=f"known are {KINDS}")


def _member(path: Path, name: str) -> Any:
    arrays = read_archive(path)
    if name:
        if name not in arrays:
            raise ParseError(f"'{path}' has no array '{name[:40]}'", advice=one_of(name, arrays))
        return arrays[name]
    if len(arrays) != 1:
        listed = ", ".join(f"{path}:{each}" for each in arrays) or "none"
        raise ParseError(f"'{path}' has {len(arrays)} arrays", advice=f"name one: {listed}")
    return next(iter(arrays.values()))


def _tensor(path: Path) -> Any:
    """One tensor; PyTorch is told to load no code (`weights_only`)."""
    try:
        torch = import_module("torch")
    except ImportError:
        what = "this needs the Python package 'torch', which is not installed"
        raise AbsentError(what, advice="pip install torch, or save the array as .npy") from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001  # whatever PyTorch says of a damaged file
        raise ParseError(f"cannot read '{path}' as .pt: {str(error)[:200]}") from None
    passed = memory_of(found.contiguous() if hasattr(found, "contiguous") else found, str(path))
    if passed is None:
        kind = type(found).__name__
        raise ParseError(f"'{path}' holds a {kind}, no tensor", advice="save one tensor to it")
    return passed.array
