"""A search as a picture: the best so far, how much was looked at, what each test dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warploom.report.chart import Bar, Series, bars, bars_html, lines, lines_html, number_words
from warploom.report.page import table
from warploom.report.picture import Fact, Figure, Part, Picture
from warploom.search.history import History
from warploom.sketch.synth.result import Stats


def picture(history: History, title: str = "search", brief: bool = False) -> Picture:
    del brief  # nothing takes long
    figures = figures_of(history)
    last = history.samples[-1] if history.samples else None
    facts = [] if last is None else [
        Fact("best", "nothing" if last.best is None else _value(last.best, history.unit)),
        Fact("looked at", number_words(last.found)),
        Fact("states visited", number_words(last.states)),
        Fact("time", f"{last.seconds:.2f} s"),
    ]  # fmt: skip
    if history.bound is not None:
        facts.insert(1, Fact("nothing is below", _value(history.bound, history.unit)))
    parts = [Part("", side_by_side(figures))]
    parts.append(Part("Each new best", _improvements(history)))
    return Picture(
        "Search", title, tuple(facts), tuple(parts), figures, tuple(_lines(title, history)),
    )  # fmt: skip


def side_by_side(figures: Sequence[Figure]) -> str:
    return f'<div class="charts">{"".join(figure.html for figure in figures)}</div>\n'


def figures_of(history: History) -> tuple[Figure, ...]:
    """Best, candidates and what was dropped, each over time."""
    found = []
    better = [(each.seconds, each.best) for each in history.improvements if each.best is not None]
    if better:
        end = history.samples[-1].seconds
        series = [Series("best so far", "lane", [*better, (end, better[-1][1])], stairs=True)]
        if history.bound is not None:
            series.append(Series("bound", "across", [(0, history.bound), (end, history.bound)]))
        caption = "The best so far, and what nothing in the space can be better than."
        found.append(curves("best", caption, series, history.unit or "cost"))
    if history.samples:
        states = [(each.seconds, float(each.states)) for each in history.samples]
        tests = dict.fromkeys(test for each in history.samples for test in each.pruned)
        kinds = ("across", "folds", "memory", "stays")
        series = [Series("states visited", "lane", states)]
        series += [
            Series(
                f"dropped by {test}"[:22],
                kinds[number % len(kinds)],
                [(each.seconds, float(each.pruned.get(test, 0))) for each in history.samples],
            )
            for number, test in enumerate(tests)
        ]
        caption = "States that were visited, and those that were dropped, by which test."
        found.append(curves("states", caption, series, "states"))
    return tuple(found)


def curves(name: str, caption: str, series: Sequence[Series], down: str) -> Figure:
    drawn = lines(caption, series, "seconds", down)
    return Figure(name, caption, drawn, lines_html(caption, series, "seconds", down))


def _improvements(history: History) -> str:
    rows = [
        (f"{each.seconds:.2f} s", "" if each.best is None else _value(each.best, history.unit),
         each.states, each.phase)
        for each in history.improvements
    ]  # fmt: skip
    if not rows:
        return "<p>Nothing was reached.</p>"
    return table(("after", "best", "states visited", "phase"), rows)


def _value(value: float, unit: str) -> str:
    return f"{number_words(value)} {unit}".rstrip()


def _lines(title: str, history: History) -> list[str]:
    times = len(history.improvements)
    found = [f"{title}: {times} time{'' if times == 1 else 's'} a new best"]
    for each in history.improvements[-8:]:
        best = "" if each.best is None else _value(each.best, history.unit)
        found.append(f"  {each.seconds:8.2f} s  {best}  after {each.states} states")
    if history.samples:
        last = history.samples[-1]
        dropped = ", ".join(f"{count} by {test}" for test, count in last.pruned.items()) or "none"
        found.append(f"  {last.found} looked at, {last.states} states visited; dropped: {dropped}")
    return found


def fills_part(stats: Stats) -> Part:
    """How a search for fills went, hole by hole."""
    dropped = _dropped(stats.pruned)
    rows = [
        (hole.name, hole.options, hole.visited, hole.kept,
         ", ".join(f"{n} by {test}" for test, n in hole.pruned.items()) or "none")
        for hole in stats.holes
    ]  # fmt: skip
    said = (
        f"{stats.states} candidates were looked at of {number_words(float(stats.raw_space))} "
        f"fills, in {stats.cpu_seconds:.2f} s of CPU time."
    )
    listed = table(("hole", "choices", "looked at", "kept", "dropped"), rows)
    return Part("Search", dropped + listed, said)


def _dropped(pruned: Mapping[str, int]) -> str:
    if not pruned:
        return ""
    rows = [Bar(test, float(count), str(count)) for test, count in pruned.items()]
    caption = "Candidates that were dropped, by which test."
    return Figure("dropped", caption, bars(caption, rows), bars_html(rows)).html
