"""`warploom.device_function`: a function of a warp as a header for a kernel of the user's own.

A name of the catalogue's functions, or a sketch. Of a term sketch the function exchanges and
computes between the registers that the sketch loads and those that it stores; of a warp sketch it
does one tile, whose number it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from warploom.catalogue import find_function
from warploom.catalogue.entry import Entry, Parameter, Size
from warploom.catalogue.verify import Checked, verify
from warploom.emit.dialect import Language
from warploom.emit.language import function_text
from warploom.emit.parts import with_notes
from warploom.errors import CheckError, EmitError, located
from warploom.kernel.dtype import DType, f32, u32
from warploom.kernel.function import function_of, with_function_name
from warploom.kernel.ir import Kernel
from warploom.pipeline.entry import entry_of
from warploom.pipeline.results import LANGUAGES, ending_of
from warploom.pipeline.subject import Layout, Subject, dtype_named, tiled
from warploom.runtime.callable import OF_CUDA_TEXT, Device
from warploom.search.budget import Budget


@located
def device_function(
    subject: Subject | str,
    *,
    goal: int = 0,
    lanes: int | None = None,
    dtype: DType | str | None = None,
    budget: Budget | None = None,
    **parameters: Parameter,
) -> Header:
    """A function of a warp, for a kernel of your own: `.text("cuda")` is the header to include.

    `subject` is a name (`device_function("load-structures", fields=5)`; `warploom kernel` lists
    them), a sketch of either kind, or what its search gave. A function that only moves values is,
    in CUDA, a template over what it moves. Otherwise give the element type as `dtype`.

    >>> import warploom
    >>> header = warploom.device_function("load-structures", fields=3)
    >>> header
    <warploom device function load_structures_3>
    >>> header.text("cuda").count("__shfl_sync") > 0
    True
    """
    if isinstance(subject, str):
        if goal != 0 or budget is not None:
            raise CheckError(f"goal and budget are for sketches; '{subject[:40]}' is a name")
        more = {"lanes": lanes, "dtype": dtype and dtype_named(dtype).value}
        parameters |= {key: value for key, value in more.items() if value is not None}
        return named_header(find_function(subject), parameters)
    if parameters:
        raise CheckError(
            f"a sketch has no parameter '{next(iter(parameters))[:40]}'",
            advice="parameters are for names: device_function('inclusive-scan', registers=4)",
        )
    layout = Layout(lanes, {}, dtype_named(dtype or f32))
    return sketch_header(subject, layout, goal=goal, budget=budget)


@dataclass(frozen=True, slots=True)
class Called:
    """A kernel that calls a function, and the entry by which it is checked."""

    entry: Entry
    settings: Mapping[str, Parameter]
    kernel: Kernel


class Header:
    """A device function, found and proved. `called` is how it is tried out; in CUDA, where it is a
    template if it only moves values, it is tried on words of 32 bits.

    Functions that differ by type alone are overloads in CUDA; in OpenCL and C, which have none,
    `kind` stands behind the name of all but those of the usual type."""

    def __init__(self, called: Called, of_words: Callable[[], Called], kind: str = "") -> None:
        self.called = called
        self._of_words = of_words
        self._kind = kind

    @cached_property
    def template(self) -> Called:
        function = function_of(self.called.kernel)
        moves = function.moves and bool(function.registers)
        return self._of_words() if moves and not function.is_template else self.called

    @cached_property
    def typed(self) -> Called:
        """The function of one type."""
        if not self._kind:
            return self.called
        kernel = self.called.kernel
        named = with_function_name(kernel, f"{function_of(kernel).name}_{self._kind}")
        return replace(self.called, kernel=named)

    def called_in(self, language: Language) -> Called:
        return self.template if language == "cuda" else self.typed

    @property
    def name(self) -> str:
        """What the function is called in CUDA."""
        return function_of(self.called.kernel).name

    def __repr__(self) -> str:
        return f"<warploom device function {self.name}>"

    def text(self, language: Language = "cuda", note: str = "") -> str:
        """The header in a language by its name, such as `cuda`; `note` ends its comment."""
        return function_text(with_notes(self.called_in(language).kernel, note), language)

    @located
    def save(self, path: str | Path, note: str = "") -> None:
        """Writes the header; how the name ends says in which language: `.cuh` and `.cu` are CUDA,
        `.cl`, `.c` and `.hip` the others."""
        file = Path(path)
        text = self.text(LANGUAGES[ending_of(file, LANGUAGES)], note)
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise EmitError(f"cannot write '{file}': {error.strerror or error}") from None

    def verify(self, device: Device, sizes: Sequence[Size] | None = None) -> list[Checked]:
        """The header, included and called by a kernel, against the specification."""
        called = self.template if device in OF_CUDA_TEXT else self.typed
        settings = dict(called.settings)
        return verify(called.entry, settings, device, sizes, called.kernel, calls=True)


def named_header(entry: Entry, given: Mapping[str, Parameter]) -> Header:
    settings = entry.settings(given)

    def called(**more: Parameter) -> Called:
        return Called(entry, {**settings, **more}, entry.kernel(**{**settings, **more}))

    bytes = settings.get("bytes", u32.bytes)
    kind = "" if bytes == u32.bytes else f"{bytes}bytes"
    return Header(called(), lambda: called(bytes=u32.bytes), kind)


def sketch_header(
    subject: Subject, layout: Layout, *, goal: int = 0, budget: Budget | None = None
) -> Header:
    """The function of a sketch."""
    if layout.steps:
        raise CheckError("a function has no steps", advice="the kernel that calls it loads")
    if layout.dtype.is_code:
        raise CheckError(
            f"a function on registers of {layout.dtype.value}",
            advice="convert to float32 around it; what only moves is a template in CUDA, and can"
            " have uint16 elsewhere",
        )

    def called(layout: Layout) -> Called:
        made = tiled(subject, layout.as_function(), goal=goal, budget=budget)
        return Called(entry_of(made.tiling.name, made), {}, made.kernel)

    kind = "" if layout.dtype is f32 else repr(layout.dtype)
    return Header(called(layout), lambda: called(replace(layout, dtype=u32)), kind)
