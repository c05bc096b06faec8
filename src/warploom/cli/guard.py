"""Exit statuses, and what stands between an exception and the user: one error, no traceback."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn

from warploom.cli.declare import Context
from warploom.cli.say import echo
from warploom.cli.start import BAD_OUTPUT, CANNOT_WRITE, INTERRUPTED, UNREAD
from warploom.errors import (
    InternalError,
    KernelError,
    LimitError,
    ParseError,
    WarploomError,
    by_command,
)
from warploom.search.budget import BudgetSpentError
from warploom.search.outcome import Found, Impossible, NothingFoundError, Outcome, Reason


class Status(IntEnum):
    """What the shell gets."""

    FOUND = 0
    IMPOSSIBLE = 1
    BAD_INPUT = BAD_OUTPUT  # also of an output that cannot be written
    UNDECIDED = 3
    INTERNAL = 70  # as sysexits.h has it
    INTERRUPTED = INTERRUPTED  # as the shell says it of a command stopped by Ctrl-C
    UNREAD = UNREAD  # likewise by a closed pipe


# Of several inputs the worst decides.
_WORST = (
    Status.INTERRUPTED,
    Status.INTERNAL,
    Status.BAD_INPUT,
    Status.UNDECIDED,
    Status.IMPOSSIBLE,
    Status.FOUND,
)

Tell = Callable[[WarploomError, Status], None]


def status_of(outcome: Outcome[Any]) -> Status:
    """What the shell gets for the answer of a search; Ctrl-C counts more than what was found."""
    if isinstance(outcome, Impossible):
        return Status.IMPOSSIBLE
    found = isinstance(outcome, Found)
    if (outcome.stopped if isinstance(outcome, Found) else outcome.reason) is Reason.INTERRUPTED:
        return Status.INTERRUPTED
    return Status.FOUND if found else Status.UNDECIDED


def is_whole(outcome: Outcome[Any]) -> bool:
    """Whether nothing but what was asked for has ended a search, so that another is the same."""
    if isinstance(outcome, Found):
        return outcome.stopped is None
    return isinstance(outcome, Impossible)


def worst(statuses: Iterable[Status]) -> Status:
    return min(statuses, key=_WORST.index, default=Status.FOUND)


def check_meant(context: Context, names: Iterable[str], why: str) -> None:
    """Options that somebody gave and that would be ignored are refused."""
    for parameter in context.command.parameters:
        if parameter.name in context.given.intersection(names):
            raise ParseError(f"{parameter.flags[0]} means nothing {why}", advice="leave it out")


def complain(error: WarploomError, status: Status | None = None) -> None:
    del status  # the shell gets it
    echo(str(error), err=True)


def attempt(action: Callable[[], Status], tell: Tell = complain) -> Status:
    """The status of an action; an exception is told, and has a status of its own. Ctrl-C is not
    caught: it ends more than one action."""
    try:
        with by_command():
            return action()
    except Exception as error:  # noqa: BLE001  # the last line of defence
        told, status = _judged(error)
        tell(told, status)
        return status


def run(action: Callable[[], Status], tell: Tell = complain) -> NoReturn:
    """Runs a command to its exit status; `tell` says what is wrong with its input."""
    try:
        status = attempt(action, tell)
    except KeyboardInterrupt:
        echo("interrupted", err=True)
        status = Status.INTERRUPTED
    raise SystemExit(int(status))


def _judged(error: Exception) -> tuple[WarploomError, Status]:
    """What is said of an exception, and the exit status."""
    match error:
        case InternalError():
            return _internal(error), Status.INTERNAL
        case NothingFoundError():
            # What was found, but not listed in time, is no answer either.
            return error, status_of(error.outcome) or Status.UNDECIDED
        case LimitError():
            return error, Status.UNDECIDED
        case KernelError():
            return error, Status.IMPOSSIBLE
        case WarploomError():
            return error, Status.BAD_INPUT
        case MemoryError():
            return _OUT_OF_MEMORY, Status.UNDECIDED
        case BudgetSpentError():
            status = Status.INTERRUPTED if error.reason is Reason.INTERRUPTED else Status.UNDECIDED
            return WarploomError(error.reason.value), status
        case OSError() if error.errno in CANNOT_WRITE:
            what = "the output" if error.filename is None else f"'{error.filename}'"
            return WarploomError(f"cannot write {what}: {error.strerror}"), Status.BAD_INPUT
    return _internal(error), Status.INTERNAL


_OUT_OF_MEMORY = WarploomError("out of memory", advice="set a limit with --memory, or go smaller")


def _internal(error: Exception) -> InternalError:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    said = error.message if isinstance(error, WarploomError) else str(error)
    return InternalError(
        f"internal error: {type(error).__name__}: {said[:200]}{place}",
        advice="this is a bug of ours: please report it together with the input",
    )
