"""A budget of time and memory that engines ask now and then.

Whoever works long asks `check` between pieces of work of a tenth of a second or so, and `room_for`
before an allocation that matters. That is also when Ctrl-C is noticed and a spinner moves. What is
`enforced` ends a little later even where nobody asks: a timer raises what `check` would have.
"""

from __future__ import annotations

import resource
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from warploom.errors import CheckError, calling_line
from warploom.search.outcome import Reason

# Of the memory that is left, what one piece of work may take for itself; and megabytes that it
# always gets, as work in tiny pieces would take forever.
PIECE = 1 / 8
SMALLEST_PIECE = 1.0
LARGEST_PIECE = 1 << 29  # bytes, where memory is not limited

LOOK_EVERY = 0.005  # seconds: how long the memory is trusted to be what it was

# Seconds between two looks of the timer at the budgets that are enforced, and how long after its
# end a budget may go unasked.
TICK = 0.05
GRACE = 0.05


class BudgetSpentError(Exception):
    """Raised inside an engine by `Budget.check` and caught by that engine; never reaches a user.

    `needed`: the megabytes that would be in use, where an allocation was refused beforehand.
    """

    def __init__(self, reason: Reason, needed: float | None = None) -> None:
        super().__init__(reason.value)
        self.reason, self.needed = reason, needed


# What ends a search before its end; `reason_of` says why.
STOPS = (BudgetSpentError, KeyboardInterrupt, MemoryError)


def reason_of(stop: BaseException) -> Reason:
    if isinstance(stop, BudgetSpentError):
        return stop.reason
    return Reason.MEMORY if isinstance(stop, MemoryError) else Reason.INTERRUPTED


@dataclass(slots=True)
class Switch:
    """Whether Ctrl-C was pressed, and when; shared by all budgets made of one."""

    on: bool = False
    since: float = 0.0

    def press(self) -> None:
        self.on, self.since = True, time.monotonic()


