"""What tests of several folders share: golden texts, Ctrl-C as a terminal sends it, a list of what
was skipped (`skipped.py`), samples of many cases (`sampled.py`), an order in which several
processes read the files (`both_ends.py`), and what they report (`fewer_reports.py`)."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from tests import both_ends, fewer_reports, sampled, skipped

# `make test` tries the same examples every time, so that a change is judged and not the day's luck;
# `make accept` draws new ones.
settings.register_profile("same", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("new", deadline=None)
settings.load_profile("same")

# Tests leave the user's folders alone; what they compile is kept for the next run.
os.environ["WARPLOOM_CACHE"] = str(Path(__file__).parents[1] / ".pytest_cache" / "compiled")
os.environ["WARPLOOM_STORE"] = ""

# So is bytecode, also where containers switch that off: each process that a test starts, and each
# run, would compile hundreds of modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Started in the background a process ignores Ctrl-C, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write golden texts instead of comparing"
    )
    skipped.pytest_addoption(parser)


def pytest_sessionstart() -> None:
    sampled.leave_out_constants()


def pytest_collection_finish() -> None:
    """Ten thousand tests stay alive to the end: to look through them again and again for what may
    be freed took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.hookimpl(tryfirst=True)  # before `-m` looks for `slow`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    both_ends.pytest_collection_modifyitems(items)
    sampled.mark_the_rest(items)
    skipped.pytest_collection_modifyitems(config, items)


pytest_make_collect_report = both_ends.pytest_make_collect_report
pytest_runtest_protocol = fewer_reports.pytest_runtest_protocol
pytest_terminal_summary = skipped.pytest_terminal_summary


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares with golden/name beside the test, or writes it."""
    folder = request.path.parent / "golden"

    def compare(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            folder.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path.name} is missing: run pytest --update-golden and read it"
        assert text == path.read_text()

    return compare
