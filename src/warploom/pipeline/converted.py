"""`warploom.convert_layout`: two register layouts in, every way between them out, one chosen."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.catalogue.conversion import conversion_kernel, conversion_text
from warploom.choices import CONVERSIONS
from warploom.errors import CheckError, NoKernelError, ParseError, UnsupportedError, located, one_of
from warploom.kernel.ir import Kernel
from warploom.layout.conversion.convert import Conversion, convert
from warploom.layout.conversion.fragment import LANES, Fragment
from warploom.layout.conversion.staging import Staging
from warploom.layout.formats.fragment_text import read_fragment
from warploom.layout.formats.function_name import function_name
from warploom.layout.formats.given import sizes
from warploom.layout.language.show import show
from warploom.layout.patterns.named import PACKED, TYPES
from warploom.machine.record import CUDA, machine_named
from warploom.pictured import PublicResult
from warploom.search.budget import Budget


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConvertedResult(PublicResult):
    """What `convert_layout` found: all ways from one register layout to another.

    `way` is the one that the kernel takes. `warploom.compile(result)` is a function on arrays of
    the shape (blocks, registers, threads): what the threads hold before and after.
    """

    conversion: Conversion
    way: str

    @property
    def proved(self) -> bool:
        """Whether fewer rounds of shuffles are ruled out; true where there are no shuffles."""
        plan = self.conversion.shuffles
        return plan is None or plan.proved

    @property
    def kernel(self) -> Kernel:
        """The kernel of the way; ldmatrix and stmatrix are in the text alone."""
        if self.way == "matrices":
            raise NoKernelError(
                "a kernel has no statement for ldmatrix and stmatrix", advice="take .text('cuda')"
            )
        return conversion_kernel(self.conversion, self.way, convert_name(self.conversion))

    @located
    def text(self, language: str = "cuda", name: str | None = None) -> str:
        """The kernel of the way, in a language by its name.

        `name` is that of the kernel; by default it is made from the two layouts."""
        return noted_conversion(self.conversion, self.way, language, name)

    def save(self, path: str | Path, name: str | None = None) -> None:
        """Writes a file, as all results do; `name` is that of the kernel in a text."""
        PublicResult.above("save")(self, path, name=name)

    def record(self) -> dict[str, Any]:
        """What `warploom layout convert --json` writes."""
        return conversion_record(self.conversion, self.way)

    def __str__(self) -> str:
        return "\n".join(conversion_lines(self.conversion)) + f"\n  taken: {self.way}"

    def __repr__(self) -> str:
        return f"<{self.conversion.source.name} → {self.conversion.target.name}: {self.way}>"


@located
def layout_converted(
    from_: str,
    to: str,
    *,
    shape: str | tuple[int, ...] | None = None,
    element: str = "f32",
    machine: str | None = None,
    way: str | None = None,
    seconds: float | None = None,
) -> ConvertedResult:
    """Converts registers from one layout to another: which threads send what to whom?

    Layouts are texts: CuTe's layout of threads and values, Triton's bases or layout objects, or
    `blocked(…)`, `mma_a(k)`, `mma_b(k)`, `mma_c()` by name. All ways are found: renames, the fewest
    rounds of shuffles, shared memory, ldmatrix and stmatrix. `way` takes another than the rule.
    Layouts of 64 lanes are for `machine="gfx942"`, unless another is named.

    >>> import numpy as np, warploom
    >>> found = warploom.convert_layout("(32,4):(1,32)", "(32,4):(4,1)", way="shuffles")
    >>> found.conversion.shuffles.rounds, found.proved  # fewer rounds are impossible
    (4, True)
    >>> before = np.arange(128, dtype=np.float32).reshape(1, 4, 32)  # blocks, registers, threads
    >>> warploom.compile(found)(before)[0, :, 1].tolist()  # what thread 1 holds then
    [4.0, 5.0, 6.0, 7.0]
    """
    check_asked(element, way)
    budget = Budget(seconds)
    with budget.interruptible():
        size = sizes(shape) if isinstance(shape, str) else shape
        found = converted(_text(from_), _text(to), size, element, budget, machine)
    return ConvertedResult(found, taken(found, way))


def converted(
    source: str,
    target: str,
    shape: tuple[int, ...] | None,
    element: str,
    budget: Budget,
    named: str | None,
) -> Conversion:
    """All ways between two layouts as texts; a machine that is named says how many lanes there
    are."""
    machine = None if named is None else machine_named(named)
    lanes = LANES if machine is None else machine.lanes
    held, wanted = (read_fragment(text, shape, lanes) for text in (source, target))
    return convert(held, wanted, TYPES[element], budget, machine=machine)


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise CheckError(
            f"a register layout is a text, not a {type(text).__name__}",
            advice="write '(32,4):(1,32)'",
        )
    return text


def check_asked(element: str, way: str | None) -> None:
    if element in PACKED:
        raise ParseError(
            f"elements of 4 bits in a conversion: '{element}'",
            advice="state both layouts in whole bytes, as u8 with half as many columns",
        )
    if element not in TYPES:
        raise ParseError(
            f"no element type '{str(element)[:20]}'", advice=one_of(str(element), TYPES)
        )
    if way is not None and way not in CONVERSIONS:
        raise ParseError(
            f"no way is called '{str(way)[:20]}'", advice=one_of(str(way), CONVERSIONS)
        )


def taken(found: Conversion, way: str | None) -> str:
    """The way that was asked for, or the rule's, if it can be done so."""
    used = way or found.chosen
    if refused := found.refusal(used):
        raise UnsupportedError(f"it cannot be done by '{used}': {refused}")
    return used


