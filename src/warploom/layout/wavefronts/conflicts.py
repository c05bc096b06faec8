"""Which lanes of a request meet in which bank: a layout's addresses and a step → words by bank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from warploom.layout.language.evaluate import Numbers
from warploom.layout.patterns.access import IDLE, SERVED_AS, Problem, coordinates
from warploom.machine.serving import asked_in_pairs, cosets

MOST_SHOWN = 4  # words of a bank


@dataclass(frozen=True, slots=True)
class Together:
    """Lanes that are served together: for each bank its wanted words, and for each word who wants
    it, as (lane, element)."""

    lanes: tuple[int, ...]
    banks: dict[int, dict[int, list[tuple[int, int]]]] = field(repr=False)

    @property
    def wavefronts(self) -> int:
        return max(map(len, self.banks.values()), default=0)

    @property
    def fullest(self) -> int:
        """The bank with the most wanted words."""
        return max(self.banks, key=lambda bank: len(self.banks[bank]), default=0)


def served_together(
    problem: Problem, addresses: Numbers, number: int, step: int
) -> Iterator[Together]:
    """The groups of lanes of one request."""
    access, serving = problem.accesses[number], problem.serving
    row = access.elements[step]
    group = serving.group(SERVED_AS[access.kind], problem.bytes_of(access.width))
    first = row[None, :, 0]
    if group.paired and asked_in_pairs(first, first != IDLE)[0]:
        group = group.when_paired()
    for lanes in cosets(group.basis, serving.lanes):
        some = tuple(lane for lane in lanes.tolist() if lane < access.lanes)
        yield Together(some, _banks(problem, row, addresses, some))


def _banks(
    problem: Problem, row: Numbers, addresses: Numbers, lanes: Sequence[int]
) -> dict[int, dict[int, list[tuple[int, int]]]]:
    found: dict[int, dict[int, list[tuple[int, int]]]] = {}
    size, word_bytes = problem.element_bytes, problem.serving.word_bytes
    for lane in lanes:
        for element in row[lane].tolist():
            if element == IDLE:
                continue
            first = problem.bytes_of(int(addresses[element])) // word_bytes
            for word in range(first, first + max(1, size // word_bytes)):
                bank = found.setdefault(word % problem.serving.banks, {})
                bank.setdefault(word, []).append((lane, element))
    return found


def meeting_text(problem: Problem, group: Together) -> str:
    """The fullest bank and which lanes want which words of it; empty where none meet."""
    words = group.banks.get(group.fullest, {})
    if len(words) < 2:
        return ""
    parts = []
    for word, who in sorted(words.items())[:MOST_SHOWN]:
        lane, element = who[0]
        at = ",".join(map(str, coordinates(problem.shape, element)))
        parts.append(f"lane {lane} word {word} (element {at})")
    more = f" and {len(words) - MOST_SHOWN} more" if len(words) > MOST_SHOWN else ""
    return f"bank {group.fullest}: " + "; ".join(parts) + more


def lane_runs(numbers: Sequence[int]) -> str:
    """
    >>> lane_runs([0, 1, 2, 3, 20, 21])
    '0-3,20-21'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
