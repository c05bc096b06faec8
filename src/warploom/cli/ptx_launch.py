"""What a command launches: the words of its options, or a file that records a launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.cli.commands.ptx import Launched
from warploom.cli.declare import Context
from warploom.cli.guard import check_meant
from warploom.cli.launch_file import RecordedLaunch, read_launch
from warploom.cli.ptx_arguments import parse_arguments, parse_cluster, parse_shape

_RECORDED = ("grid", "block", "cluster", "arg", "shared")


def launch_of(asked: Launched, seed: int, context: Context) -> RecordedLaunch:
    """Grid, block and arguments, as written or as recorded."""
    if asked.launch is not None:
        check_meant(context, _RECORDED, "beside --launch, which says it")
        return read_launch(asked.launch, seed)
    args = parse_arguments(asked.arg, seed)
    return RecordedLaunch(
        parse_shape(asked.grid), parse_shape(asked.block), args,
        cluster=parse_cluster(asked.cluster), shared=asked.shared,
    )  # fmt: skip


def arrays_of(launch: RecordedLaunch) -> dict[str, Any]:
    """The arrays by name: of a recorded launch its own, else by number of the argument."""
    if launch.arrays:
        return launch.arrays
    args = enumerate(launch.args)
    return {f"arg{n}": each for n, each in args if isinstance(each, np.ndarray)}
