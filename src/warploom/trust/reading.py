"""Bytes of a file → certificates. What two readers of JSON may read in two ways is refused: a key
that stands twice, numbers that are none, another encoding, anything behind the end."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from warploom.errors import ParseError, Source, Span

_ADVICE = "a certificate is JSON as 'synth', 'layout solve', 'ptx run' and 'explore' write it"
_DIGITS = 400  # of a whole number; the largest of double precision has 309
_BYTE_ORDER_MARK = "\ufeff"


class _RefusedError(ValueError):
    """Something that JSON lets through; its place is looked for afterwards."""


def read_certificates(data: bytes, name: str) -> list[dict[str, Any]]:
    """Those of a file of that name: one, or a list of them; else one error with its place."""
    text = _decoded(data, name)
    try:
        found = json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_whole,
        )
    except _RefusedError:
        raise _error(text, name, *_first_refused(text)) from None
    except json.JSONDecodeError as error:
        raise _error(text, name, error.pos, f"not JSON: {error.msg}") from None
    except RecursionError:
        raise ParseError(f"{name} nests too deeply", advice=_ADVICE) from None
    listed = found if isinstance(found, list) else [found]
    if not listed or not all(isinstance(each, dict) for each in listed):
        raise ParseError(f"{name} holds no certificate", advice=_ADVICE)
    return listed


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ParseError(
            f"{name} is not JSON: byte {error.start} is no UTF-8", advice=_ADVICE
        ) from None
    if text.startswith(_BYTE_ORDER_MARK):
        raise _error(text, name, 0, "not JSON: a byte order mark")
    return text


def _error(text: str, name: str, at: int, message: str) -> ParseError:
    line, start = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at) + 1
    return ParseError(message, Span(Source(name, text), line, at - start + 1), _ADVICE)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RefusedError
    return found


def _finite(text: str) -> float:
    if _is_too_large(text):
        raise _RefusedError
    return float(text)


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise _RefusedError
    return int(text)


# -- where it stands -------------------------------------------------------------------------------

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)


def _is_too_large(word: str) -> bool:
    """Whether a word that JSON lets through as a number is none that is finite."""
    try:
        return not math.isfinite(float(word))
    except ValueError:  # true, false and null
        return False


def _first_refused(text: str) -> tuple[int, str]:
    """The place of the first thing in a text of JSON that is refused, and what it is."""
    keys: list[set[str]] = []
    before = ("", 0)
    for match in _TOKEN.finditer(text):
        word = match[0]
        if word in "{[":
            keys.append(set())
        elif word in "}]" and keys:
            keys.pop()
        elif word == ":" and keys:
            key = json.loads(before[0])
            if key in keys[-1]:
                return before[1], f"the key {key!r:.60} stands twice"
            keys[-1].add(key)
        elif word[0] != '"' and (len(word) > _DIGITS or _is_too_large(word)):
            return match.start(), f"{word:.40} is no number that can be read"
        before = (word, match.start())
    return 0, "not JSON that can be read in one way"
