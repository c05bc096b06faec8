"""A synthesis result as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.cli.say import style
from warploom.options import from_environment
from warploom.search.outcome import Found, Undecided, Verdict
from warploom.search.outcome_json import outcome_word
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.show import show_fill

_COLORS = {"found": "green", "impossible": "yellow", "undecided": "magenta", "refuted": "red"}


def coloured(word: str) -> str:
    """The word of an outcome in its colour, unless NO_COLOR asks for none."""
    if not from_environment().color:
        return word
    return style(word, _COLORS[word])


def headline(name: str, result: Result) -> str:
    return f"{name}: {coloured(outcome_word(result.outcome))}, {_how_many(result)}"


def _how_many(result: Result) -> str:
    stats = result.stats
    spent = f"{stats.states} states, {stats.seconds:.2f} s"
    if isinstance(result.outcome, Undecided):
        return f"{result.outcome.reason.value} ({spent})"
    if not isinstance(result.outcome, Found):
        return f"{result.outcome.why or 'no fill exists under the laws used'} ({spent})"
    fills = f"{result.fills.count} fill" + ("s" if result.fills.count != 1 else "")
    if result.complete:
        kind = "all there are"
    else:
        kind = result.stopped.value if result.stopped else "asked for one"
    return f"{fills} ({kind}), {verdict_text(result)} ({spent})"


def verdict_text(result: Result) -> str:
    if result.verdict is Verdict.PROVED:
        listed = len(result.fills)
        some = "" if listed == result.fills.count else f" ({listed} of them)"
        return f"proved on symbols and on random numbers{some}"
    wrong = next((v for v in result.verdicts if not v), None)
    if wrong is not None:
        return str(wrong)
    proved = sum(1 for verdict in result.verdicts if verdict)
    if not proved:
        return str(result.verdict.value)
    return f"proved for {proved} of {len(result.fills)} listed, the others not verified in time"


def note_lines(result: Result) -> Iterator[str]:
    """The laws that the verdict rests on, and what it does not cover."""
    for note in dict.fromkeys(note for verdict in result.verdicts for note in verdict.notes):
        yield f"  {note}"


def fill_lines(result: Result, limit: int, indent: str = "  ") -> Iterator[str]:
    """The first fills, and how many more there are."""
    for number in range(min(limit, len(result.fills))):
        none = "" if result.fills.holes else ": the sketch has no holes"
        yield f"{indent}fill {number + 1}{none}"
        if result.fills.holes:
            yield show_fill(result, number, indent=indent + "  ")
    if result.fills.count > limit and len(result.fills):
        yield f"{indent}… {result.fills.count - limit} more (--limit N shows more)"


def _short(count: int) -> str:
    digits = str(count)
    return digits if len(digits) < 8 else f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def stats_lines(result: Result) -> Iterator[str]:
    stats = result.stats
    factor = "unknown" if stats.factor is None else f"{stats.factor:.2f}"
    never = f"{100 * stats.never_visited:.4f} % of the tree never visited"
    yield f"  {_short(stats.raw_space)} possible fills, {never}"
    yield f"  an oracle would visit {stats.oracle or 'unknown'}; ineffectiveness factor {factor}"
    for hole in stats.holes:
        pruned = ", ".join(f"{test} {count}" for test, count in hole.pruned.items()) or "nothing"
        yield (
            f"  {hole.name}: {hole.options} choices, {hole.visited} candidates,"
            f" {hole.kept} kept; pruned by {pruned}"
        )
    phases = ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in stats.phases.items())
    yield f"  CPU s: {phases}; peak {stats.peak_mb:.0f} MB"
