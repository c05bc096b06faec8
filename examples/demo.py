"""A sketch becomes a kernel: its text, its fill, the proof, the kernel, and a run on this machine.

Run it with `make demo`; no GPU is needed.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from warploom import Sketch, WarploomError, synthesize
from warploom import compile as compile_sketch

SKETCHES = Path(__file__).resolve().parent / "sketches"
NEXT = "warploom synth examples/sketches/sums.swflow --emit cuda -o sums.cu"


def read(name: str) -> Sketch:
    return Sketch.from_text((SKETCHES / name).read_text(), name)


def title(text: str) -> None:
    print(f"\n--- {text} {'-' * (90 - len(text))}\n")


def main() -> None:
    title("The sketch: lines with ? are holes (examples/sketches/sums.swflow)")
    print((SKETCHES / "sums.swflow").read_text().rstrip())

    result = synthesize(read("sums.swflow"))
    title("Its fill, found by search, and the proof")
    print(result.fill_text())
    print(
        f"\n{result.fills.count} of {result.stats.raw_space} fills is right: {result.verdicts[0]}"
    )

    kernel = compile_sketch(result, device="c")
    title("The kernel, tried on the simulator before it is shown")
    print(kernel.text("cuda").rstrip())

    title("Its run on this machine, as C, on 3,000,001 sums")
    x = np.random.default_rng(0).integers(0, 100, 3 * 3_000_001).astype(np.float32)
    try:
        kernel(x[:12])  # compiles
        started = time.perf_counter()
        sums = kernel(x)
        spent = time.perf_counter() - started
    except WarploomError as error:
        print(f"left out: {error}")
    else:
        assert np.array_equal(sums, x.reshape(-1, 3).sum(axis=1))
        print(f"equal to NumPy's x.reshape(-1, 3).sum(axis=1); {spent * 1e3:.0f} ms")

    title("Larger ones")
    for name in ("transposition", "convolution"):
        larger = synthesize(read(f"{name}.swflow"))
        found = f"{larger.fills.count} of {larger.stats.raw_space:.1e} fills are right"
        print(f"{name}.swflow: {found}, verdict: {larger.verdict.value}")

    title("Next: change the sketch, and write its kernel to a file")
    print(f".venv/bin/{NEXT}")


if __name__ == "__main__":
    main()
