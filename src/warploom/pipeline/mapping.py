"""`warploom.map_array`: an array expression in, the most promising kernels of it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from warploom.array.code.program import Compiled
from warploom.array.code.schedule import mapping_schedules
from warploom.array.joint.model import MOST_TEMPORARY, JointModel
from warploom.array.joint.promising import promising
from warploom.array.language.ir import Program
from warploom.array.mapping.fusion import Fusion
from warploom.emit import emit
from warploom.emit.dialect import Language
from warploom.emit.parts import with_names
from warploom.errors import CheckError, ParseError, UnsupportedError, located, one_of
from warploom.index.ir import whole_number
from warploom.kernel.ir import Kernel, Registers, Shared, walk
from warploom.kernel.pool import pool_bytes
from warploom.kernel.work import prediction
from warploom.machine.record import Machine, machine_named
from warploom.machine.times import prediction_words
from warploom.pictured import PublicResult
from warploom.pipeline.mapped import Choice, choice_of, described, make
from warploom.pipeline.named_program import named_program, sizes_of_layer
from warploom.search.budget import Budget
from warploom.search.outcome import Found, NothingFoundError, Outcome
from warploom.search.outcome_json import outcome_record

FUSIONS = get_args(Fusion)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MappedResult(PublicResult):
    """What `map_array` found: candidates of an array expression, the most promising first.

    `kernels` are those of the first candidate, run one after another; `warploom.compile(result)`
    is a function on arrays. `candidates[i].tiles` says which tiles were chosen.
    """

    name: str
    machine: str
    outcome: Outcome[list[Choice]]
    _made: dict[int, Compiled] = field(default_factory=dict)  # kernels, by number of the candidate

    @property
    def candidates(self) -> tuple[Choice, ...]:
        """What was found; nothing where the outcome is another."""
        return tuple(self.outcome.answer) if isinstance(self.outcome, Found) else ()

    def compiled(self, number: int = 0) -> Compiled:
        """The kernels of one candidate, with the memory between them."""
        if not self.candidates:
            raise NothingFoundError(
                f"'{self.name}' has no mapping on {self.machine}: {self.outcome}", self.outcome
            )
        if number not in range(len(self.candidates)):
            raise CheckError(
                f"there is no candidate {number!r:.40}", advice=f"0 to {len(self.candidates) - 1}"
            )
        if number not in self._made:
            self._made[number] = make(self.candidates[number])
        return self._made[number]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels, in the order in which they run; their comments have the schedule."""
        return tuple(described(self.compiled(), ran=False))

    @property
    def kernel(self) -> Kernel:
        """The kernel, where there is one alone."""
        if len(self.kernels) > 1:
            raise UnsupportedError(
                f"'{self.name}' has {len(self.kernels)} kernels", advice="they are in .kernels"
            )
        return self.kernels[0]

    @located
    def text(self, language: Language = "cuda", name: str | None = None) -> str:
        """All kernels of the first candidate, in a language by its name; `name` is theirs."""
        return "\n".join(emit(each, language) for each in with_names(self.kernels, name))

    def record(self) -> dict[str, Any]:
        """What `warploom map --json` writes of the first candidate."""
        head = {"name": self.name, "machine": self.machine}
        if not self.candidates:
            return {**head, **outcome_record(self.outcome)}
        return {**head, **self._first()}

    def _first(self) -> dict[str, Any]:
        machine = machine_named(self.machine)
        return candidate_record(self.candidates[0], self.compiled(), machine)

    def __str__(self) -> str:
        if not self.candidates:
            return f"{self.name} on {self.machine}: {self.outcome}"
        found = self._first()
        count = len(self.candidates)
        tiles = " ".join(f"{name}={value}" for name, value in found["tiles"].items())
        kernels = [f"  {kernel_line(each)}" for each in found["kernels"]]
        head = f"{self.name} on {self.machine}: {count} candidate{'s' * (count != 1)}"
        return "\n".join([head, f"  tiles: {tiles or 'none'}", *kernels])

    def __repr__(self) -> str:
        return f"<{self}>"


