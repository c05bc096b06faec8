"""Work in pieces: every cell once, whatever is left undone, lost or done before."""

from __future__ import annotations

import random
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.errors import CheckError, DeviceError, GoneError
from warploom.search.budget import Budget, BudgetSpentError
from warploom.search.workers.cluster import check_address
from warploom.search.workers.cover import Cover
from warploom.search.workers.pieces import (
    FINEST,
    HEAVY,
    SECONDS,
    Division,
    Line,
    Pace,
    Piece,
    Range,
    Todo,
    at_once,
    in_pieces,
)


def line(low: int, high: int, value: object = None) -> Piece[object]:
    return Piece(low, high, value, 0.0)


def leaves(cells: int, lines: dict[Line, int], within: Line = ()) -> list[tuple[Line, int]]:
    """Every cell of a line, and in place of those that were divided what they became."""
    inner = {made[-1][0]: made for made in lines if made[:-1] == within}
    found: list[tuple[Line, int]] = []
    for cell in range(cells):
        own = inner.get(cell)
        found += [(within, cell)] if own is None else leaves(lines[own], lines, own)
    return found


@given(st.integers(1, 300), st.integers(1, 8), st.integers(0, 2**32), st.data())
def test_every_cell_is_done_once(cells: int, workers: int, seed: int, data: st.DataObject) -> None:
    """By workers that do only some of what they are given, divide a cell, and now and then get
    lost; some of it was done before. What is done is kept, and what is left is as one says."""
    chance = random.Random(seed)
    edges = sorted(data.draw(st.lists(st.integers(0, cells), max_size=6)))
    done = [Range((), *pair) for pair in zip(edges[::2], edges[1::2], strict=False)]
    done = [each for each in done if each.high > each.low]
    lost = set[Range]()
    given_out: list[int] = []
    lines: dict[Line, int] = {}

    def submit(given: Range, _pace: Pace) -> Future[Piece[object]]:
        within, low, high = given
        given_out.append(0 if within else high - low)
        future: Future[Piece[object]] = Future()
        if chance.random() < 0.2 and given not in lost:
            lost.add(given)
            future.set_exception(DeviceError("gone"))
            return future
        to, division = chance.randint(low + 1, high), None
        if len(within) < 3 and chance.random() < 0.1:
            to, division = to - 1, Division(f"{seed}", chance.randint(1, 9), None)
        piece: Piece[object] = Piece(low, to, None, 0.0, within, division)
        if division is not None:
            lines[piece.within] = division.cells
        future.set_result(piece)
        return future

    cover = Cover(cells)
    assert cover.add(done)
    left = list(cover.left())
    found = list(in_pieces(cells, submit, Budget(), workers=lambda: workers, ranges=left))
    before = [((), cell) for _, low, high in done for cell in range(low, high)]
    now = [(each.line, cell) for each in found for cell in range(each.low, each.high)]
    assert sorted([*now, *before]) == sorted(leaves(cells, lines))
    assert max(given_out, default=1) <= max(1, cells // FINEST)
    # Half of it is kept: what is left then is the other half.
    ranges = [each.range for each in found if each.high > each.low]
    chance.shuffle(ranges)
    kept, rest = ranges[: len(ranges) // 2], ranges[len(ranges) // 2 :]
    assert all(cover.add([each]) for each in kept)
    assert not any(cover.add([each]) for each in kept)
    still = [(each.line, cell) for each in cover.left() for cell in range(each.low, each.high)]
    known = {made[: depth + 1] for made, _, _ in kept for depth in range(len(made))}
    wanted = {(made, cell) for made, low, high in rest for cell in range(low, high)}
    assert len(still) == len(set(still))
    assert {each for each in wanted if not each[0] or each[0] in known} <= set(still)
    assert all(each in wanted or (*each[0],) in {made[: len(each[0])] for made, _ in wanted}
               for each in still)  # fmt: skip
    for each in rest:
        assert cover.add([each])
    assert not list(cover.left())


def test_a_heavy_cell_is_divided_only_where_that_ends_sooner() -> None:
    todo = Todo(1000, [Range((), 0, 1000)])
    assert todo.pace(1).limit == HEAVY * SECONDS  # nothing is known
    given = todo.give(1)
    todo.take(given, Piece(given.low, given.high, None, 1.0 * (given.high - given.low)))
    assert todo.pace(1).limit == 30  # a quarter of a thousand seconds, but not more than that
    assert todo.pace(100).limit < 3
    assert todo.pace(1024).seconds > 4  # fewer pieces where many work
    _, low, high = todo.give(1)
    assert high - low == 1  # of a second each there is time for one


def test_a_range_that_costs_three_workers_is_an_error() -> None:
    def submit(_given: Range, _pace: Pace) -> Future[Piece[object]]:
        future: Future[Piece[object]] = Future()
        future.set_exception(DeviceError("gone"))
        return future

    with pytest.raises(DeviceError, match="gone"):
        list(in_pieces(4, submit, Budget()))


@pytest.mark.parametrize(
    "said",
    [
        None,
        line(0, 2),
        line(1, 99),
        line(1, 0),
        line(2, 3),
        Piece(1, 2, None, 0.0, ((0, "", 2),)),
        Piece(1, 2, None, 0.0, (), Division("", 2, None)),
        Piece(1, 1, None, 0.0, (), Division("", 0, None)),
    ],
)
def test_a_piece_of_another_range_is_asked_for_again(said: object) -> None:
    """Of cells 1 and 2; the third time it is an error."""
    wrong = 2

    def submit(given: Range, _pace: Pace) -> Future[Piece[object]]:
        nonlocal wrong
        wrong -= 1
        _, low, high = given
        future: Future[Piece[object]] = Future()
        future.set_result(said if wrong >= 0 else line(low, high))  # type: ignore[arg-type]
        return future

    found = list(in_pieces(2, submit, Budget(), ranges=[Range((), 1, 2)]))
    assert [(each.low, each.high) for each in found] == [(1, 2)]
    wrong = 3
    with pytest.raises(DeviceError, match="another came back"):
        list(in_pieces(2, submit, Budget(), ranges=[Range((), 1, 2)]))


def test_the_work_of_whoever_is_gone_is_not_tried_again() -> None:
    asked = []

    def submit(given: Range, _pace: Pace) -> Future[Piece[object]]:
        asked.append(given.low)
        future: Future[Piece[object]] = Future()
        future.set_exception(GoneError("gone"))
        return future

    with pytest.raises(GoneError):
        list(in_pieces(4, submit, Budget()))
    assert len(asked) == 1


def test_more_workers_are_given_more() -> None:
    """Of whom three come after the first piece."""
    at_once_: list[int] = []
    running: list[Future[Piece[object]]] = []

    def submit(given: Range, _pace: Pace) -> Future[Piece[object]]:
        running.append(Future())
        running[-1].set_running_or_notify_cancel()
        ranges.append((given.low, given.high))
        return running[-1]

    def workers() -> int:
        count = 1 if not at_once_ else 4
        open_ = [number for number, each in enumerate(running) if not each.done()]
        at_once_.append(len(open_))
        if open_:
            running[open_[0]].set_result(line(*ranges[open_[0]]))
        return count

    ranges: list[tuple[int, int]] = []
    assert len(list(in_pieces(40, submit, Budget(), workers=workers))) == 40
    assert at_once_[1] == 1
    assert max(at_once_) == 4  # beside the one that was just done


def test_a_spent_budget_ends_it_and_an_error_is_raised() -> None:
    with pytest.raises(BudgetSpentError):
        list(
            in_pieces(4, at_once(lambda given, _: line(given.low, given.high)), Budget(seconds=0.0))
        )

    def failing(_given: Range, _pace: Pace) -> Piece[object]:
        raise CheckError("no")

    with pytest.raises(CheckError, match="no"):
        list(in_pieces(4, at_once(failing), Budget()))


def test_what_was_done_twice_counts_once() -> None:
    """Two runs at once may keep the same cells, a divided one also as a whole."""
    cover = Cover(8)
    one: Line = ((5, "here", 4),)
    assert cover.add([Range((), 0, 3), Range(one, 1, 2)])
    assert not cover.add([Range((), 7, 8), Range((), 2, 4)])
    assert not cover.add([Range((), 5, 6)])
    assert not cover.add([Range(((5, "there", 4),), 1, 2)])
    assert not cover.add([Range(((1, "here", 4),), 0, 4)])
    assert not cover.add([Range(one, 3, 5)])
    assert [*cover.left()] == [
        Range((), 3, 5), Range((), 6, 8), Range(one, 0, 1), Range(one, 2, 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.1:8786", "tcp://example.org:8786", "127.0.0.1:8786", "tcp://:1", "x"]
)
def test_only_this_machine_or_tls_is_taken(address: str) -> None:
    with pytest.raises(CheckError):
        check_address(address)
    for fine in ("tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:2", "tls://a.b:8786"):
        check_address(fine)
