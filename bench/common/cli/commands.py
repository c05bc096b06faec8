"""One table of commands: the exit status of each, and the schema of its records."""

from __future__ import annotations

from dataclasses import dataclass

from bench.harness import ROOT

SKETCHES = ROOT / "examples" / "sketches"
PTX = ROOT / "examples" / "ptx"
TTGIR = ROOT / "examples" / "ttgir"
SUMS = str(SKETCHES / "sums.swflow")
NONE = str(SKETCHES / "impossible.swflow")
SAXPY = [str(PTX / "saxpy.ptx"), "--grid", "1", "--block", "32"]
SAXPY += ["--arg", "f32[32]=range", "--arg", "f32[32]=ones", "--arg", "f32=2", "--arg", "i32=32"]
RACE = [str(PTX / "race.ptx"), "--grid", "1", "--block", "64", "--arg", "f32[64]=range"]
RACE += ["--arg", "f32[64]=zeros"]


def judge(kernel: str) -> list[str]:
    """A judgement of one of the example's kernels."""
    folder = ROOT / "examples" / "judge"
    args = ("x=f32[2,n]", "y=f32[2,n]=out", "n=i32=n")
    return [
        "judge", str(folder / "softmax.ptx"), "--reference", f"{folder}/references.py::softmax",
        "--grid", "2", *(word for each in args for word in ("--arg", each)), "--shape", "n=33",
        "--kernel", kernel,
    ]  # fmt: skip


# A sketch whose search is long enough for a budget of nothing to end it.
LONG = ["synth", "sums", "--size", "columns=9", "--seconds", "0"]


@dataclass(frozen=True, slots=True)
class Command:
    """`words` as they are typed; `needs`: what is run before it."""

    words: tuple[str, ...]
    status: int
    schema: str = ""  # none: it has no records
    needs: tuple[str, ...] = ()


def of(status: int, schema: str, *words: str, needs: tuple[str, ...] = ()) -> Command:
    return Command(words, status, schema, needs)


STORE = ("--store", "store.sqlite")
PROOF = ("synth", SUMS, "--certificate", "fill.json")
LAYOUT = ("layout", "solve", "--pattern", "rcd:32x32", "--certificate", "layout.json")

COMMANDS = (
    of(0, "synth", "synth", SUMS, "--stats"),
    of(0, "synth", "synth", "gaussian", "--first", "--transfer", "lanes=16"),
    of(1, "synth", "synth", NONE),
    of(3, "synth", *LONG),
    of(2, "", "synth", "no such sketch"),
    of(0, "names", "kernel"),
    of(0, "kernel", "kernel", "product-registers", "-o", "text.cu"),
    of(2, "", "kernel", "no such kernel"),
    of(0, "holes", "holes"),
    of(0, "holes", "holes", "row_xforms"),
    of(2, "", "holes", "no such hole"),
    of(0, "layout solve", *LAYOUT[:4]),
    of(0, "layout tiles", "layout", "tiles", "tiles.toml", "--certificate", "tiles.json"),
    of(2, "", "layout", "tiles", SUMS),
    of(0, "layout show", "layout", "show", "(32,32):(32,1)"),
    of(0, "layout show", "layout", "show", "mma_c()", "--shape", "16x8", "--emit", "gluon"),
    of(3, "layout solve", "layout", "solve", "stencil:34x34:f32", "--seconds", "0"),
    of(1, "layout solve", "layout", "solve", "torn.toml", "--class", "pad"),
    of(1, "layout check", "layout", "check", "(32,32):(32,1)", "rcd:32x32"),
    of(1, "layout check", "layout", "check", "(128,48):(49,1)", "ldmatrix:128x48:f16"),
    of(0, "layout convert", "layout", "convert", "--from", "(32,5):(1,32)", "--to", "(32,5):(5,1)"),
    of(1, "layout read", "layout", "read", str(TTGIR / "transpose_sm90.ttgir")),
    of(0, "layout read", "layout", "read", str(TTGIR / "matmul_sm90.ttgir")),
    of(2, "", "layout", "read", SUMS),
    of(2, "", "layout", "show", "(32,32:"),
    of(0, "explore", "explore", "axpy", "--size", "n=64"),
    of(2, "", "explore", "no such nest"),
    of(0, "map count", "map", "dot", "--size", "n=64", "--count"),
    of(0, "map", "map", "dot", "--size", "n=64", "--sample", "1"),
    of(2, "", "map", "no such expression"),
    of(0, "sanitize", "sanitize", *SAXPY),
    of(1, "sanitize", "sanitize", *RACE),
    of(2, "", "sanitize", "no such file.py", "--run"),
    of(0, "ci", "ci", "--checks", "checks.toml"),
    of(2, "", "ci", "--checks", "no such file.toml"),
    of(0, "judge", *judge("softmax")),
    of(1, "judge", *judge("softmax_short")),
    of(3, "judge", *judge("softmax"), "--seconds", "0"),
    of(2, "", *judge("no such kernel")),
    of(0, "ptx run", "ptx", "run", *SAXPY),
    of(1, "ptx run", "ptx", "run", *RACE, "--races"),
    of(0, "ptx report", "ptx", "report", *SAXPY),
    of(0, "ptx shuffle", "ptx", "shuffle", str(PTX / "stencil.ptx"), "-o", "out.ptx"),
    of(2, "", "ptx", "run", "no such file.ptx"),
    of(0, "show", "show", SUMS, "-o", "page.html"),
    of(1, "show", "show", NONE, "-o", "page.html"),
    of(2, "", "show", "no such thing"),
    of(0, "verify", "verify", "fill.json", needs=PROOF),
    of(0, "verify", "verify", "layout.json", needs=LAYOUT),
    of(1, "verify", "verify", "changed.json", needs=PROOF),
    of(2, "", "verify", "no such file.json"),
    of(0, "check", "check", "mine.py::right"),
    of(1, "check", "check", "mine.py::wrong"),
    of(2, "", "check", "no such file.py::tile"),
    of(0, "bench", "bench", "synth", "--match", "universe"),
    of(2, "", "bench", "no such table"),
    of(0, "machines", "machines"),
    of(0, "store", "store", "list", *STORE),
    of(0, "store prune", "store", "prune", *STORE),
    of(2, "", "store", "show", "zz", *STORE),
)
