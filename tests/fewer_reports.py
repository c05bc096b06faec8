"""A process that runs tests reports of each how it ended, not that it began and was tidied up.

Of thousands of tests that take milliseconds, three reports and two notes each take longer to send
and to read than many a test. What is not as it should be, in a fixture too, is reported as ever.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test where another process is told of it; None leaves it to pytest."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
