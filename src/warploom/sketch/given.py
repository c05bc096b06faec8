"""A user's sketch, a `Sketch` or its program: read as one; its text; is it right?"""

from __future__ import annotations

from warploom.errors import CheckError, located
from warploom.sketch.build import Sketch
from warploom.sketch.term.evaluate import Fill
from warploom.sketch.term.ir import Goal, Program
from warploom.sketch.term.show import to_swflow
from warploom.sketch.term.verify import Verification, verify


def program_of(given: Program | Sketch) -> Program:
    """A program, or that of a sketch."""
    if isinstance(given, Sketch):
        return given.program()
    if not isinstance(given, Program):
        kind = "string" if isinstance(given, str) else type(given).__name__
        raise CheckError(
            f"this takes a sketch, not a {kind}",
            advice="give a Sketch, its program(), or what load_text and load_file read",
        )
    return given


@located
def text_of(sketch: Program | Sketch) -> str:
    """A sketch as `.swflow` text."""
    return to_swflow(program_of(sketch))


@located
def verified(
    sketch: Program | Sketch, goal: Goal | int = 0, fill: Fill = (), laws: str | None = None
) -> Verification:
    """Runs a sketch with that fill on symbols and on random numbers, and compares with its goal.

    `laws`, "flatten" or "none", is up to what they must be equal; by default the goal says.
    """
    program = program_of(sketch)
    if not isinstance(goal, Goal):
        if isinstance(goal, bool) or goal not in range(len(program.goals)):
            raise CheckError(
                f"'{program.name}' has {len(program.goals)} goals, and none is {goal!r:.40}",
                advice="give a number, counted from 0, or one of program.goals",
            )
        goal = program.goals[goal]
    return verify(program, goal, fill, laws=laws)
