"""The curves on the pages are those of the records."""

from __future__ import annotations

from pathlib import Path

from bench.harness import ROOT
from bench.report.curves import drawings


def test_pictures_of_searches_show_what_was_measured() -> None:
    for name, drawn in drawings():
        assert Path(ROOT / "docs" / "pictures" / name).read_text() == drawn, (
            "run bench/report/curves.py"
        )
