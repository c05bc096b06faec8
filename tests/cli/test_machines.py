"""`warploom machines`: what the records say."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli

from warploom.machine.record import KNOWN, machine_named


def test_all_machines_are_listed(cli: Cli, tmp_path: Path) -> None:
    ran = cli("machines", "--json", str(tmp_path / "m.json"))
    assert ran.status == 0
    rows = {line.split()[0]: line.split() for line in ran.out.splitlines() if line}
    assert {*KNOWN} <= rows.keys()
    records = {record["name"]: record for record in json.loads((tmp_path / "m.json").read_text())}
    assert records.keys() == {*KNOWN}
    assert records["h200"]["shared_bytes_most"] == machine_named("h200").shared_bytes_most
    assert records["volta"]["times"]["cached_wait"] == machine_named("volta").times.cached_wait
