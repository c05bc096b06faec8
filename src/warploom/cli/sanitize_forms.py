"""Findings of a sanitizer in forms that other programs read: compute-sanitizer's, SARIF, JUnit.

What comes in are the records of `--json`; what comes out is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from warploom import __version__
from warploom.machine.report import number_of

Record = dict[str, Any]
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ABOUT = {
    "memcheck": "An access out of bounds or misaligned, use after free, assert or trap.",
    "racecheck": "Accesses of two threads to one place, one of them a write, that nothing orders.",
    "synccheck": "A deadlock, or a barrier or collective that cannot complete.",
    "initcheck": "A value that is used before it is written.",
    "judge": "A kernel that is not equal to its reference, or of which that is not known.",
    "launch": "A launch that did not come to its end, or could not begin.",
}


@dataclass(frozen=True, slots=True)
class Sanitized:
    """What a call found: in which file, by which tools, and its exit status."""

    source: str
    tools: tuple[str, ...]
    status: int
    findings: list[Record]
    command: str = "warploom sanitize"

    def of(self, tool: str) -> list[Record]:
        return [each for each in self.findings if each.get("tool", "launch") == tool]


# -- compute-sanitizer -----------------------------------------------------------------------------


def printed(answer: Sanitized) -> str:
    """As compute-sanitizer prints, with lines of the source in the place of machine code."""
    lines = ["COMPUTE-SANITIZER"]
    for each in answer.findings:
        lines += [*_report(each), ""]
    races = answer.of("racecheck")
    mild = sum(not _breaks(each) for each in races)
    if "racecheck" in answer.tools:
        errors, warnings = number_of(len(races) - mild, "error"), number_of(mild, "warning")
        hazards = f"{number_of(len(races), 'hazard')} displayed"
        lines.append(f"RACECHECK SUMMARY: {hazards} ({errors}, {warnings})")
    lines.append(f"ERROR SUMMARY: {number_of(len(answer.findings) - mild, 'error')}")
    return "".join(f"========= {line}".rstrip() + "\n" for line in lines)


def _breaks(each: Record) -> bool:
    """Whether GPUs get it wrong, and not the manual alone forbids it."""
    return bool(each.get("breaks", True))


def _report(each: Record) -> Iterator[str]:
    yield _headline(each)
    if each.get("tool") == "racecheck":
        does, hazards = "Write" if each["writes"] else "Read", number_of(each["pairs"], "hazard")
        yield f"    and {does} access at {_place(each)} [{hazards}]"
    elif "tool" in each:
        yield f"    at {each['kernel']} in {_place(each)}"
    if each.get("by"):
        block, _, thread = each["by"].partition(", thread ")
        yield f"    by thread {thread} in {block}"
    for line in f"{each['message']}\n{each['advice']}".strip().split("\n"):
        yield f"    {line.strip()}"


def _headline(each: Record) -> str:
    does = "write" if each.get("writes") else "read"
    match each.get("tool"):
        case "memcheck" if each.get("space"):
            return f"Invalid __{each['space']}__ {does} of size {each['bytes']} bytes"
        case "initcheck" if each.get("space"):
            size = each["bytes"]
            return f"Uninitialized __{each['space']}__ memory read of size {size} bytes"
        case "synccheck":
            return "Barrier error detected."
        case "racecheck":
            other = each["other"]
            did = "Write" if other["writes"] else "Read"
            grade = "Error" if _breaks(each) else "Warning"
            return f"{grade}: Race reported between {did} access at {_place(other)}"
    return "Error"


def _place(each: Record) -> str:
    return f"{Path(each['file']).name}:{each['line']}" if "file" in each else "unknown"


# -- SARIF -----------------------------------------------------------------------------------------


def sarif(answer: Sanitized) -> str:
    """SARIF 2.1.0: one run, a rule for each tool, a result for each finding."""
    return sarif_of([result(each) for each in answer.findings], answer.status, answer.tools)


def sarif_of(results: list[Record], status: int, tools: tuple[str, ...] = ()) -> str:
    """One run with these results; rules are those of the tools, and of the results."""
    rules = {*tools, "launch", *(each["ruleId"] for each in results)}
    driver = {
        "name": "Warploom", "version": __version__,
        "rules": [
            {"id": name, "shortDescription": {"text": text}}
            for name, text in ABOUT.items()
            if name in rules
        ],
    }  # fmt: skip
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": status in (0, 1)}],
        "results": results,
    }
    whole = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def results_of(text: str) -> list[Record]:
    """The results of what `sarif` has written."""
    return [each for run in json.loads(text)["runs"] for each in run["results"]]


def result(each: Record) -> Record:
    """A finding as a result."""
    text = each["message"] + (f"\n{each['advice']}" if each["advice"] else "")
    found: Record = {
        "ruleId": each.get("tool", "launch"), "level": "error" if _breaks(each) else "warning",
        "message": {"text": text},
        "locations": [location(each)] if "file" in each else [],
    }  # fmt: skip
    if "file" in each.get("other", {}):
        text = {"message": {"text": "the other access"}}
        found["relatedLocations"] = [location(each["other"]) | text]
    return found


def location(place: Record) -> Record:
    """A file and a line of it, as SARIF names them."""
    region = {"startLine": place["line"]}
    if "column" in place:
        region["startColumn"] = place["column"]
    file = {"uri": quote(Path(place["file"]).as_posix(), errors="surrogateescape")}
    return {"physicalLocation": {"artifactLocation": file, "region": region}}


# -- JUnit -----------------------------------------------------------------------------------------


def junit(answer: Sanitized) -> str:
    """One test case for each tool, and one for the launch itself: whether it came to its end."""
    cases = [_case(answer, tool) for tool in (*answer.tools, "launch")]
    failures = sum("<failure" in each for each in cases)
    errors = sum("<error" in each for each in cases)
    head = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    suite = f'<testsuite name="{answer.command}" {head}>'
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>", suite, *cases, "</testsuite>",
         "</testsuites>", ""]
    )  # fmt: skip


def _case(answer: Sanitized, tool: str) -> str:
    found = answer.of(tool)
    head = f"<testcase classname={quoteattr(answer.source)} name={quoteattr(tool)}"
    if not found:
        return f"{head}/>"
    kind = "error" if tool == "launch" else "failure"
    told = [_told(each) for each in found]
    first = quoteattr(_clean(found[0]["message"].split("\n")[0]))
    whole = escape(_clean("\n".join(told)))
    return f"{head}><{kind} message={first}>{whole}</{kind}></testcase>"


def _told(each: Record) -> str:
    place = f"{each['file']}:{each['line']}: " if "file" in each else ""
    return f"{place}{each['message']}" + (f"\n  {each['advice']}" if each["advice"] else "")


def _clean(text: str) -> str:
    """Characters that XML has no way to write are left out."""
    return "".join(each for each in text if each.isprintable() or each in "\t\n")
