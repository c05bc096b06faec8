"""Which loop nest is meant: a name with sizes, or a nest of the user's own; and in which space.

The command and `warploom.explore` ask here, so that both refuse the same with the same words.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from warploom.errors import CheckError, ParseError, one_of, spelled
from warploom.kernel.dtype import DType
from warploom.loopnest.build import LoopNest
from warploom.loopnest.computation import Computation
from warploom.loopnest.instructions import program_of
from warploom.loopnest.ir import Program
from warploom.loopnest.kernels import KERNELS, STORED, Cut
from warploom.loopnest.target import Target, everything, paper, with_tensor_cores
from warploom.machine.record import Machine

# What a function takes beside sizes.
INTERNAL = ("tiles", "inner", "batch_tiles", "dtype", "leading", "cut")
FROM_ZERO = ("padding",)
SPACES: Mapping[str, Callable[[Machine], Target]] = {
    "default": everything,
    "paper": paper,
    "tensor": with_tensor_cores,
    "tensor-bf16": lambda machine: with_tensor_cores(machine, "bf16"),
}


def target_for(machine: Machine, space: str) -> Target:
    """Which decisions there are, on a machine."""
    if space not in SPACES:
        raise CheckError(f"there is no space '{space!s:.40}'", advice=one_of(str(space), SPACES))
    return SPACES[space](machine)


def named_nest(
    name: str,
    sizes: Mapping[str, Any],
    space: str,
    otherwise: Callable[[str], str] | None = None,
    of_type: str | None = None,
) -> Program:
    """One of the known computations, perhaps of factors of a type; `otherwise` may know what to do
    with another name."""
    if name not in KERNELS:
        raise ParseError(
            f"no loop nest is called '{name[:80]}'",
            advice=(otherwise and otherwise(name)) or _known_nests(name),
        )
    function = KERNELS[name]
    names = [each for each in inspect.signature(function).parameters if each not in INTERNAL]
    for each in sizes:
        if each not in names:
            raise CheckError(f"{name} has no '{each}'", advice=one_of(each, names))
    _check_complete(name, function, sizes, names)
    cut = Cut(proper=True) if space == "paper" else Cut(tail=True)
    typed = {} if of_type is None else _factors(name, of_type)
    return in_form(function(**sizes, **typed, cut=cut), space)


def _factors(name: str, of_type: str) -> dict[str, Any]:
    """What says the type of the factors of a known computation."""
    known: dict[str, dict[str, Any]] = {repr(each): {"dtype": each} for each in STORED}
    known["tf32"] = {"dtype": DType.F32, "leading": True}
    if of_type not in known:
        raise CheckError(f"no factors are of type '{of_type!s:.40}'",
                         advice=one_of(str(of_type), known))  # fmt: skip
    if "dtype" not in inspect.signature(KERNELS[name]).parameters:
        some = [
            each for each, made in KERNELS.items() if "dtype" in inspect.signature(made).parameters
        ]
        raise CheckError(
            f"{name} has no type of factors",
            advice=f"{', '.join(some[:-1])} and {some[-1]} have one",
        )
    return known[of_type]


def in_form(program: Program, space: str) -> Program:
    """One operator to an instruction, as the published space has it, or whole expressions."""
    if space == "paper" or not isinstance(program.source, Computation):
        return program
    return program_of(program.source, published=False)


def _check_complete(
    text: str, function: Callable[..., Program], given: Mapping[str, Any], names: list[str]
) -> None:
    known = inspect.signature(function).parameters
    missing = [n for n in names if n not in given and known[n].default is inspect.Parameter.empty]
    if missing:
        by_name = dict.fromkeys(missing, 1024)
        said = spelled(f"--size {','.join(f'{name}=1024' for name in by_name)}",
                       f"size={json.dumps(by_name)}")  # fmt: skip
        raise CheckError(f"{text} needs {', '.join(missing)}", advice=f"write {said}")
    for name, value in given.items():
        default = known[name].default
        wanted = int if default is inspect.Parameter.empty else type(default)
        if wanted is not type(value) and not (wanted is bool and value in (0, 1)):
            raise CheckError(
                f"{name}={value} is not {'a whole number' if wanted is int else 'a word'}"
            )
        check_number(value, 0 if name in FROM_ZERO else 1)


def check_number(value: object, least: int = 1) -> None:
    """Sizes that no computation has, though they are numbers."""
    if type(value) is int and not least <= value < 1 << 31:
        raise CheckError(f"a size of {value}", advice="sizes are from 1 to 2**31 - 1")


def own_nest(
    found: object, what: str, space: str, otherwise: str = "", of_type: str | None = None
) -> Program:
    """The program of what a user has built, which says its types itself."""
    if of_type is not None:
        raise CheckError("a loop nest of your own says its types itself",
                         advice=f"leave {spelled('--type', 'type')} out")  # fmt: skip
    match found:
        case LoopNest():
            return in_form(found.done(), space)
        case Program():
            return in_form(found, space)
    raise CheckError(
        f"{what} is a {type(found).__name__}",
        advice=otherwise or "it should be a LoopNest, its program, or a function that returns one",
    )


# What others call these kernels.
_ALSO_CALLED = {"gemm": "matmul", "gemv": "matvec", "saxpy": "axpy", "bmm": "batched-matmul"}


def _known_nests(name: str) -> str:
    return one_of(_ALSO_CALLED.get(name.lower(), name), [*KERNELS, "FILE.py::NAME"])
