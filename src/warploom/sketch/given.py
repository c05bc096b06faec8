"""A user's sketch, a `Sketch` or its program: read as one; is it right?"""

from __future__ import annotations

from warploom.errors import CheckError, located
from warploom.sketch.build import Sketch
from warploom.sketch.term.evaluate import Fill
from warploom.sketch.term.ir import Goal, Program
from warploom.sketch.term.verify import Verification, verify


def program_of(given: Program | Sketch) -> Program:
    """A program, or that of a sketch."""
    if isinstance(given, Sketch):
        return given.program()
    if not isinstance(given, Program):
        kind = "string" if isinstance(given, str) else type(given).__name__
        raise CheckError(
            f"this takes a sketch, not a {kind}",
            advice="give a Sketch; Sketch.from_file and Sketch.from_text read one",
        )
    return given


@located
def verified(
    sketch: Program | Sketch, goal: Goal | int = 0, fill: Fill = (), laws: str | None = None
) -> Verification:
    """Runs a sketch with that fill on symbols and on random numbers, and compares with its goal.

    `fill` has the number of the choice of each hole, as `result.fills` lists them; a sketch without
    holes needs none. `laws`, "flatten" or "none", says which rewrites count as equal; by default
    the goal says.

    >>> from warploom import Sketch, verify
    >>> s = Sketch("turned by one")
    >>> x = s.input("x", 4)
    >>> y = s.gather([1, 2, 3, 0], x, name="y")
    >>> s.goal(lambda x: [x[1], x[2], x[3], x[3]])
    >>> print(verify(s))  # the last cell is wrong
    refuted: cell (3) holds 0, should hold 3 (1 cells are wrong)
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
