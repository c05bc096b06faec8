"""Pages of PTX, mappings, loop nests and searches say what their records say."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest
from bench.common.narrowed import of
from tests.report.pages import EXAMPLES, explored, launched, mapped, page_of

from warploom.array.code.schedule import mapping_schedules
from warploom.array.mapping.constraint import GLOBAL, GROUP, LOCAL
from warploom.emit import emit
from warploom.errors import CheckError, Span
from warploom.index.ir import Const
from warploom.loopnest.lower import lower
from warploom.pipeline.pictures import picture
from warploom.ptx import load
from warploom.report.chart import Bar, Series, bars, bars_html, lines
from warploom.report.mapping import stage_rows
from warploom.report.nest import loop_rows, statement_words
from warploom.report.ptx import observed
from warploom.report.search import figures_of
from warploom.report.tree import enclosing
from warploom.search.engine import Progress
from warploom.search.history import MOST, History, history_from


def plain(html: str) -> str:
    """Without what says where a name may be broken."""
    return unescape(html).replace("<wbr>", "")


OTHERS = ("ptx", "mapping", "nest", "search")


@pytest.mark.parametrize("name", OTHERS)
def test_pages_lines_and_figures(name: str) -> None:
    drawn = page_of(name)
    assert drawn.html.startswith("<!doctype html>")
    assert drawn.lines
    assert drawn.figures
    assert all(svg.startswith("<svg") for svg in drawn.svgs.values())


# -- PTX -----------------------------------------------------------------------------------------


def test_a_race_marks_its_two_lines() -> None:
    html = page_of("ptx").html
    marked = re.findall(r'class="site raced"[^>]*><span class="at">(\d+)</span>', html)
    assert marked == ["31", "34"]
    (race,) = launched().report.races
    assert {of(Span, each.label).line for each in (race.first, race.second)} == {31, 34}
    assert "write at race.ptx:31" in page_of("ptx").lines[1]


def test_a_mangled_kernel_is_titled_as_in_its_source() -> None:
    text = (EXAMPLES / "ptx" / "race.ptx").read_text()
    own = re.findall(r"\.entry (\w+)", text)[0]
    kernel = load(re.sub(rf"\b{own}\b", "_ZN2my4raceEPfS0_", text), "race.ptx").kernel()
    given = [np.arange(64, dtype=np.float32), np.zeros(64, np.float32)]
    drawn = picture(observed(kernel, kernel.launch(1, 64, given, races="all", counters=True)))
    assert drawn.title == "my::race"
    assert drawn.lines[0].startswith("my::race: ")


def test_figures_of_ptx_are_the_emulators() -> None:
    report = launched().report
    facts = {fact.label: fact.value for fact in page_of("ptx").facts}
    assert facts["sectors"] == f"{report.sectors}, at best {report.sectors}"
    assert facts["lost to bank conflicts"] == f"{report.bank_conflicts} passes"
    html = plain(page_of("ptx").html)
    for row in launched().rows:
        assert f"{row.requests} requests" in html
    shuffles = launched().shuffles
    assert shuffles is not None
    for each in shuffles.candidates:
        assert each.why in html


# -- mappings ------------------------------------------------------------------------------------


def test_the_page_of_a_mapping_has_its_schedule_and_its_code() -> None:
    html = plain(page_of("mapping").html)
    for kernel, text in zip(mapped().kernels, mapping_schedules(mapped()), strict=True):
        assert text[1:] in html
        assert f"{kernel.name} as CUDA C++" in html
        assert emit(kernel, "cuda").splitlines()[-3] in html


def test_loops_of_a_mapping_are_coloured_by_where_they_run() -> None:
    made = mapped()
    for at, spread in enumerate(made.spreads):
        rows = [row for row in stage_rows(made.plan, at, spread) if row.kind]
        parallel = [row for row in rows if row.kind in ("global", "thread")]
        runs = [run for run in spread.runs.values() if run in (*LOCAL, *GROUP, *GLOBAL)]
        assert 0 < len(parallel) <= len(runs)  # loops of one iteration are left out
        letters = {"all threads": "g", "group": "w", "thread": "l"}
        for row in parallel:
            word, letter = row.word.rsplit(" ", 1)
            assert f"{letters[word]}{'xyz'.index(letter)}" in runs


def test_one_iteration_is_no_loop() -> None:
    made = mapped()
    texts = [row.text for at, s in enumerate(made.spreads) for row in stage_rows(made.plan, at, s)]
    assert not any(text.endswith("< 1") for text in texts)
    assert Const(1) is Const(1)


# -- loop nests and searches ---------------------------------------------------------------------


@pytest.mark.slow
def test_the_loops_of_an_implementation() -> None:
    found = explored()
    assert found.candidate is not None
    assert found.nest is not None
    made = found.nest.implementation(found.candidate)
    rows = loop_rows(made)
    names = [row.text for row in rows if not row.kind]
    assert sorted(names) == sorted(statement_words(made, each) for each in made.instructions)
    sizes = [int(row.text.split()[-2]) for row in rows if row.kind]  # "n by 16, 4 iterations"
    assert set(sizes) <= {made.size_of(dim) for dim in made.dims}
    assert not any(">" in row.text for row in rows)  # names of our own temporaries
    schedule = found.nest.schedule(found.candidate)
    assert schedule[1:] in plain(page_of("nest").html)
    assert emit(lower(made), "cuda").splitlines()[-3] in plain(page_of("nest").html)
    assert enclosing(rows, len(rows) - 1)[0] == 0


def test_the_bound_of_the_page_is_the_bound() -> None:
    found = explored()
    assert found.nest is not None
    facts = {fact.label: fact.value for fact in page_of("nest").facts}
    assert facts["nothing is below"].startswith(f"{found.bound:.4g}")
    html = plain(page_of("nest").html)
    for reason in found.nest.reasons():
        if reason.nanoseconds:
            assert reason.why in html


def test_a_search_is_drawn_as_it_went() -> None:
    found = explored()
    history = found.history
    assert history is not None
    last = history.samples[-1]
    assert last.best == found.nanoseconds
    assert last.states == found.statistics.states
    assert last.pruned == found.statistics.pruned
    assert history.improvements[-1].best == found.nanoseconds
    seconds = [each.seconds for each in history.samples]
    assert seconds == sorted(seconds)
    assert {figure.name for figure in figures_of(history)} == {"best", "states"}
    again = history_from(json.loads(json.dumps(history.to_json())))
    assert again.to_json() == history.to_json()
    with pytest.raises(CheckError, match="history"):
        history_from({"samples": []})


def test_of_many_samples_a_part_is_kept_and_every_new_best() -> None:
    history = History()
    for n in range(5 * MOST):
        history.add(Progress("x", n, 0, float(10 - n // MOST), n / 10, {"bound": n}))
    assert len(history.samples) <= MOST + 1
    assert [each.best for each in history.improvements] == [10, 9, 8, 7, 6]
    assert history.samples[-1].states == 5 * MOST - 1


# -- charts --------------------------------------------------------------------------------------


def test_bars_are_as_long_as_their_amounts() -> None:
    rows = [Bar("a", 10.0, "10", 5.0), Bar("b", 5.0, "5")]
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="14"', bars("t", rows))]
    assert widths == [420, 210, 210]  # the first, what it needs at least, the second
    assert 'style="width:50.00%"' in bars_html(rows)


def test_curves_go_through_their_points() -> None:
    drawn = lines("t", [Series("a", "lane", [(0, 0), (5, 1), (10, 4)])], "s", "n", size=(100, 50))
    path = re.search(r'd="M([^"]+)" class="curve', drawn)
    assert path is not None
    points = [tuple(map(float, each.split())) for each in path[1].split("L")]
    assert [x for x, _ in points] == [64, 114, 164]
    heights = [y for _, y in points]
    assert (heights[0] - heights[1]) / (heights[0] - heights[2]) == pytest.approx(0.25, abs=0.01)
