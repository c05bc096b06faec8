"""`warploom mcp`: serves tools to agents until its client closes the connection."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from warploom.agents.call import Limits
from warploom.agents.paths import Folder
from warploom.cli.commands.mcp import Mcp
from warploom.cli.declare import Context
from warploom.cli.guard import Status, run
from warploom.errors import AbsentError, missing_extra

_MB = 1_000_000


def mcp(asked: Mcp, _context: Context) -> None:
    def action() -> Status:
        if not hasattr(os, "killpg"):
            raise AbsentError("calls cannot be ended as a whole on this system", advice="use WSL")
        root = Folder(asked.root.absolute())
        try:
            from warploom.agents.server import Settings, serve  # here: it imports an extra
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "anyio"):
                raise
            raise missing_extra("mcp", "mcp") from None
        limits = Limits(asked.seconds, int(asked.memory * _MB), int(asked.output * _MB))
        with TemporaryDirectory(prefix="warploom-mcp-") as folder:
            serve(Settings(root, limits, asked.allow_python), Path(folder).resolve())
        return Status.FOUND

    run(action)
