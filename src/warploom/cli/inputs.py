"""What SKETCH may be: a file, standard input, a name of ours, or FILE.py::NAME."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from warploom.bench.published import named, published
from warploom.catalogue import names
from warploom.catalogue.entry import Parameter
from warploom.cli.beside import module_name, modules_beside
from warploom.cli.names import other_command, other_kind, sketch_names
from warploom.errors import (
    CheckError,
    ParseError,
    Source,
    Span,
    WarploomError,
    nearest,
    raising_line,
)
from warploom.search.budget import BudgetSpentError
from warploom.sketch.build import Sketch
from warploom.sketch.front import load_bytes, load_file, load_text
from warploom.sketch.simt.function import SketchFunction
from warploom.sketch.simt.ir import Traced
from warploom.sketch.term.ir import Program
from warploom.sketch.term.limits import MAX_TEXT

Sizes = Mapping[str, Parameter]

SIZES = "lanes=32 or rows=32,columns=5"
STEPS = "x=32, whole numbers of elements, by input; 0: all tiles read the same"


@dataclass(frozen=True, slots=True)
class Input:
    """`build(sizes)` gives the program, or the warp sketch; inputs without sizes refuse any."""

    name: str
    build: Callable[[Sizes], Program | Traced]


def find_input(text: str) -> Input:
    """What one argument means; nothing is read yet."""
    if text == "-":
        return Input("<stdin>", _fixed("<stdin>", _from_stdin))
    if "::" in text:
        return Input(text, lambda sizes: _from_python(text, sizes))
    if Path(text).suffix == ".py" and Path(text).is_file():
        raise _unnamed(Path(text))
    if Path(text).exists():
        return Input(text, _fixed(text, lambda: load_file(text)))
    build = named(text)
    if build is None:
        raise ParseError(f"no file and no known sketch is called '{text}'", advice=_nearest(text))
    return Input(text, build)


def parse_parameters(
    texts: list[str], digits: int = 9, what: str = "size", example: str = SIZES
) -> dict[str, Parameter]:
    """`k=v` or `k=v,k=v`, several times; a value is a whole number or a word."""
    found: dict[str, Parameter] = {}
    for part in (part for text in texts for part in text.split(",")):
        key, equals, value = (word.strip() for word in part.partition("="))
        whole = value.isdecimal() and len(value) <= digits
        if not key.isidentifier() or not equals or not (whole or value.isidentifier()):
            raise ParseError(f"'{part[:80]}' is not a {what}", advice=f"write {example}")
        if key in found:
            raise ParseError(f"the {what} '{key}' is given twice", advice="leave one of them out")
        found[key] = int(value) if whole else value
    return found


def parse_sizes(texts: list[str], digits: int = 9) -> dict[str, int]:
    """`k=v` or `k=v,k=v`, several times, where every value is a whole number."""
    return _whole(parse_parameters(texts, digits))


def parse_steps(texts: list[str]) -> dict[str, int]:
    """How far apart tiles of inputs begin: `x=32`."""
    return _whole(parse_parameters(texts, what="step", example=STEPS), "step", STEPS)


def _whole(given: Sizes, what: str = "size", example: str = SIZES) -> dict[str, int]:
    sizes = {key: value for key, value in given.items() if isinstance(value, int)}
    for key in given:
        if key not in sizes:
            raise ParseError(
                f"'{key}={given[key]}' is not a {what}: it is no whole number",
                advice=f"write {example}",
            )
    return sizes


def _nearest(text: str) -> str:
    if other := other_command(text):
        return other
    ours = f"our sketches: {', '.join(sketch_names())}"
    return nearest(text, [*names(), *published()], ours, cutoff=0.5)


def _fixed(name: str, load: Callable[[], Program]) -> Callable[[Sizes], Program]:
    def build(sizes: Sizes) -> Program:
        if sizes:
            raise CheckError(
                f"{name} has no sizes to set",
                advice="sizes need a sketch of ours or a function, FILE.py::NAME",
            )
        return load()

    return build


def _from_stdin() -> Program:
    return load_bytes(sys.stdin.buffer.read(4 * MAX_TEXT + 1))


# -- Python files ----------------------------------------------------------------------------------


def _unnamed(path: Path) -> ParseError:
    """What could have been meant by a file alone."""
    return ParseError(
        f"{path} is a Python file: name the sketch in it",
        advice=_listed(path, _meant(_load_module(path))),
    )


SKETCHES = (Sketch, Program, SketchFunction, Traced)
Kinds = tuple[type, ...]


def _meant(module: ModuleType, kinds: Kinds = SKETCHES) -> list[str]:
    """The names of a file that may be meant; functions are not those that it only imports."""
    return [
        name
        for name, found in vars(module).items()
        if isinstance(found, kinds)
        or (inspect.isfunction(found) and found.__module__ == module.__name__)
        if not name.startswith("_")
    ]


def _listed(path: Path, known: list[str]) -> str:
    named = ", ".join(f"{path}::{name}" for name in known)
    return f"it has {named}" if known else "it has nothing of that kind, and no function"


def python_value(text: str, sizes: Sizes, kinds: Kinds = SKETCHES) -> object:
    """What FILE.py::NAME is; a function is called with the sizes. What is of one of the kinds is
    named where nothing is called so."""
    file, _, name = text.partition("::")
    path = Path(file)
    found = _look_up(_load_module(path), path, name, kinds)
    if isinstance(found, SketchFunction):
        function = found
        return _shielded(lambda: function.at(**_whole(sizes)), path)
    if callable(found):
        return _call(found, text, path, _whole(sizes))
    if sizes:
        raise CheckError(f"{text} is not a function, so it has no sizes to set")
    return found


def python_object(text: str) -> object:
    """What FILE.py::NAME is, as it is: a function is not called."""
    file, _, name = text.partition("::")
    path = Path(file)
    return _look_up(_load_module(path), path, name, ())


def _from_python(text: str, sizes: Sizes) -> Program | Traced:
    found = python_value(text, sizes)
    match found:
        case Program() | Traced():
            return found
        case Sketch():
            return found.program()
        case str():
            return load_text(found, text)
    raise CheckError(
        f"{text} is a {type(found).__name__}",
        advice=other_kind(found)
        or "it should be a Sketch, a warp sketch, a Program, .swflow text, or a function that "
        "returns one",
    )


def _load_module(path: Path) -> ModuleType:
    name = module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ParseError(f"cannot read the Python file '{path}'", advice="write FILE.py::NAME")
    module = importlib.util.module_from_spec(spec)
    loader = spec.loader
    sys.modules.setdefault(name, module)  # dataclasses look their module up
    _shielded(lambda: loader.exec_module(module), path)
    return module


def _look_up(module: ModuleType, path: Path, name: str, kinds: Kinds) -> object:
    if not hasattr(module, name):
        known = _meant(module, kinds)
        advice = nearest(name, known, _listed(path, known), cutoff=0.5)
        raise ParseError(f"{path} defines no '{name[:80]}'", advice=advice)
    found: object = getattr(module, name)
    return found


def _call(
    function: Callable[..., object], text: str, path: Path, sizes: Mapping[str, int]
) -> object:
    try:
        inspect.signature(function).bind(**sizes)
    except (TypeError, ValueError) as error:
        known = _sizes_of(function)
        raise CheckError(f"{text}: {error}", advice=f"its sizes: {known}") from None
    return _shielded(lambda: function(**sizes), path)


def _sizes_of(function: Callable[..., object]) -> str:
    return ", ".join(inspect.signature(function).parameters) or "none"


def _shielded(action: Callable[[], object], path: Path) -> object:
    """Runs a user's code; whatever it raises becomes one error at the line of that file."""
    try:
        with modules_beside(path):
            return action()
    except WarploomError as error:
        if error.span is None:
            error.span = raising_line(error, str(path))
        raise
    except (BudgetSpentError, MemoryError):  # ours, on the way through: sets are built in there
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # it is the user's code
        if isinstance(error, SyntaxError):
            line, column = error.lineno or 1, error.offset or 1
            raise ParseError(error.msg, _span(path, line, column)) from None
        message = f"{type(error).__name__}: {str(error)[:200]}"
        raise CheckError(message, raising_line(error, str(path))) from None


def _span(path: Path, line: int, column: int) -> Span:
    text = path.read_text(errors="replace")
    return Span(Source(str(path), text), line, column)
