"""The pytest plugin: a user's own index arithmetic, checked in the user's own tests.

    def test_my_tile(check_tile):
        check_tile(my_tile)          # a warploom.layout.own.SharedTile

Installed with the package; where it is not, `-p warploom.pytest_plugin` loads it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warploom.layout.own import Examined, SharedTile, examine


@pytest.fixture
def check_tile() -> Callable[[SharedTile], Examined]:
    """Fails where a tile's index arithmetic is wrong, and says for which lanes."""

    def check(tile: SharedTile) -> Examined:
        found = examine(tile)
        if not found.right:
            pytest.fail("\n".join(found.wrong), pytrace=False)
        return found

    return check
