"""The lowest versions that `pyproject.toml` allows: one `name==version` for each requirement.

    python -m bench.release.floors [--extra NAME]…

`make oldest` installs exactly these and runs tests with them: a floor that is not true is found
there. A requirement without a floor, which could not be tried, is an error. Only Python itself is
needed.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # not by the harness, which asks for warploom

_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?P<versions>[^;]*)(?:;\s*platform_machine == '(?P<machine>\w+)')?\Z"
)


def floor(requirement: str) -> str | None:
    """`numpy>=1.26` → `numpy==1.26`; None for what this machine is not meant for."""
    found = _REQUIREMENT.match(requirement)
    lowest = None if found is None else re.search(r">=\s*([\w.]+)", found["versions"])
    if found is None or lowest is None:
        raise ValueError(f"'{requirement}' has no lowest version")
    if found["machine"] not in (None, platform.machine()):
        return None
    return f"{found['name']}=={lowest[1]}"


def floors(extras: list[str]) -> list[str]:
    """Of what every user has, and of these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [project["dependencies"], *(project["optional-dependencies"][each] for each in extras)]
    return [found for part in asked for each in part if (found := floor(each)) is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extra", action="append", default=[])
    print("\n".join(floors(parser.parse_args().extra)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
