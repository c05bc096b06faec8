"""Pictures of requests and of kernels: cells and counts are those of the models."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np

from warploom.catalogue import find
from warploom.kernel.evaluate import run
from warploom.layout.patterns.named import pattern
from warploom.layout.solver.task import Task
from warploom.layout.wavefronts.picture import Compared, request_of
from warploom.pipeline.pictures import picture as draw
from warploom.report.kernel import picture, simulated
from warploom.report.traffic import heat_map


def test_a_request_has_a_cell_for_each_word() -> None:
    task = Task(pattern("transpose:32x32:f32"))
    drawn = request_of(task, np.arange(1024), 1, 0, "a < b")
    made = draw(Compared("title", task, (drawn, drawn), ("1 < 2",)))
    (text,) = made.svgs.values()
    told = [each.text for each in ElementTree.fromstring(text).findall(".//{*}rect/{*}title")]
    assert len(told) == 64
    assert told[1] == "lane 1, bank 0, word 32, element 1,0, wavefront 1"
    assert "32 wavefronts" in made.html
    assert "a &lt; b" in made.html
    assert "Compared" not in made._repr_html_()


def test_banks_of_a_kernel_are_the_simulators() -> None:
    """A kernel through shared memory: what its one warp does is what the launch counts."""
    entry = find("aos-to-soa")
    settings: dict[str, Any] = {"fields": 4, "strategy": "shared"}
    kernel = entry.kernel(**settings)
    size = next(each for each in entry.sizes(**entry.settings(settings)) if min(each.values()) > 64)
    seen = simulated(kernel, entry.case(kernel, size, **settings).fresh())
    shared = [stream for stream in seen.streams if stream.shared]
    assert {stream.writes for stream in shared} == {True, False}
    counted = run(kernel, entry.case(kernel, size, **settings).fresh())
    assert seen.report.as_dict() == counted.as_dict()
    for stream in shared:
        grid = heat_map(stream)
        assert len(grid.rows) == 32
        for number, asked in enumerate(stream.requests[: grid.columns]):
            column = [int(text or 0) for text in grid.texts[number :: grid.columns]]
            words = {int(at) // 4 for at in asked.addresses}
            assert column == [sum(word % 32 == bank for word in words) for bank in range(32)]
    facts = {fact.label: fact.value for fact in picture(seen).facts}
    assert facts["lost to bank conflicts"] == f"{counted.bank_conflicts} passes"
