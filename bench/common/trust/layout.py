"""Certificates of layouts as they come back from a file, and changed ones whose digest fits."""

from __future__ import annotations

import copy
import json
from typing import Any

from warploom.layout.solver.certificate import certificate, digest
from warploom.layout.solver.solve import solve
from warploom.layout.solver.task import Task


def written(task: Task, klass: str) -> dict[str, Any]:
    """As it comes back from a file."""
    found: dict[str, Any] = json.loads(json.dumps(certificate(task, solve(task, klass))))
    return found


def signed(record: dict[str, Any]) -> dict[str, Any]:
    """Changed on purpose: the digest is made to fit."""
    return record | {"digest": digest(record)}


def changes(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The same certificate with one thing wrong, each with a digest that fits."""
    found: dict[str, dict[str, Any]] = {}

    def change(name: str) -> dict[str, Any]:
        found[name] = copy.deepcopy(record)
        return found[name]

    for number in range(len(record["problem"]["accesses"])):
        del change(f"without access {number}")["problem"]["accesses"][number]
    change("another address")["addresses"][5] = record["addresses"][6]
    swapped = change("two addresses swapped")["addresses"]
    swapped[5], swapped[6] = swapped[6], swapped[5]
    change("less wavefronts")["wavefronts"][0] -= 1
    change("a lower cost")["cost"] = "24"
    change("a higher least")["least"] = "29"
    change("a higher bound")["bound"] = "28"
    change("another machine")["problem"]["machine"] = "gfx950"
    change("another class")["class"] = "swizzle"
    change("no proof")["proof"] = {"by": "bound"}
    change("a weight")["problem"]["accesses"][0]["weight"] = "3"
    change("another basis")["proof"]["basis"][0] ^= 64
    cases = change("a case left out")["proof"]["cases"]
    while isinstance(cases, dict):
        parent, cases = cases, next(iter(cases.values()))
    parent.popitem()
    leaf = change("a leaf without accesses")["proof"]["cases"]
    while isinstance(next(iter(leaf.values())), dict):
        leaf = next(iter(leaf.values()))
    leaf[next(iter(leaf))] = []
    return found