def candidate_record(choice: Choice, compiled: Compiled, machine: Machine) -> dict[str, Any]:
    """One candidate as plain data, with the times of the time model."""
    kernels = []
    told = mapping_schedules(compiled)
    for at, kernel in enumerate(compiled.kernels):
        shared = [each for each in kernel.body if isinstance(each, Shared)]
        words = [each.size or 1 for each in walk(kernel.body) if isinstance(each, Registers)]
        kernels.append({
            "name": kernel.name,
            "schedule": told[at],
            "runs": {str(each): run for each, run in sorted(choice.runs[at].items())},
            "group": list(kernel.block),
            "registers": sum(words),
            "shared_bytes": pool_bytes(shared),
            "predicted": prediction(kernel, machine).record(),
        })  # fmt: skip
    return {
        "sizes": dict(choice.sizes),
        "tiles": dict(choice.tiles),
        "kernels": kernels,
        "temporary_bytes": compiled.temporary_bytes,
    }


def kernel_line(record: Mapping[str, Any]) -> str:
    """A kernel of a candidate's record, in words."""
    return f"{record['name']}: {record['schedule']}; {prediction_words(**record['predicted'])}"


@located
def mapped(
    expr: str | Program,
    size: Mapping[str, int] | None = None,
    *,
    layer: str | None = None,
    plain: bool = False,
    machine: str = "cuda",
    memory: int | None = None,
    fusion: Fusion = "intended",
    first: bool = False,
    sample: int | None = None,
    among: int = 2000,
    seconds: float | None = None,
    seed: int = 0,
) -> MappedResult:
    """Maps an array expression to blocks, threads and memories: every candidate is a kernel.

    `expr` is a name that `warploom map` knows, or a program of `warploom.arrays`; `size` has the
    sizes of its inputs, and of tiles where they are not to be found. The other arguments are the
    options of that command. By default the result is the candidate that the model takes for the
    fastest. With `sample` it has so many, all equally likely; `first` returns the first found.

    >>> import numpy as np, warploom
    >>> found = warploom.map_array("matvec", {"m": 64, "n": 32}, first=True)
    >>> a, x = np.ones((64, 32), np.float32), np.arange(32, dtype=np.float32)
    >>> bool((warploom.compile(found)(a, x) == x.sum()).all())
    True
    """
    if fusion not in FUSIONS:
        raise CheckError(
            f"there is no fusion '{fusion!s:.40}'", advice=one_of(str(fusion), FUSIONS)
        )
    if first and sample is not None:
        raise ParseError("first and sample exclude each other", advice="give one of them")
    for what, value, least in (("sample", sample, 1), ("among", among, 1), ("seed", seed, 0)):
        if value is not None and (whole_number(value) is None or value < least):
            raise CheckError(f"{what}={value!r:.40}", advice=f"a whole number from {least} on")
    budget = Budget(seconds)
    name = expr if isinstance(expr, str) else getattr(expr, "name", "the expression")
    sizes = {key: _whole(key, value) for key, value in (size or {}).items()}
    with budget.interruptible():
        with budget.governing():  # rewriting to tiles takes a while, too
            program, numbers = _program(expr, plain), sizes_of_layer(name, layer, sizes)
            model = JointModel(
                program, numbers, machine_named(machine), fusion,
                memory=MOST_TEMPORARY if memory is None else memory,
            )  # fmt: skip
        found = choices_for(model, budget, seed, first, sample, sample or 1, among)
    return MappedResult(name, machine, found)


def _whole(name: str, value: Any) -> int:
    whole = whole_number(value)
    if whole is None:
        raise CheckError(f"the size {name} is {value!r:.40}", advice="a size is a whole number")
    return whole


def _program(expr: str | Program, plain: bool) -> Program:
    if isinstance(expr, str):
        return named_program(expr, plain)
    if not isinstance(expr, Program):
        raise CheckError(
            f"what is mapped is a {type(expr).__name__}",
            advice="it should be a name, or a program of warploom.arrays",
        )
    if plain:
        raise ParseError("your own program is never rewritten", advice="leave plain out")
    return expr


def choices_for(
    model: JointModel,
    budget: Budget,
    seed: int,
    first: bool,
    sample: int | None,
    wanted: int,
    among: int,
) -> Outcome[list[Choice]]:
    """Candidates as they are asked for: some one soon, drawn, or the most promising."""
    if first:
        soon = model.first(seed, budget)
        return Found([choice_of(model, soon.answer)], True) if isinstance(soon, Found) else soon
    outcome = (
        model.sample(wanted, seed, budget) if sample is not None
        else promising(model, wanted, max(among, wanted), seed, budget)
    )  # fmt: skip
    if not isinstance(outcome, Found):
        return outcome
    return Found([choice_of(model, each) for each in outcome.answer], outcome.complete,
                 outcome.stopped)  # fmt: skip
