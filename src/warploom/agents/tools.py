"""The tools of `warploom mcp`: each is a command of ours, with the options that an agent needs.

Comes in: a tool's name and its arguments, as JSON. Goes out: the words of a command line, and the
files that the command writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.agents.fields import (
    RUN,
    Asked,
    Field,
    Schema,
    arrays,
    choice,
    choices,
    file_or_name,
    function,
    kernel_file,
    launch,
    not_right,
    sizes,
    switch,
    text,
    text_that_runs,
    texts,
    whole,
    word,
)
from warploom.agents.paths import Folder, RefusedError
from warploom.choices import LANGUAGES, SPELLINGS, TOOLS, VARIED

RECORD = "record.json"
_WRITTEN = "kernel.txt"
_PROOF, _EXAMPLE = "certificate.json", "counterexample.npz"
FILES = {
    RECORD: "application/json", _WRITTEN: "text/plain", _PROOF: "application/json",
    _EXAMPLE: "application/octet-stream",
}  # fmt: skip

_USUAL = {0: "found", 1: "impossible", 2: "bad input", 3: "undecided", 70: "internal error"}
_SAFE = {**_USUAL, 0: "clean", 1: "something was found"}
_EQUAL = {**_USUAL, 0: "equal", 1: "different", 3: "unknown"}
_BEST = {**_USUAL, 0: "meets the bound", 1: "no layout meets the bound", 3: "undecided"}

SECONDS = "seconds"
_UNTIMED = {RUN, "--explain", "--estimate"}  # beside these a command takes no time
_PART = 0.8  # of the time of a call: then the command ends by itself, with what it has


@dataclass(frozen=True, slots=True)
class Tool:
    """`words` begin the command, `meanings` are those of its exit statuses."""

    name: str
    words: tuple[str, ...]
    about: str
    fields: tuple[Field, ...]
    meanings: Mapping[int, str]
    is_timed: bool = True
    either: tuple[str, ...] = ()  # fields of which one has to be given

    def schema(self, seconds: float) -> Schema:
        """What the tool takes, as JSON Schema."""
        own = {each.name: {**each.schema, "description": each.about} for each in self.fields}
        limit = {
            "type": "number", "exclusiveMinimum": 0, "maximum": seconds,
            "description": f"Time limit of this call; {seconds:g} without it.",
        }  # fmt: skip
        return {
            "type": "object", "properties": {**own, SECONDS: limit},
            "required": [each.name for each in self.fields if each.required],
            "additionalProperties": False,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """What is to be run, for how long; `says_more` and `files`: see `Asked`."""

    tool: Tool
    words: list[str]
    seconds: float
    says_more: bool
    files: tuple[str, ...]


def call_of(name: str, given: Mapping[str, Any], folder: Folder, seconds: float) -> Call:
    """The call that a client asks for, if it may ask for it; `seconds` are the most."""
    tool = TOOLS_BY_NAME.get(name)
    if tool is None:
        raise RefusedError(f"there is no tool '{name[:40]}'", advice=", ".join(TOOLS_BY_NAME))
    known = {each.name: each for each in tool.fields}
    for key in given:
        if key not in known and key != SECONDS:
            raise RefusedError(f"{name} takes no '{key[:40]}'", advice=", ".join(known))
    asked, words = Asked(folder), list(tool.words)
    for each in tool.fields:
        if given.get(each.name) is not None:
            words += each.words(given[each.name], asked)
        elif each.required:
            raise RefusedError(f"{name} needs '{each.name}'", advice=each.about)
    if tool.either and sum(given.get(each) is not None for each in tool.either) != 1:
        raise RefusedError(f"{name} needs one of {' and '.join(map(repr, tool.either))}")
    most = _seconds(given.get(SECONDS), seconds)
    if tool.is_timed and _UNTIMED.isdisjoint(words):
        words.append(f"--seconds={most * _PART:g}")
    return Call(tool, words, most, asked.says_more, tuple(asked.files))


def _seconds(given: Any, most: float) -> float:
    if given is None:
        return most
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 < given <= most:
        raise not_right(SECONDS, f"a number above 0, and at most {most:g}")
    return float(given)


def with_files(call: Call, scratch: Path) -> list[str]:
    """The words of the call, with the folder that it writes to."""
    words = [each.replace(_HERE, f"{scratch}/") for each in call.words]
    emits = any(each.startswith("--emit=") for each in words)
    return [*words, f"--json={scratch / RECORD}", *([f"-o{scratch / _WRITTEN}"] if emits else [])]


_HERE = "\0/"  # no text of a client has this character

_GRID = text("grid", "--grid", "Number of blocks: X or X,Y,Z.")
_BLOCK = text("block", "--block", "Threads of a block: X or X,Y,Z (default: 32).")
_LAUNCH = (
    _GRID,
    _BLOCK,
    text("cluster", "--cluster", "Blocks of a cluster: X,Y,Z."),
    whole("shared", "--shared", "Bytes of dynamic shared memory."),
    text("name", "--kernel", "Which kernel, if the file has several."),
    word("arch", "--arch", "Architecture that CUDA is compiled for (default: sm_90a)."),
    launch("launch", "--launch", "A recorded launch, .npz or .json, in place of grid and args."),
)
_ARGS = arrays(
    "args", "--arg",
    "One for each parameter, in order: f32[64]=random, i32[8]=zeros, i32=7, @x.npy.",
)  # fmt: skip
_MACHINE = word("machine", "--machine", "A known machine: h200, volta, gfx942 or another.")
_EMIT = choice("emit", "--emit", LANGUAGES, "Also write the kernel, in this language.")

_TOOLS = (
    Tool(
        "judge", ("judge",),
        "Is a kernel (CUDA or PTX) equal to its NumPy reference for ALL inputs of a shape, under "
        "every schedule? equal, different with a counterexample, or unknown with reasons. In place "
        "of the reference there may be a problem in KernelBench's form, and a candidate for it.",
        (
            kernel_file(
                "kernel",
                "FILE.cu, FILE.ptx, FILE.py::NAME of such a text, or a candidate of a problem.",
                ("::", ".py"),
            ),
            function("reference", "--reference", "FILE.py::NAME, a function in NumPy or PyTorch."),
            text_that_runs(
                "problem", "--problem", (".py", ".json"),
                "Without a reference: KernelBench's FILE.py with Model, for a FILE.py with "
                "ModelNew; or a FlashInfer definition, FILE.json, for CUDA or PTX.",
            ),
            texts(
                "args", "--arg",
                "One for each parameter of the kernel, in order, by name: x=f32[rows,n] (input), "
                "y=f32[rows,n]=out, y=f32[n]=inout, n=i32=n, k=i32[n]=range, eps=f32=1e-5.",
            ),
            sizes("shape", "--shape", 'Sizes: {"rows": 3, "n": [37, 64]}.', several=True),
            *_LAUNCH,
            whole("seed", "--seed", "Repeat a call; without it all is drawn anew."),
            switch(
                "counterexample", "--counterexample",
                "Write the launch that shows a difference; of kernels that are different.",
                _HERE + _EXAMPLE,
            ),
        ), _EQUAL, either=("reference", "problem"),
    ),
    Tool(
        "sanitize", ("sanitize",),
        "Run one launch of a kernel with compute-sanitizer's checks, without a GPU: out-of-bounds, "
        "races, deadlocks, uninitialised values, each with its line.",
        (
            kernel_file(
                "kernel",
                "FILE.cu, FILE.ptx, or a FILE.py that launches kernels by warploom.emulate.",
                (".py",),
            ),
            _ARGS,
            *_LAUNCH,
            choices("tools", "--tool", TOOLS, "Which checks (default: all)."),
            whole("seed", "--seed", "Seed of random arrays."),
        ), _SAFE,
    ),
    Tool(
        "report", ("ptx", "report"),
        "Count what one launch does to memory, line by line: sectors, bank conflicts, divergence, "
        "and what limits it.",
        (
            kernel_file("kernel", "FILE.cu or FILE.ptx."), _ARGS, *_LAUNCH, _MACHINE,
            whole("seed", "--seed", "Seed of random arrays."),
        ), _USUAL,
    ),
    Tool(
        "solve_layout", ("layout", "solve"),
        "Find the shared-memory layout with the fewest bank conflicts for a pattern of accesses, "
        "with a proof that none is better.",
        (
            file_or_name(
                "pattern", (".toml",),
                "transpose:32x32:f32, ldmatrix:64x96:f16, blocks:32x32, or a FILE.toml.",
            ),
            choice(
                "class", "--class",
                ("none", "pad", "swizzle", "xor", "mixed", "any", "tma", "wgmma"),
                "Which layouts are searched (default: mixed).",
            ),
            switch("worst", "--worst", "Minimise the worst access instead of the sum."),
            switch("no_waste", "--no-waste", "Allow no padding."),
            choices("vary", "--vary", VARIED, "Decide these together with the layout."),
            _MACHINE,
            choice(
                "emit", "--emit", (*LANGUAGES, *SPELLINGS),
                "Write the layout as an index function or in another tool's words.",
            ),
            switch("certificate", "--certificate", "Write the proof.", _HERE + _PROOF),
        ), _BEST,
    ),
    Tool(
        "synth", ("synth",),
        "Fill the holes of a sketch with index arithmetic, and prove the fills.",
        (
            file_or_name(
                "sketch", (".swflow",), "FILE.swflow, a sketch's name, or FILE.py::NAME.",
                python=True,
            ),
            sizes("size", "--size", "Sizes of the sketch."),
            switch("first", "--first", "Stop at the first solution."),
            switch("best", "--best", "The solution with the fewest index operations."),
            _EMIT,
            choice("as", "--as", ("kernel", "function"), "What is written."),
            switch("certificate", "--certificate", "Write the proof.", _HERE + _PROOF),
        ), _USUAL,
    ),
    Tool(
        "explore", ("explore", "--model", "--no-store"),
        "Search the implementations of a loop nest (matmul, matvec, axpy, …) by predicted time, "
        "with a lower bound. No GPU is used.",
        (
            file_or_name(
                "kernel", (),
                "axpy, matvec, gesummv, matmul, batched-matmul, two-matmuls, doitgen, or "
                "FILE.py::NAME.",
                python=True,
            ),
            sizes("size", "--size", 'Sizes: {"m": 1024, "n": 1024, "k": 1024}.'),
            choice(
                "type", "--type", ("f32", "f16", "bf16", "e4m3", "e5m2", "i8"),
                "Type of the factors of matmul and batched-matmul.",
            ),
            _MACHINE,
            choice(
                "space", "--space", ("default", "paper", "tensor", "tensor-bf16"),
                "Which implementations.",
            ),
            word("strategy", "--strategy", "Only this strategy; none: the nest as it is."),
            texts("fix", "--fix", "Decisions of your own: size(m1)=16, dim_kind(n0)=LOOP."),
            switch("explain", "--explain", "Show what bounds the time, and stop."),
            switch("estimate", "--estimate", "Estimate how many implementations there are."),
            _EMIT,
        ), _USUAL,
    ),
    Tool(
        "emit", ("kernel",),
        "Write a kernel of the catalogue, or of a sketch, as CUDA, HIP, OpenCL or C.",
        (
            file_or_name(
                "kernel", (".swflow",),
                "A kernel's name (aos-to-soa, transposition, …), FILE.swflow or FILE.py::NAME.",
                python=True,
            ),
            sizes("set", "--set", "Parameters of the kernel, or sizes of the sketch."),
            choice("emit", "--emit", LANGUAGES, "The language (cuda, if you have no other)."),
            choice("as", "--as", ("kernel", "function"), "What is written."),
            switch("check", "--check", "Compare it with its specification at many sizes."),
        ), _USUAL, is_timed=False,
    ),
)  # fmt: skip
TOOLS_BY_NAME = {each.name: each for each in _TOOLS}
