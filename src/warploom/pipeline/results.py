"""What all public results have: a kernel, its text, a record, files, proofs and other sizes.

Results of searches lie below kernels and know none; they ask here (`pictured.py`), by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.emit.helper import HEADER_ENDS, include_guard
from warploom.emit.parts import with_names
from warploom.errors import EmitError, NoKernelError, UnsupportedError
from warploom.kernel.ir import Kernel
from warploom.pictured import PublicResult
from warploom.pipeline.certificate import certificate as certificate
from warploom.pipeline.kernel_certificate import kernel_certificate as kernel_certificate
from warploom.pipeline.pictures import picture
from warploom.pipeline.subject import tiled
from warploom.pipeline.warp_result import WarpResult
from warploom.search.budget import Budget
from warploom.sketch.synth.result import Result
from warploom.sketch.synth.result_json import record_of as fills_record
from warploom.sketch.synth.transfer import transfer
from warploom.sketch.term.show import to_swflow

# By how the name of a file ends.
LANGUAGES: Mapping[str, Language] = {
    ".cu": "cuda", ".cuh": "cuda", ".hip": "hip", ".cl": "opencl", ".c": "c",
}  # fmt: skip
ENDINGS = (".json", ".html", ".svg", *LANGUAGES)


def kernel_of(result: PublicResult) -> Kernel:
    """The kernel of what was found."""
    if isinstance(result, Result | WarpResult):
        return tiled(result).kernel
    raise NoKernelError(
        f"a {type(result).__name__} has no kernel", advice="its text is what .text() gives"
    )


def text_of(result: PublicResult, language: Language, name: str | None = None) -> str:
    return emit(with_names([result.kernel], name)[0], language)


def record_of(result: PublicResult) -> dict[str, Any]:
    """What the command writes with `--json`, of one result."""
    if isinstance(result, Result):
        program = result.program
        return {"name": program.name, **fills_record(result), "sketch": to_swflow(program)}
    raise UnsupportedError(f"a {type(result).__name__} has no record", advice="save its text")


def save(result: PublicResult, path: str | Path, name: str | None = None) -> None:
    """A file of a result: what it is, is said by how its name ends. `name` is for its text."""
    file = Path(path)
    ending = ending_of(file, ENDINGS)
    try:
        if ending in (".html", ".svg"):
            picture(result).save(file)
        else:
            text = _content(result, ending, name)
            guarded = include_guard(re.sub(r"\W", "_", file.stem), text)
            file.write_text(guarded if ending in HEADER_ENDS else text, encoding="utf-8")
    except OSError as error:
        raise EmitError(f"cannot write '{file}': {error.strerror or error}") from None


def ending_of(file: Path, known: Iterable[str]) -> str:
    """How the name of a file ends, which says what is written."""
    ending = file.suffix.lower()
    if ending not in known:
        raise EmitError(
            f"'{file.name}': how the name ends says what is written",
            advice=f"it may end in {', '.join(known)}",
        )
    return ending


def _content(result: PublicResult, ending: str, name: str | None) -> str:
    if ending in LANGUAGES:
        return result.text(LANGUAGES[ending], name=name)
    return json.dumps([result.record()], indent=1, ensure_ascii=False) + "\n"


def transferred(small: Result, larger: Any, budget: Budget | None) -> Result:
    return transfer(small, larger, budget=budget)


def row_operators() -> Sequence[Any]:
    """Operators of PyTorch beside those of the catalogue, which knows nothing of this folder."""
    # Here, not at the top: of every other question nothing depends on them.
    from warploom.pipeline.rows.torch_operators import OPERATORS

    return OPERATORS
