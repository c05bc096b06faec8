"""The tools over MCP: the one module that imports the `mcp` package.

Each call is a process of its own (`call.py`), at most two at a time. While it runs, the client is
told the time; if the client cancels, the process and all that it started is ended.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from warploom import __version__
from warploom.agents.call import Ended, Limits, run
from warploom.agents.confined import can_confine
from warploom.agents.kept import Kept, Link
from warploom.agents.paths import Folder, RefusedError
from warploom.agents.tools import TOOLS_BY_NAME, Call, call_of, with_files

Context = Any  # mcp.server.context.ServerRequestContext

_MOST_CALLS = 2
_MOST_CHARACTERS = 4000  # of a result; all of it is behind its link
_ABOUT = """\
Warploom checks GPU kernels without a GPU. Write a kernel, then sanitize it, judge it against a
NumPy reference, mend what the messages say, and repeat. Files are named relative to the folder of
this server. Each result links to the full record."""
_RESULT = {
    "type": "object",
    "properties": {
        "meaning": {"type": "string"}, "exit_status": {"type": ["integer", "null"]},
        "stopped": {"type": "string"}, "seconds": {"type": "number"},
        "links": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["meaning", "exit_status", "stopped", "seconds", "links"],
}  # fmt: skip
_STOPPED = {
    "time": "it took longer than {0.seconds:g} s",
    "memory": "it needed more than {1} MiB of memory",
    "output": "it wrote more than {2} MiB",
    "processes": "it started more than {0.processes} processes",
    "cancelled": "it was cancelled",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one server: its folder, the limits of a call, and whether texts that run may
    run where the kernel does not confine them."""

    root: Folder
    limits: Limits
    allow_python: bool = False


class Tools:
    """What a server does with the requests of its client."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.root = settings.root
        self.kept = Kept(folder)
        self.is_confined = can_confine()
        self._turn = anyio.Semaphore(_MOST_CALLS)

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        seconds = self.settings.limits.seconds
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=each.name, description=each.about, input_schema=each.schema(seconds),
                    output_schema=_RESULT,
                    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                )
                for each in TOOLS_BY_NAME.values()
            ]
        )  # fmt: skip

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            call = call_of(
                params.name, params.arguments or {}, self.root, self.settings.limits.seconds
            )
            self._check_may_run(call)
        except RefusedError as error:
            return _refusal(str(error))
        limits = self._limits(call)
        async with self._turn:
            ended, links = await self._run(call, limits, context)
        return _result(call, ended, links, limits)

    async def _run(self, call: Call, limits: Limits, context: Context) -> tuple[Ended, list[Link]]:
        """The call in a thread that watches its process; the thread ends before this does."""
        cancelled, place = threading.Event(), self.kept.place()
        done: list[Ended] = []

        async def told() -> None:
            began = anyio.current_time()
            try:
                while True:
                    await anyio.sleep(1)
                    passed = anyio.current_time() - began
                    await context.session.report_progress(
                        passed, limits.seconds, f"{call.tool.name}: {passed:.0f} s"
                    )
            finally:
                cancelled.set()

        work = partial(
            run, with_files(call, place / "scratch"), self.root.real, place, limits,
            self.is_confined, cancelled,
        )  # fmt: skip
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(told)
                done.append(await anyio.to_thread.run_sync(work))
                group.cancel_scope.cancel()
        finally:
            links = self.kept.keep(place) if place.exists() else []
        return done[0], links

    def _limits(self, call: Call) -> Limits:
        most = self.settings.limits
        return Limits(call.seconds, most.memory_bytes, most.output_bytes, most.processes)

    def _check_may_run(self, call: Call) -> None:
        if call.says_more and not (self.is_confined or self.settings.allow_python):
            raise RefusedError(
                "this call runs Python or follows files, and nothing confines it here: that needs "
                "Linux 6.2 or later with Landlock and seccomp, on x86-64 or AArch64",
                advice="give PTX, or start the server with --allow-python",
            )

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        del context, params
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=each.address, name=each.name, mime_type=each.type)
                for each in self.kept.links()
            ]
        )

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        del context
        address = str(params.uri)
        kind, data = self.kept.read(address)
        return types.ReadResourceResult(contents=[_contents(address, kind, data)])


def _contents(
    address: str, kind: str, data: bytes
) -> types.TextResourceContents | types.BlobResourceContents:
    if kind == "application/octet-stream":
        blob = base64.b64encode(data).decode()
        return types.BlobResourceContents(uri=address, mime_type=kind, blob=blob)
    text = data.decode("utf-8", "replace")
    return types.TextResourceContents(uri=address, mime_type=kind, text=text)


def _refusal(text: str) -> types.CallToolResult:
    structured: dict[str, Any] = {
        "meaning": "refused", "exit_status": None, "stopped": "refused", "seconds": 0.0, "links": {}
    }  # fmt: skip
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=structured,
        is_error=True,
    )  # fmt: skip


def _result(call: Call, ended: Ended, links: list[Link], limits: Limits) -> types.CallToolResult:
    status, wrong = ended.status, bool(ended.stopped)
    meaning = "stopped" if ended.stopped else _meaning(call, status)
    structured = {
        "meaning": meaning, "exit_status": status, "stopped": ended.stopped,
        "seconds": round(ended.seconds, 2), "links": {each.name: each.address for each in links},
    }  # fmt: skip
    lines = [each for each in _lines(call, meaning, ended, limits) if each]
    linked = [
        types.ResourceLink(
            type="resource_link", uri=each.address, name=each.name, mime_type=each.type,
            size=each.size,
        )
        for each in links
    ]  # fmt: skip
    told = types.TextContent(type="text", text="\n".join(lines))
    return types.CallToolResult(
        content=[told, *linked], structured_content=structured,
        is_error=wrong or status not in (0, 1, 3),
    )  # fmt: skip


def _meaning(call: Call, status: int | None) -> str:
    if status is None or status not in call.tool.meanings:
        return f"ended with status {status}"
    return call.tool.meanings[status]


def _lines(call: Call, meaning: str, ended: Ended, limits: Limits) -> Iterator[str]:
    if ended.stopped:
        told = _STOPPED[ended.stopped].format(
            limits, limits.memory_bytes >> 20, limits.output_bytes >> 20
        )
        yield f"{call.tool.name}: the call was ended, because {told}"
    else:
        yield f"{call.tool.name}: {meaning}"
    yield shortened(ended.err.strip())
    yield shortened(ended.out.strip())


def shortened(text: str) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= _MOST_CHARACTERS:
        return text
    first, last = _MOST_CHARACTERS * 3 // 4, _MOST_CHARACTERS // 4
    left = len(text) - first - last
    return f"{text[:first]}\n… {left} characters are left out; see the links …\n{text[-last:]}"


def server_of(tools: Tools) -> Server[Any]:
    """The SDK's server with these tools."""
    return Server(
        "warploom", version=__version__, instructions=_ABOUT,
        on_list_tools=tools.list_tools, on_call_tool=tools.call_tool,
        on_list_resources=tools.list_resources, on_read_resource=tools.read_resource,
    )  # fmt: skip


def serve(settings: Settings, folder: Path) -> None:
    """Answers over standard input and output until the client closes them; records of calls are
    kept in `folder`, which is the caller's to remove."""

    async def answered() -> None:
        server = server_of(Tools(settings, folder))
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(answered)