def convert_name(found: Conversion) -> str:
    """What the kernel is called where nobody names it: layouts, shape and bits of an element."""
    shape = "x".join(map(str, found.source.shape))
    bits = 8 * found.element_bytes
    names = [_told_apart(each) for each in (found.source, found.target)]
    return function_name("convert", f"{' to '.join(names)} {shape} b{bits}")


def _told_apart(layout: Fragment) -> str:
    """The layout's own text; others have one name for many, which a digest of the elements ends."""
    if ":" in layout.name:
        return layout.name
    digest = hashlib.sha256(str(layout.elements.tolist()).encode()).hexdigest()[:4]
    return f"{layout.name} {digest}"


def noted_conversion(
    found: Conversion, way: str, language: str, name: str | None, *notes: str, ran: str = ""
) -> str:
    """The text of a way; its comment says what is known of it."""
    if found.renames is not None and way in CONVERSIONS[:2]:
        known = "every thread holds what it wants"
    else:
        known = _way_text(found, way)
    verdict = f"Verdict: {known}; {ran or 'it was not run'}."
    return conversion_text(found, way, language, name or convert_name(found), verdict, *notes)


# -- in words, and as plain data -------------------------------------------------------------------


def conversion_lines(found: Conversion) -> list[str]:
    source, target = found.source, found.target
    size = "×".join(map(str, source.shape))
    what = "element" if found.unit_bytes == found.element_bytes else "word"
    lines = [
        f"{source.name} → {target.name}",
        f"  {size} elements, {source.warps} warp{'s' * (source.warps != 1)} of {source.lanes} "
        f"lanes, {source.registers} → "
        f"{target.registers} registers of a thread, {found.unit_bytes} bytes each ({what}s)",
        "",
    ]
    if found.renames is not None:
        return [*lines, f"  {found.chosen}: every thread holds what it wants{_renamed(found)}"]
    for way in CONVERSIONS[2:]:
        text = _way_text(found, way)
        cost = found.costs.get(way)
        lines.append(f"  {way:10}{text}" + ("" if cost is None else f"; estimate {cost:g}"))
    lines += ["", f"  chosen by rule: {found.chosen}"]
    if found.machine != CUDA:
        name = found.machine.name
        lines.append(f"  not measured here: how {name} serves lanes; estimates are of an H200")
    return lines


def _renamed(found: Conversion) -> str:
    if found.chosen == "nothing":
        return ""
    assert found.renames is not None
    return f", as register {', '.join(map(str, found.renames))}"


def _way_text(found: Conversion, way: str) -> str:
    if way == "shuffles" and found.shuffles is not None:
        plan = found.shuffles
        rounds = f"{plan.rounds} round{'s' * (plan.rounds != 1)}, {plan.selects} selects"
        if plan.rounds == plan.bound.rounds:
            return f"{rounds}; fewer are impossible: {plan.bound.why}"
        if plan.proved:
            return f"{rounds}; fewer are impossible: every schedule of straight ways was tried"
        return f"{rounds}; at least {plan.bound.rounds}: {plan.bound.why}"
    staging = _staging(found, way)
    if staging is None:
        return f"not possible: {found.refusal(way)}"
    score, refused = staging.answer.score, found.refusal(way)
    return (
        f"{staging.store.name} + {staging.load.name}, {score} wavefronts each, "
        f"{staging.wavefronts} in all, {staging.instructions} instructions: {show(staging.layout)}"
        + f"; not possible: {refused}"
        * bool(refused)
    )


def _staging(found: Conversion, way: str) -> Staging | None:
    return {"shared": found.shared, "matrices": found.matrices}.get(way)


def conversion_record(found: Conversion, way: str) -> dict[str, Any]:
    """One conversion as plain data."""
    record: dict[str, Any] = {
        "from": found.source.name,
        "to": found.target.name,
        "shape": list(found.source.shape),
        "machine": found.machine.name,
        "element_bytes": found.element_bytes,
        "unit_bytes": found.unit_bytes,
        "chosen": found.chosen,
        "way": way,
        "estimates": found.costs,
        "why": found.why,
        "renames": None if found.renames is None else list(found.renames),
    }
    if found.shuffles is not None:
        plan = found.shuffles
        record["shuffles"] = {
            "rounds": plan.rounds,
            "bound": plan.bound.rounds,
            "bound_why": plan.bound.why,
            "proved": plan.proved,
            "selects": plan.selects,
            "offers": plan.offers.tolist(),
            "sources": plan.sources.tolist(),
            "placed": plan.placed.tolist(),
        }
    for name in ("shared", "matrices"):
        staging = _staging(found, name)
        if staging is not None:
            record[name] = {
                "store": staging.store.name,
                "load": staging.load.name,
                "wavefronts": list(staging.answer.score.wavefronts),
                "least": list(staging.task.bound.wavefronts),
                "instructions": staging.instructions,
                "layout": show(staging.layout),
            }
    return record
