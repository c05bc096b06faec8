"""Exit statuses, and what stands between an exception and the user: one error, no traceback."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import typer

from warploom.cli.start import CANNOT_WRITE
from warploom.errors import InternalError, ParseError, WarploomError
from warploom.search.outcome import Found, Impossible, Outcome

T = TypeVar("T")


class Status(IntEnum):
    """What the shell gets."""

    FOUND = 0
    IMPOSSIBLE = 1
    BAD_INPUT = 2
    UNDECIDED = 3
    INTERRUPTED = 130  # as the shell says it of a command stopped by Ctrl-C


# Of several inputs the worst decides.
_WORST = (
    Status.INTERRUPTED,
    Status.BAD_INPUT,
    Status.UNDECIDED,
    Status.IMPOSSIBLE,
    Status.FOUND,
)


def status_of(outcome: Outcome[Any]) -> Status:
    """What the shell gets for the answer of a search."""
    if isinstance(outcome, Found):
        return Status.FOUND
    return Status.IMPOSSIBLE if isinstance(outcome, Impossible) else Status.UNDECIDED


def is_whole(outcome: Outcome[Any]) -> bool:
    """Whether nothing but what was asked for has ended a search, so that another is the same."""
    if isinstance(outcome, Found):
        return outcome.stopped is None
    return isinstance(outcome, Impossible)


def worst(statuses: Iterable[Status]) -> Status:
    return min(statuses, key=_WORST.index, default=Status.FOUND)


def check_meant(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Options that somebody gave and that would be ignored are refused."""
    for parameter in context.command.params:
        if parameter.name in names:
            source = context.get_parameter_source(parameter.name)
            if source is not None and source.name == "COMMANDLINE":
                raise ParseError(f"{parameter.opts[0]} means nothing {why}", advice="leave it out")


def complain(error: WarploomError) -> None:
    typer.echo(str(error), err=True)


def attempt(action: Callable[[], T], tell: Callable[[WarploomError], None] = complain) -> T | None:
    """What the action returns, or None after its error was shown."""
    try:
        return action()
    except WarploomError as error:
        tell(error)
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except OSError as error:
        if error.filename is not None or error.errno not in CANNOT_WRITE:
            tell(_internal(error))
        else:
            tell(WarploomError(f"cannot write the output: {error.strerror}"))
    except MemoryError:
        tell(WarploomError("out of memory", advice="set a limit with --memory, or go smaller"))
    except Exception as error:  # noqa: BLE001  # the last line of defence: ours is broken, say so
        tell(_internal(error))
    return None


def run(action: Callable[[], Status], tell: Callable[[WarploomError], None] = complain) -> None:
    """Runs a command to its exit status; `tell` says what is wrong with its input."""
    try:
        status = attempt(action, tell)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        status = Status.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        status = Status.FOUND
    raise typer.Exit(Status.BAD_INPUT if status is None else status)


def _internal(error: Exception) -> InternalError:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return InternalError(
        f"internal error: {type(error).__name__}: {str(error)[:200]}{place}",
        advice="this is a bug of ours: please report it together with the input",
    )
