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
from warploom.search.workers.pieces import FINEST, Piece, at_once, disjoint, gaps, in_pieces


def line(low: int, high: int, value: object = None) -> Piece[object]:
    return Piece(low, high, value, 0.0)


@given(st.integers(1, 300), st.integers(1, 8), st.integers(0, 2**32), st.data())
def test_every_cell_is_done_once(cells: int, workers: int, seed: int, data: st.DataObject) -> None:
    """By workers that do only some of what they are given, and now and then get lost."""
    chance = random.Random(seed)
    edges = sorted(data.draw(st.lists(st.integers(0, cells), max_size=6)))
    done = list(zip(edges[::2], edges[1::2], strict=False))
    lost = set[tuple[int, int]]()
    given_out: list[int] = []

    def submit(low: int, high: int, _seconds: float) -> Future[Piece[object]]:
        given_out.append(high - low)
        future: Future[Piece[object]] = Future()
        if chance.random() < 0.2 and (low, high) not in lost:
            lost.add((low, high))
            future.set_exception(DeviceError("gone"))
        else:
            future.set_result(line(low, chance.randint(low + 1, high)))
        return future

    found = list(in_pieces(cells, submit, Budget(), workers=lambda: workers, done=done))
    before = [cell for low, high in done for cell in range(low, high)]
    now = [cell for piece in found for cell in range(piece.low, piece.high)]
    assert sorted([*now, *set(before)]) == list(range(cells))
    assert max(given_out, default=1) <= max(1, cells // FINEST)


def test_a_range_that_costs_three_workers_is_an_error() -> None:
    def submit(_low: int, _high: int, _seconds: float) -> Future[Piece[object]]:
        future: Future[Piece[object]] = Future()
        future.set_exception(DeviceError("gone"))
        return future

    with pytest.raises(DeviceError, match="gone"):
        list(in_pieces(4, submit, Budget()))


@pytest.mark.parametrize("said", [None, line(0, 2), line(1, 99), line(1, 0), line(2, 3)])
def test_a_piece_of_another_range_is_asked_for_again(said: object) -> None:
    """Of cells 1 and 2; the third time it is an error."""
    wrong = 2

    def submit(low: int, high: int, _seconds: float) -> Future[Piece[object]]:
        nonlocal wrong
        wrong -= 1
        future: Future[Piece[object]] = Future()
        future.set_result(said if wrong >= 0 else line(low, high))  # type: ignore[arg-type]
        return future

    found = list(in_pieces(2, submit, Budget(), done=[(0, 1)]))
    assert [(each.low, each.high) for each in found] == [(1, 2)]
    wrong = 3
    with pytest.raises(DeviceError, match="another came back"):
        list(in_pieces(2, submit, Budget(), done=[(0, 1)]))


def test_the_work_of_whoever_is_gone_is_not_tried_again() -> None:
    asked = []

    def submit(low: int, _high: int, _seconds: float) -> Future[Piece[object]]:
        asked.append(low)
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

    def submit(low: int, high: int, _seconds: float) -> Future[Piece[object]]:
        running.append(Future())
        running[-1].set_running_or_notify_cancel()
        ranges.append((low, high))
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
        list(in_pieces(4, at_once(lambda low, high, _: line(low, high)), Budget(seconds=0.0)))

    def failing(_low: int, _high: int, _seconds: float) -> Piece[object]:
        raise CheckError("no")

    with pytest.raises(CheckError, match="no"):
        list(in_pieces(4, at_once(failing), Budget()))


def test_of_pieces_that_overlap_one_of_each_cell_is_taken() -> None:
    kept = disjoint([line(4, 6), line(0, 3), line(2, 5), line(0, 2), line(6, 6)])
    assert [(each.low, each.high) for each in kept] == [(0, 3), (4, 6)]
    assert gaps(8, [(each.low, each.high) for each in kept]) == [(3, 4), (6, 8)]


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.1:8786", "tcp://example.org:8786", "127.0.0.1:8786", "tcp://:1", "x"]
)
def test_only_this_machine_or_tls_is_taken(address: str) -> None:
    with pytest.raises(CheckError):
        check_address(address)
    for fine in ("tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:2", "tls://a.b:8786"):
        check_address(fine)
