"""Layouts as source to paste: index functions in every language, or a type of CuTe.

A function takes coordinates and gives an element's place. It is an expression, where bits are
reversed by an instruction if the language has one and that is cheaper, or a table.
"""

from __future__ import annotations

import re

import numpy as np

from warploom.choices import LANGUAGES, SPELLINGS
from warploom.emit.dialect import Dialect
from warploom.emit.helper import helper_prefix
from warploom.emit.language import BACKENDS
from warploom.errors import CheckError, EmitError, UnsupportedError
from warploom.index.show import c_helpers, c_text
from warploom.layout.formats.code import cheapest
from warploom.layout.formats.export import exported_to
from warploom.layout.language.evaluate import values
from warploom.layout.language.expression import names_of, sizes_of
from warploom.layout.language.ir import Layout
from warploom.layout.language.show import show

MOST_TABLE = 1 << 14
MOST_PLACE = (1 << 31) - 1  # functions give an int
EXPORTS = (*LANGUAGES, *SPELLINGS)


def exported(
    layout: Layout, how: str, name: str = "place", element_bytes: int | None = None, packed: int = 1
) -> str:
    """The text, which says what layout it is; `packed` elements have `element_bytes`."""
    if how not in EXPORTS:
        raise UnsupportedError(
            f"there is no format '{how[:20]}' for layouts", advice=f"known are {', '.join(EXPORTS)}"
        )
    if how in SPELLINGS:
        return exported_to(layout, how, name, element_bytes, packed)
    return index_function(layout, how, name)


def index_function(layout: Layout, language: str = "cuda", name: str = "place") -> str:
    """The text of one function; it says what layout it is."""
    if language not in BACKENDS:
        raise UnsupportedError(
            f"no index function in '{language[:20]}'", advice=f"known are {', '.join(BACKENDS)}"
        )
    backend = BACKENDS[language]
    dialect = backend.dialect
    if not (name.isidentifier() and name.isascii()):
        raise EmitError(f"{name[:40]!r} is no name of a function")
    sizes = sizes_of(layout)
    names = names_of(len(sizes))
    if int(values(layout).max()) > MOST_PLACE:
        raise CheckError(f"place {int(values(layout).max())} does not fit into an int")
    head = f"// {show(layout)[:200]}\n" + ("// Compile with: -std=c11\n" if backend.loops else "")
    try:
        formula = cheapest(layout, bool(dialect.reverse))
    except UnsupportedError:
        return head + _table(layout, dialect, name, names, sizes)
    bounds = {n: (0, size - 1) for n, size in zip(names, sizes, strict=True)}
    ranges = bounds | {f"reversed_{n}": (0, (1 << bits) - 1) for n, bits in formula.reversed}
    prefix = helper_prefix(name)
    text = c_text(formula.result, ranges, prefix=prefix)
    own = c_helpers("int", dialect.placing, prefix)
    helpers = "".join(helper for called, helper in own.items() if f"{called}(" in text)
    lines = [
        f"  const int reversed_{n} = (int)({dialect.reverse}((unsigned){n}) >> {32 - bits});\n"
        for n, bits in formula.reversed
    ]
    qualifiers = _device(dialect) if formula.reversed else dialect.placing
    parameters = ", ".join(f"int {n}" for n in names)
    idle = [n for n in names if backend.loops and not re.search(rf"\b{n}\b", text)]
    lines += [f"  (void){n};\n" for n in idle]  # compilers warn of parameters that are not used
    body = "".join(lines) + f"  return {text};\n"
    return f"{helpers}{head}{qualifiers} int {name}({parameters}) {{\n{body}}}\n"


def _device(dialect: Dialect) -> str:
    """Qualifiers of a function that is for the device alone."""
    return dialect.placing.removeprefix("__host__ ")


def _table(
    layout: Layout, dialect: Dialect, name: str, names: tuple[str, ...], sizes: tuple[int, ...]
) -> str:
    table = values(layout)
    if len(table) > MOST_TABLE:
        raise CheckError(f"a table of {len(table)} places is too large to be written out")
    kind = "unsigned short" if table.max() < 1 << 16 else "unsigned int"
    rows = [
        ", ".join(map(str, part.tolist())) for part in np.split(table, range(16, len(table), 16))
    ]
    number, stride = [], 1
    for n, size in zip(names, sizes, strict=True):
        number.append(n if stride == 1 else f"{n} * {stride}")
        stride *= size
    parameters = ", ".join(f"int {n}" for n in names)
    qualifiers = _device(dialect)
    return (
        f"{dialect.table} {kind} {name}_table[{len(table)}] = {{\n  "
        + ",\n  ".join(rows)
        + f"}};\n{qualifiers} int {name}({parameters}) {{\n"
        f"  return {name}_table[{' + '.join(number)}];\n}}\n"
    )
