"""What a sketch hands out: values that can be moved, and with which nothing can be computed.

Python would answer most mistakes with a TypeError from inside; here each is one error, at the
user's line, that says what to write instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

from warploom.errors import CheckError, users_line


class NoAttributeError(CheckError, AttributeError):
    """An attribute that a value does not have: Python's own way to ask for one still works."""


class Opaque:
    """Refuses what numbers and arrays can do; `_ADVICE` says what a sketch has instead."""

    __slots__ = ()
    _ADVICE = ""

    def _refuse(self, *_others: object, **_options: object) -> NoReturn:
        raise CheckError(
            "a sketch moves values; it does not compute with them",
            users_line(),
            self._ADVICE,
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = _refuse
    __rpow__ = __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = _refuse
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __float__ = __int__ = __index__ = __complex__ = __round__ = __array__ = _refuse
    __iter__ = __len__ = __contains__ = __getitem__ = __setitem__ = __call__ = _refuse
    __eq__ = __ne__ = _refuse  # what lanes hold is not known while a sketch is written
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise CheckError(
            "what a sketch does cannot depend on the value of an element",
            users_line(),
            self._ADVICE,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that others look for
            raise AttributeError(name)
        raise NoAttributeError(
            f"a value of a sketch has no '{name}'",
            users_line(),
            self._ADVICE,
        )
