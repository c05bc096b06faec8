"""Every command, as a process, beside readers that leave, closed and full outputs, and Ctrl-C.

    python -m bench.cli.manners [--presses 2] [--seed 26]

Each row of tests/cli/test_stops.py is run once plainly, then in each manner. It must end with the
status that docs/records.md says, without a traceback, and with the files that were asked for. The
record goes to bench/results/manners.json; the exit status is 1 if something is not so.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common.cli.stops import PROOF_FOR, ROWS, Row
from bench.common.cli.tile import FILE
from bench.harness import arguments, environment, save

RECORDS = "records.json"
# What a shell writes behind the command, and the status, of what would be 0, 1 or 3.
MANNERS = {
    "nobody reads": (">&7", 141),
    "standard output is closed": (">&-", None),
    "all streams are closed": ("<&- >&- 2>&-", None),
    "the disk is full": (">/dev/full", 2),
}


@dataclass(slots=True)
class Run:
    """How a command ended; `early`: by the signal, before a line of ours had run."""

    status: int
    err: str
    records: bool
    seconds: float

    @property
    def early(self) -> bool:
        # Where Python is interrupted as it looks for its own modules, its status is 1.
        python = self.status == 1 and "KeyboardInterrupt" in self.err
        signalled = self.status == -signal.SIGINT and "in main" not in self.err
        return signalled or (python and "/warploom/" not in self.err)


def run(row: Row, folder: Path, redirected: str = "", press: float | None = None) -> Run:
    """Writes into a folder of its own; Ctrl-C comes after so many seconds."""
    (folder / RECORDS).unlink(missing_ok=True)
    words = [*row.words, "--json", RECORDS]
    reader, writer = os.pipe()
    os.close(reader)
    shell = f'exec "$0" -m warploom "$@" {redirected}'.replace("&7", f"&{writer}")
    started = time.monotonic()
    with subprocess.Popen(
        ["bash", "-c", shell, sys.executable, *words], cwd=folder, pass_fds=[writer],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "WARPLOOM_STORE": ""},
    ) as process:  # fmt: skip
        os.close(writer)
        if press is not None:
            try:
                process.wait(press)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=600)[1]
    return Run(process.returncode, err, _is_records(folder / RECORDS), time.monotonic() - started)


def _is_records(file: Path) -> bool:
    try:
        return isinstance(json.loads(file.read_text()), list)
    except (OSError, ValueError):
        return False


def wrong(row: Row, folder: Path, presses: int, draw: random.Random) -> list[dict[str, Any]]:
    """What is not so of one command; the first run says what its status is."""
    plain = run(row, folder)
    found = [] if plain.status in (0, 1) else [("plainly", plain)]
    for manner, (redirected, status) in MANNERS.items():
        ran = run(row, folder, redirected)
        prints = row.words[:2] != ("ptx", "shuffle") and "-o" not in row.words
        wanted = plain.status if status is None or not prints else status
        if ran.status != wanted or "Traceback" in ran.err or not ran.records:
            found.append((manner, ran))
    for _ in range(presses):
        after = draw.uniform(0, plain.seconds)
        ran = run(row, folder, press=after)
        good = ran.status in (130, plain.status) and "Traceback" not in ran.err
        if not (good or ran.early):
            found.append((f"Ctrl-C after {after:.2f} s", ran))
    return [
        {"command": " ".join(row.words)[:80], "manner": manner, "status": each.status,
         "stderr": each.err[-400:]}
        for manner, each in found
    ]  # fmt: skip


def main() -> int:
    parser = arguments(__doc__, "manners.json")
    parser.add_argument("--presses", type=int, default=2)
    parser.add_argument("--seed", type=int, default=26)
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what we start is to hear it
    draw, found = random.Random(asked.seed), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "mine.py").write_text(FILE)
        subprocess.run([sys.executable, "-m", "warploom", *PROOF_FOR], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        for row in ROWS:
            found += wrong(row, folder, asked.presses, draw)
            print(f"{' '.join(row.words)[:80]}: {len(found)} wrong so far", flush=True)
    record = {
        **environment(),
        "commands": len(ROWS),
        "runs": len(ROWS) * (1 + len(MANNERS) + asked.presses),
        "seed": asked.seed,
        "wrong": found,
    }
    save(asked.out, record)
    print(json.dumps(record, indent=1))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
