"""When this process began to load Warploom, and which file it began with.

Whatever of the package changes later may or may not be what runs here.
"""

from __future__ import annotations

import os
import time
from pathlib import Path


def _first_file() -> os.stat_result | None:
    try:
        return os.stat(Path(__file__).with_name("__init__.py"))
    except OSError:  # in an archive
        return None


AT_NS = time.time_ns()
FIRST_FILE = _first_file()
