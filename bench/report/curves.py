"""The best so far of searches on a GPU, drawn from their records for the pages of `docs/`.

    python -m bench.report.curves [FOLDER]     docs/pictures, unless another is named

`explore_curves.json` has tree search beside random search with the bound, three of each with as
much time (`explore_device.py --curves`); `array_curves.json` has ways to draw candidates for one
convolution (`array/curves.py`). Over what was measured, not over time: the batch in flight when
time is up is measured to its end, and may take long. A curve begins where it is below twice the
best of all (twelve times for convolutions), where one would see nothing of the others otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.harness import RESULTS, ROOT, arguments

from warploom.report.chart import Series, lines
from warploom.report.page import standalone

KINDS = {"tree": "lane", "random": "across"}
OTHERS = ("lane", "across", "folds", "memory")
LABELS = {
    "solver, fusion as meant": "fusion as meant",
    "solver, fusion as coded": "fusion as coded",
    "solver, no fusion rule": "no fusion rule",
}


def drawings() -> Iterator[tuple[str, str]]:
    """Names of files and what is in them."""
    rows: list[dict[str, Any]] = json.loads((RESULTS / "explore_curves.json").read_text())
    for name in dict.fromkeys(row["name"] for row in rows):
        own = [row for row in rows if row["name"] == name]
        most = 2 * min(row["best_us"] for row in own)
        series = [
            Series(f"{row['engine']}, {row['measured']} measured", KINDS[row["engine"]],
                   [(n, ns / 1e3) for _, n, ns in row["curve"] if ns / 1e3 <= most], stairs=True)
            for row in own
        ]  # fmt: skip
        title = f"{name}: the best so far of three tree searches and three random ones"
        yield f"explore-{name}.svg", standalone(lines(title, series, "measured", "microseconds"))
    record = json.loads((RESULTS / "array_curves.json").read_text())
    most = 12 * min(way["best"] for way in record["ways"].values()) * 1e6
    series = [
        Series(
            LABELS.get(label, label),
            kind,
            [(n, s * 1e6) for n, s, *_ in way["curve"] if s * 1e6 <= most],
            True,
        )
        for kind, (label, way) in zip(OTHERS, record["ways"].items(), strict=True)
    ]
    title = f"{record['layer']}: the best so far of ways to draw candidates"
    drawn = lines(title, series, "candidates", "microseconds")
    yield f"map-{record['layer']}.svg", standalone(drawn)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "pictures")
    folder = parser.parse_args().folder
    for name, text in drawings():
        (folder / name).write_text(text)
        print(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
