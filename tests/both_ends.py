"""Of two processes that run tests, the second reads the files from the last to the first.

Both need all of them, and pytest rewrites the assertions of a file and keeps the bytecode: in a
fresh clone each process then rewrites half of the files, and finds the other half made.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What a folder has; every second process gets it reversed."""
    report = yield
    worker: dict[str, str] = getattr(collector.config, "workerinput", {})
    backwards = worker.get("workerid", "gw0").endswith(tuple("13579"))
    if backwards and isinstance(collector, pytest.Directory) and report.result is not None:
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests into the order that all processes share; those of one file stay as they are."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0])
