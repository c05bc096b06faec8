"""The 43 concrete maps of the published mid-level convolution: data/convolution_maps.txt."""

from __future__ import annotations

from pathlib import Path

from warploom.array.language.op import SpaceName
from warploom.array.language.size import normal
from warploom.array.mapping.tree import MapNode, MapTree
from warploom.index.parse import parse

DATA = Path(__file__).with_name("data") / "convolution_maps.txt"


SPACES: dict[str, SpaceName] = {"global": "global", "local": "local", "private": "private"}


def convolution_maps() -> MapTree:
    nodes = []
    for line in DATA.read_text().splitlines():
        if line.startswith("#"):
            continue
        number, parent, size, writes, reads, perfect, folds = (p.strip() for p in line.split("|"))
        nodes.append(
            MapNode(
                int(number),
                None if parent == "-" else int(parent),
                normal(parse(size)),
                frozenset(map(SPACES.__getitem__, writes.split())),
                frozenset(map(SPACES.__getitem__, reads.split())),
                perfect == "yes",
                tuple(normal(parse(each)) for each in folds.split(";") if each),
            )
        )
    return MapTree(tuple(nodes))
