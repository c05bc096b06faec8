"""The code of docs/tour.md runs, in order, as a reader would type it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_tour_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "tour.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    seen: dict[str, object] = {"__name__": "tour"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"tour.md, block {number}", "exec"), seen)
    said = capsys.readouterr().out
    assert "regs.flat[x0 * 3 + (x1 - x0) % 3]" in said
    assert "lane 0" in said
