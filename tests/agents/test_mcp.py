"""`warploom mcp`, driven by the client of the SDK: every tool, hostile arguments, cancelling."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.agents import hostile
from tests.agents.test_call import CLONE, confined, processes_named

pytest.importorskip("mcp", reason="the extra mcp is not installed")
import anyio
from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from warploom.agents import server
from warploom.agents.call import Ended, Limits
from warploom.agents.paths import Folder
from warploom.runtime.compile import can_compile

ROOT = Path(__file__).resolve().parents[2]
SUMS = ROOT / "examples" / "sketches" / "sums.swflow"
JUDGE: dict[str, Any] = {
    "kernel": "twice.ptx", "args": ["x=f32[32]", "y=f32[32]=out"],
    "reference": "references.py::twice",
}  # fmt: skip
DEFINITION = {
    "axes": {"n": {"type": "var"}}, "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
    "reference": "def run(x):\n    return x + x\n",
}  # fmt: skip
ARRAYS = ["f32[32]=range", "f32[32]=zeros"]
INCLUDES = '#include "{path}"\nextern "C" __global__ void k(float* x) {{ x[0] = 1; }}\n'
STAYS_S = f"98232.{os.getpid()}"


@dataclass
class Served:
    """What a server answered, by name, and what was seen while it lived."""

    answers: dict[str, types.CallToolResult] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    progress: list[float] = field(default_factory=list)


Use = Callable[[Client, Served], Awaitable[None]]


def served(root: Path, use: Use, *options: str) -> Served:
    """Talks to a server over stdio, as a client that starts it does."""
    path = os.pathsep.join(each for each in sys.path if each)
    words = ["-P", "-m", "warploom", "mcp", "--root", str(root), *options]
    temporary = root.parent / "temporary"  # of this server alone
    temporary.mkdir(exist_ok=True)
    environment = {"PYTHONPATH": path, "PATH": os.environ["PATH"], "TMPDIR": str(temporary)}
    parameters = StdioServerParameters(command=sys.executable, args=words, env=environment)
    found = Served()

    async def talked() -> None:
        async with Client(stdio_client(parameters)) as client:
            await use(client, found)

    anyio.run(talked)
    return found


def told(answer: types.CallToolResult) -> str:
    return "\n".join(each.text for each in answer.content if isinstance(each, types.TextContent))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outside = tmp_path_factory.mktemp("mcp")
    folder = outside / "root"
    folder.mkdir()
    (outside / "secret.ptx").write_text(hostile.TWICE + "// secret\n")
    (outside / "secret.h").write_text('#error "the secret"\n')
    files = {
        "twice.ptx": hostile.TWICE, "endless.ptx": hostile.ENDLESS, "forks.py": hostile.FORKS,
        "references.py": hostile.REFERENCES, "stays.py": hostile.STAYS.format(seconds=STAYS_S),
        "tries.py": hostile.TRIES.format(outside=str(outside), port=9, clone=CLONE),
        "floods.py": hostile.FLOODS, "definition.json": json.dumps(DEFINITION),
        "includes.cu": INCLUDES.format(path=outside / "secret.h"),
        "above.cu": INCLUDES.format(path="../secret.h"),
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "linked.ptx").symlink_to("../secret.ptx")
    shutil.copy(SUMS, folder)
    return folder


TOOLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "judge": ("judge", JUDGE, "equal"),
    "judge, another": (
        "judge", {**JUDGE, "reference": "references.py::thrice", "counterexample": True},
        "different",
    ),
    "judge, a problem": (
        "judge", {"kernel": "twice.ptx", "problem": "definition.json", "grid": "n // 32",
                  "shape": {"n": [32]}}, "equal",
    ),
    "sanitize": ("sanitize", {"kernel": "twice.ptx", "args": ARRAYS}, "clean"),
    "report": ("report", {"kernel": "twice.ptx", "args": ARRAYS}, "found"),
    "solve_layout": (
        "solve_layout", {"pattern": "transpose:32x32:f32", "emit": "cute", "certificate": True},
        "meets the bound",
    ),
    "synth": ("synth", {"sketch": "sums.swflow", "emit": "cuda", "first": True}, "found"),
    "explore": ("explore", {"kernel": "axpy", "size": {"n": 1024}, "explain": True}, "found"),
    "emit": ("emit", {"kernel": "aos-to-soa", "set": {"fields": 3}, "emit": "cuda"}, "found"),
}  # fmt: skip
WRITTEN = {
    "judge, another": "counterexample.npz", "solve_layout": "certificate.json",
    "synth": "kernel.txt", "emit": "kernel.txt",
}  # fmt: skip


@pytest.fixture(scope="module")
def tools(root: Path) -> Served:
    async def use(client: Client, found: Served) -> None:
        found.names = [each.name for each in (await client.list_tools()).tools]
        for name, (tool, given, _) in TOOLS.items():
            answer = await client.call_tool(tool, given)
            found.answers[name] = answer
            links = [each for each in answer.content if isinstance(each, types.ResourceLink)]
            for link in links:
                read = await client.read_resource(str(link.uri))
                first = read.contents[0]
                text = first.text if isinstance(first, types.TextResourceContents) else first.blob
                found.texts[f"{name}/{link.name}"] = text

    return served(root, use)


def test_all_tools_are_listed(tools: Served) -> None:
    named = ["judge", "sanitize", "report", "solve_layout", "synth", "explore", "emit"]
    assert tools.names == named == list(dict.fromkeys(each[0] for each in TOOLS.values()))


@pytest.mark.parametrize("name", list(TOOLS))
def test_a_tool(tools: Served, name: str) -> None:
    answer, (tool, _, meaning) = tools.answers[name], TOOLS[name]
    assert not answer.is_error, answer
    assert answer.structured_content["meaning"] == meaning
    assert told(answer).startswith(f"{tool}: {meaning}")
    assert len(told(answer)) < 10_000
    assert isinstance(json.loads(tools.texts[f"{name}/record.json"]), list)
    if name in WRITTEN:
        assert tools.texts[f"{name}/{WRITTEN[name]}"]


def test_an_emitted_kernel_is_behind_its_link(tools: Served) -> None:
    assert "__global__" in tools.texts["emit/kernel.txt"]


# -- hostile arguments -----------------------------------------------------------------------------

HOSTILE: dict[str, tuple[str, dict[str, Any], str]] = {
    "outside": ("report", {"kernel": "../secret.ptx"}, "refused"),
    "absolute": ("report", {"kernel": "/etc/passwd"}, "refused"),
    "link": ("report", {"kernel": "linked.ptx"}, "refused"),
    "option": ("solve_layout", {"pattern": "--certificate=x"}, "refused"),
    "unknown": ("shell", {"command": "id"}, "refused"),
    "extra": ("report", {"kernel": "twice.ptx", "json": "x"}, "refused"),
    "arrays": ("sanitize", {"kernel": "twice.ptx", "args": ["f64[200000000]=zeros"] * 7}, "ended"),
    "endless": (
        "sanitize", {"kernel": "endless.ptx", "args": ["f32[1]=zeros"], "seconds": 6}, "ended",
    ),
    "endless Python": (
        "judge", {**JUDGE, "reference": "references.py::endless", "seconds": 4}, "time",
    ),
    "large Python": ("judge", {**JUDGE, "reference": "references.py::huge"}, "ended"),
    "forks": ("sanitize", {"kernel": "forks.py"}, "processes"),
    "stays": ("sanitize", {"kernel": "stays.py"}, "ended"),
    "floods": ("sanitize", {"kernel": "floods.py"}, "ended"),
    "tries": ("sanitize", {"kernel": "tries.py"}, "ended"),
    "includes": ("sanitize", {"kernel": "includes.cu", "args": ["f32[1]=zeros"]}, "ended"),
    "includes above": ("sanitize", {"kernel": "above.cu", "args": ["f32[1]=zeros"]}, "ended"),
}  # fmt: skip


@pytest.fixture(scope="module")
def attacked(root: Path) -> Served:
    async def use(client: Client, found: Served) -> None:
        for name, (tool, given, _) in HOSTILE.items():
            found.answers[name] = await client.call_tool(tool, given)
        found.answers["afterwards"] = await client.call_tool("judge", JUDGE)

    before = {each: each.stat().st_mtime_ns for each in root.iterdir()}
    found = served(root, use, "--memory", "2000", "--output", "16")
    assert {each: each.stat().st_mtime_ns for each in root.iterdir()} == before
    return found


@pytest.mark.slow
@pytest.mark.sampled(3)
@confined
@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_hostile_call_is_refused_or_ended(attacked: Served, name: str) -> None:
    answer, expected = attacked.answers[name], HOSTILE[name][2]
    stopped = answer.structured_content["stopped"]
    assert stopped == expected if expected in ("refused", "time", "processes") else True, answer
    assert answer.is_error or answer.structured_content["exit_status"] == 3, answer
    assert "the secret" not in told(answer)


@pytest.mark.slow
@confined
def test_a_server_outlives_them_and_leaves_nothing(attacked: Served, root: Path) -> None:
    assert attacked.answers["afterwards"].structured_content["meaning"] == "equal"
    assert "done: " not in told(attacked.answers["tries"])
    assert told(attacked.answers["tries"]).count("refused: ") == hostile.TRIED
    assert processes_named(STAYS_S) == []
    assert list((root.parent / "temporary").iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not can_compile(), reason="no CUDA compiler")
@confined
def test_an_include_outside_is_not_found(attacked: Served) -> None:
    for name in ("includes", "includes above"):
        assert "secret.h" in told(attacked.answers[name])


def test_progress_and_cancelling(root: Path) -> None:
    endless = {**JUDGE, "reference": "references.py::endless"}

    async def use(client: Client, found: Served) -> None:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            found.progress.append(progress)

        with anyio.move_on_after(6) as scope:
            await client.call_tool("judge", endless, progress_callback=note)
        assert scope.cancelled_caught
        found.answers["afterwards"] = await client.call_tool("judge", JUDGE)
        running = processes_named("references.py::endless")
        assert [each for each in running if str(root) in each] == []

    found = served(root, use)
    assert found.answers["afterwards"].structured_content["meaning"] == "equal"
    assert len(found.progress) >= 2
    assert found.progress == sorted(found.progress)


MALFORMED = (
    b"\xff\xfe no text",
    b"",
    b"[]",
    b"1",
    b"[" * 100_000,
    b'{"jsonrpc": "2.0", "id": 1}',
    b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": 3}}',
    b'{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "report", '
    b'"arguments": {"kernel": "\\ud800.ptx"}}}',
    b'{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "report", '
    b'"arguments": {"kernel": "' + b"x" * 3_000_000 + b'"}}}',
    b'{"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}}',
)


def test_a_server_outlives_what_is_no_request(root: Path) -> None:
    """Lines as no SDK would write them; then a request is answered."""
    begin = {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }  # fmt: skip
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}).encode(),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', *MALFORMED,
        b'{"jsonrpc": "2.0", "id": 99, "method": "tools/list"}',
    ]  # fmt: skip
    words = ["-P", "-m", "warploom", "mcp", "--root", str(root)]
    temporary = root.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    environment = {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
                   "PATH": os.environ["PATH"], "TMPDIR": str(temporary)}  # fmt: skip
    with subprocess.Popen(
        [sys.executable, *words], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join(lines) + b"\n")
        process.stdin.flush()
        answers: dict[Any, Any] = {}
        while 99 not in answers:
            line = process.stdout.readline()
            assert line, "it has ended"
            answers |= {(read := json.loads(line)).get("id"): read}
        process.stdin.close()
    assert len(answers[99]["result"]["tools"]) == 7
    assert answers[4]["result"]["structuredContent"]["stopped"] == "refused"
    assert "error" in answers[2]
    assert "root:" not in json.dumps(answers[5])
    assert "error" in answers[5]


def in_process(root: Path, folder: Path, *, allow_python: bool = False) -> server.Tools:
    return server.Tools(server.Settings(Folder(root), Limits(), allow_python), folder)


def asked(name: str, arguments: dict[str, Any]) -> types.CallToolRequestParams:
    return types.CallToolRequestParams(name=name, arguments=arguments)


def test_two_calls_run_at_a_time(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most = [0], [0]
    lock = threading.Lock()

    def run(words: list[str], folder: Path, place: Path, *_: Any) -> Ended:
        place.mkdir()
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.2)
        with lock:
            running[0] -= 1
        return Ended(0, "", 0.2, "", "")

    monkeypatch.setattr(server, "run", run)

    async def five() -> None:
        tools = in_process(root, tmp_path)
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(
                    tools.call_tool, None, asked("report", {"kernel": "twice.ptx", "args": ARRAYS})
                )

    anyio.run(five)
    assert most == [2]


def test_what_nothing_confines_is_refused_unless_it_is_allowed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on systems without Landlock."""
    called = []

    def run(words: list[str], folder: Path, place: Path, limits: Limits, is_kernels: bool,
            *_: Any) -> Ended:  # fmt: skip
        place.mkdir()
        called.append((words[0], is_kernels))
        return Ended(0, "", 0.0, "", "")

    monkeypatch.setattr(server, "run", run)
    monkeypatch.setattr(server, "can_confine", lambda: False)
    plain = asked("report", {"kernel": "twice.ptx", "args": ARRAYS})
    for allow in (False, True):
        tools = in_process(root, tmp_path / str(allow), allow_python=allow)
        tools.kept.folder.mkdir()
        for each in (asked("judge", JUDGE), asked("sanitize", {"kernel": "includes.cu"})):
            answer = anyio.run(tools.call_tool, None, each)
            assert answer.is_error is not allow
            assert allow or "--allow-python" in told(answer)
        assert not anyio.run(tools.call_tool, None, plain).is_error
    assert called == [("ptx", False), ("judge", False), ("sanitize", False), ("ptx", False)]
