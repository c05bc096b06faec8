"""A sample of `bench/search/store_damage.py`: a damaged store gives no answer but a fresh one."""

from __future__ import annotations

import pytest
from bench.common.cli import damaged
from bench.common.cli.damaged import IMPOSSIBLE, WAYS, Filled, run_one

from warploom.cli import remembered
from warploom.search.storage import row, store


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return Filled.of(tmp_path_factory.mktemp("damaged"))


@pytest.mark.parametrize("way", WAYS)
def test_no_answer_differs_from_a_fresh_search(filled: Filled, way: str) -> None:
    given = told = 0
    for seed in range(3):
        done, tally = run_one(filled, way, 10**6 + seed)
        assert not tally.wrong, (done, tally.wrong)
        given, told = given + tally.given, told + tally.told
    assert given > 3 * 4  # one damage does not cost what is not damaged
    assert told


@pytest.mark.parametrize("seconds", [0.0, 0.005])
def test_a_reason_that_was_cut_short_is_not_kept(
    filled: Filled, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """With more time it is another one: the store would differ from a fresh search."""
    monkeypatch.setattr(damaged, "REASONS", seconds)
    place = filled.path.with_name(f"reasons{seconds}.sqlite")
    cut = filled.place.ask(IMPOSSIBLE, place)
    assert cut.timeless() != filled.fresh[IMPOSSIBLE].timeless()
    monkeypatch.undo()
    again = filled.place.ask(IMPOSSIBLE, place)
    assert not again.given
    assert again.timeless() == filled.fresh[IMPOSSIBLE].timeless()
    assert filled.place.ask(IMPOSSIBLE, place).given


def wrong_of(filled: Filled, seed: int, way: str = "row") -> list[str]:
    return run_one(filled, way, seed)[1].wrong


def test_without_digests_answers_would_differ(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison sees what it is there to see."""
    monkeypatch.setattr(row, "seal", lambda columns: "")
    believed = row.opened

    def opened(columns: list[object]) -> object:
        return believed([*columns[:-1], ""])

    monkeypatch.setattr(store, "opened", opened)
    assert any("another answer" in each for seed in range(40) for each in wrong_of(filled, seed))


def test_without_shapes_rows_would_be_tracebacks(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "read_again", lambda kept, outputs: remembered.Again(**kept))
    found = (each for seed in range(60) for each in wrong_of(filled, seed, "malformed"))
    assert any(word in each for each in found for word in ("TypeError: ", "KeyError: "))