@dataclass(slots=True)
class Budget:
    """`seconds` of wall time and `megabytes` of resident memory; None is unlimited.

    The memory is that of the whole process: what was there before the search counts, too. A budget
    begins when it is made. A search whose budget is spent keeps what it found.

    >>> from warploom import Budget, Sketch, synthesize
    >>> s = Sketch.from_text("x: [4] = range(0, 4)\\ny: [4] = ?rots{main=0,second=0,out=0}(x)\\n"
    ...                      "goal: [4] = [1, 2, 3, 0]", "turned")
    >>> print(synthesize(s, budget=Budget(seconds=0)))
    turned: undecided: time budget spent
    """

    seconds: float | None = None
    megabytes: float | None = None
    on_check: Callable[[], None] | None = field(default=None, repr=False)
    haste: int = field(default=1, repr=False)  # pieces of work are so many times smaller than usual
    _start: float = field(default_factory=time.monotonic, repr=False)
    _interrupt: Switch = field(default_factory=Switch, repr=False)
    _spent: Reason | None = field(default=None, repr=False)
    _looked: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("megabytes", self.megabytes)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and value == value):  # NaN is not itself
                raise CheckError(
                    f"a budget's {name} are a number, not {value!r:.40}",
                    calling_line(__file__, "<string>"),
                    f"write Budget({name}=3)",
                )

    @property
    def seconds_left(self) -> float | None:
        """For solvers that keep the time themselves; None is unlimited."""
        return None if self.seconds is None else self._start + self.seconds - time.monotonic()

    @property
    def megabytes_left(self) -> float | None:
        return None if self.megabytes is None else self.megabytes - resident_megabytes()

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interrupt.on

    def check(self) -> None:
        """Raises if the budget is spent; once spent, it stays so."""
        if self.on_check is not None:
            self.on_check()
        if self._interrupt.on:
            self._end(Reason.INTERRUPTED)
        now = time.monotonic()
        if self.seconds is not None and now - self._start > self.seconds:
            self._end(Reason.SECONDS)
        if self._spent is not None or now - self._looked > LOOK_EVERY:
            self._looked = now
            self.room_for(0)

    def room_for(self, nbytes: float) -> None:
        """Called before a large allocation: refuses what would not fit the memory budget."""
        if self._spent is not None:
            self._end(self._spent)
        needed = 0 if self.megabytes is None else resident_megabytes() + nbytes / 2**20
        if self.megabytes is not None and needed > self.megabytes:
            self._end(Reason.MEMORY, needed if nbytes else None)

    def is_spent(self) -> bool:
        try:
            self.check()
        except BudgetSpentError:
            return True
        return False

    def fits(self, nbytes: float) -> bool:
        """For what can be done without: whether it is a piece of work at most."""
        left = self.megabytes_left
        return nbytes <= LARGEST_PIECE and (left is None or nbytes <= left * PIECE * 2**20)

    def _end(self, reason: Reason, needed: float | None = None) -> NoReturn:
        self.end(reason)
        raise BudgetSpentError(reason, needed)

    def end(self, reason: Reason) -> None:
        """From now on it is spent, and nobody has to be told by force."""
        self._spent = reason

    @property
    def overdue(self) -> Reason | None:
        """Why somebody should have asked, and seen that it is spent, some time ago."""
        if self._spent is not None:
            return None
        now = time.monotonic()
        if self._interrupt.on and now - self._interrupt.since > GRACE:
            return Reason.INTERRUPTED
        late = self.seconds is not None and now - self._start > self.seconds + GRACE
        return Reason.SECONDS if late else None

    def at_once(self, count: int, bytes_each: float) -> int:
        """How many items, `count` at most, a piece of work should take on to fit the memory."""
        left = self.megabytes_left
        count = max(1, count // self.haste)
        if left is None:
            return count
        piece = max(left * PIECE, SMALLEST_PIECE) * 2**20
        return max(1, int(min(count, piece / max(1.0, bytes_each))))

    # -- budgets made of this one --------------------------------------------------------------

    def watched(self, on_check: Callable[[], None] | None) -> Budget:
        """The same budget; `on_check` is called whenever it is asked."""
        return replace(self, on_check=on_check)

    def shortened(self, share: float, at_most: float) -> Budget:
        """The same budget without a share of its seconds, which is kept for what comes after."""
        if self.seconds is None:
            return replace(self)
        return replace(self, seconds=self.seconds - min(share * self.seconds, at_most))

    def up_to(self, seconds: float) -> Budget:
        """So many seconds, or what is left if that is less, beginning now."""
        left = self.seconds_left
        some = seconds if left is None else max(0.0, min(seconds, left))
        return replace(self, seconds=some, _start=time.monotonic())

    def at_least(self, seconds: float) -> Budget:
        """What is left, but no less than so many seconds from now; Ctrl-C from now on ends it."""
        left = self.seconds_left
        some = None if left is None else max(seconds, left)
        switch = Switch() if self._interrupt.on else self._interrupt
        some = seconds if self._interrupt.on else some
        return Budget(some, self.megabytes, self.on_check, self.haste, _interrupt=switch)

    def split(self, parts: int) -> Budget:
        """One of `parts` equal parts of the time that is left, beginning now."""
        if self.seconds_left is None:
            return replace(self)
        now = time.monotonic()
        return replace(self, seconds=max(0.0, self.seconds_left / parts), _start=now)

    # -- the two things that reach further than a call -----------------------------------------

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Ctrl-C is seen at the next check and nothing is lost; pressed twice, it interrupts.

        Only where Python would raise KeyboardInterrupt: handlers of others are left alone.
        """
        ours = threading.current_thread() is threading.main_thread()
        if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return

        def pressed(_number: int, _frame: FrameType | None) -> None:
            if self._interrupt.on:
                raise KeyboardInterrupt
            self._interrupt.press()

        signal.signal(signal.SIGINT, pressed)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def governing(self) -> Iterator[None]:
        """Makes this the budget that `governing_budget` gives, also beyond code that knows none."""
        token = _GOVERNING.set(self)
        try:
            with self.enforced():
                yield
        finally:
            _GOVERNING.reset(token)

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Where the budget is spent and nobody asks, `BudgetSpentError` is raised nevertheless, at
        whatever is being computed: only around work of which nothing is kept that is half done.

        Only in the main thread, and only if nobody else uses the alarm signal.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        key = object()
        try:
            _ENFORCED[key] = self
            _set_alarm()
            yield
        finally:
            _ENFORCED.pop(key, None)
            if not _ENFORCED:
                _end_alarm()


_ENFORCED: dict[object, Budget] = {}


def _set_alarm() -> None:
    """Ticks as long as anything is enforced; alarms of others are left alone."""
    if signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
        signal.signal(signal.SIGALRM, _tick)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)


def _end_alarm() -> None:
    if signal.getsignal(signal.SIGALRM) is _tick:
        signal.setitimer(signal.ITIMER_REAL, 0)  # first: an alarm that nobody handles would kill
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _tick(_number: int, frame: FrameType | None) -> None:
    for budget in reversed(_ENFORCED.values()):
        reason = budget.overdue
        if reason is not None and not _is_delicate(frame):
            raise BudgetSpentError(reason)


def _is_delicate(frame: FrameType | None) -> bool:
    """Whether an exception would be lost here, or leave a module half imported."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename.startswith("<frozen importlib"):
            return True
        if code.co_filename == weakref.__file__ and code.co_name == "remove":
            return True
        if code.co_filename == __file__ and code.co_name == "enforced":
            return True  # in its last lines: the budget would be enforced for ever
        frame = frame.f_back
    return False


# For what is built while a user's own code runs, which takes no budget and hands none on.
_GOVERNING: ContextVar[Budget | None] = ContextVar("budget", default=None)


def governing_budget() -> Budget:
    """The budget of whoever called us, however far up; without one, an unlimited one."""
    return _GOVERNING.get() or Budget()


def resident_megabytes() -> float:
    """Resident memory of this process now; its peak where the system does not tell."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return peak_megabytes()
    return pages * resource.getpagesize() / 2**20


def peak_megabytes() -> float:
    """Peak resident memory of this process."""
    try:
        # What the system counts for `getrusage` can be that of the parent, before this one began.
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return float(lines["VmHWM"].split()[0]) / 2**10
    except (OSError, KeyError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
