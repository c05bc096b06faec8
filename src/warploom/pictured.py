"""The bases of records that people look at: a notebook shows the picture of one where it is the
last word of a cell, and what a public call returns can be written down, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar


class Pictured:
    """A record with a picture.

    Which picture that is, is known above all records (`pipeline/pictures.py`); the package's front
    says who is asked, when a notebook asks.
    """

    __slots__ = ()
    inline: ClassVar[Callable[[object], str]]

    def _repr_html_(self) -> str:
        """Figures with their captions, without scripts; `warploom.show` gives the whole page."""
        return Pictured.inline(self)


class PublicResult(Pictured):
    """What a public call returns: printed it is short, and it has a kernel, texts and files.

    Kernels are made above the records of searches (`pipeline/results.py`). As with pictures, the
    package's front says who is asked.
    """

    __slots__ = ()
    above: ClassVar[Callable[[str], Callable[..., Any]]]  # a function of `pipeline/results.py`

    @property
    def kernel(self) -> Any:
        """The kernel; an error says why where there is none."""
        return PublicResult.above("kernel_of")(self)

    def text(self, language: str = "cuda", name: str | None = None) -> str:
        """The kernel in a language by its name, such as `cuda`, `opencl` or `c`; `name` is what the
        kernel is called there."""
        found: str = PublicResult.above("text_of")(self, language, name)
        return found

    def record(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON."""
        found: dict[str, Any] = PublicResult.above("record_of")(self)
        return found

    def save(self, path: str | Path, name: str | None = None) -> None:
        """Writes a file; how it ends says what: `.json` the record, `.html` a page, `.svg` its
        figures, `.cu`, `.cuh`, `.cl`, `.c` and `.hip` the kernel, which `name` gives
        another name."""
        PublicResult.above("save")(self, path, name=name)
