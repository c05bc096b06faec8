"""What a run of pytest skipped is kept, and `--only-skipped` runs just that again.

So a machine is first tried as it is; what is installed afterwards costs only the tests it lets run.
"""

from __future__ import annotations

import pytest

KEY = "warploom/skipped"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-skipped", action="store_true", help="run what the last run skipped, and no more"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cache = getattr(config, "cache", None)  # it may be switched off
    if not config.getoption("--only-skipped") or cache is None:
        return
    before = set(cache.get(KEY, []))
    # A whole file may have been skipped as it was collected.
    wanted = [each for each in items if {each.nodeid, each.nodeid.partition("::")[0]} & before]
    config.hook.pytest_deselected(items=[each for each in items if each not in set(wanted)])
    items[:] = wanted


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    cache = getattr(config, "cache", None)
    if cache is not None:
        found = terminalreporter.stats.get("skipped", [])
        cache.set(KEY, sorted({each.nodeid for each in found}))
